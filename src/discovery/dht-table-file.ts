/** The DHT's node table on disk, so that a restart needs no bootstrap node. */
import { fromHex, toHex } from "../bytes/hex.ts";
import { hasCode } from "../errors.ts";
import type { FilePort } from "../ports.ts";
import { isUsable } from "./addresses.ts";
import { familyOf, NODE_ID_BYTES } from "./dht-contacts.ts";

/** Nodes kept of each family: the closest buckets and plenty of others; 300 are 25 KB. */
const MAX_SAVED_NODES = 300;

/** Our table files are far smaller; a larger file is not ours. */
const MAX_FILE_BYTES = 256 * 1024;

const FAMILIES = [4, 6] as const;

/** A DHT node. */
export interface DhtNodeContact {
  readonly id: Uint8Array;
  readonly host: string;
  readonly port: number;
}

/** The data kept between runs. */
export interface DhtTable {
  /** Our own node id: the table is sorted around it. */
  readonly id: Uint8Array;
  /** The one in the DHT of IPv6, if it is another. */
  readonly id6?: Uint8Array;
  readonly nodes: readonly DhtNodeContact[];
}

/** The file's bytes (JSON, ids in hex). */
export function encodeTable(table: DhtTable): Uint8Array {
  const kept = FAMILIES.flatMap((family) =>
    table.nodes.filter(({ host }) => familyOf(host) === family).slice(0, MAX_SAVED_NODES)
  );
  const nodes = kept.map(({ id, host, port }) => ({ id: toHex(id), host, port }));
  const id6 = table.id6 === undefined ? {} : { id6: toHex(table.id6) };
  return new TextEncoder().encode(JSON.stringify({ version: 1, id: toHex(table.id), ...id6, nodes }));
}

function readId(value: unknown): Uint8Array | null {
  if (typeof value !== "string" || !/^[0-9a-f]{40}$/.test(value)) return null;
  const id = fromHex(value);
  return id.length === NODE_ID_BYTES ? id : null;
}

/** Reads `encodeTable`'s bytes; null when they are damaged (single bad nodes are left out). */
export function decodeTable(bytes: Uint8Array): DhtTable | null {
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return null;
  }
  if (typeof json !== "object" || json === null) return null;
  const record = json as Record<string, unknown>;
  const id = readId(record["id"]);
  if (record["version"] !== 1 || id === null || !Array.isArray(record["nodes"])) return null;
  const nodes: DhtNodeContact[] = [];
  for (const entry of record["nodes"].slice(0, FAMILIES.length * MAX_SAVED_NODES) as unknown[]) {
    if (typeof entry !== "object" || entry === null) continue;
    const { id, host, port } = entry as Record<string, unknown>;
    const nodeId = readId(id);
    if (nodeId === null || typeof host !== "string" || !Number.isInteger(port)) continue;
    if (isUsable({ host, port: port as number })) {
      nodes.push({ id: nodeId, host, port: port as number });
    }
  }
  const id6 = readId(record["id6"]);
  return { id, nodes, ...(id6 && { id6 }) };
}

/** Loads the table; null when it is missing or damaged. Rejects on other file errors. */
export async function loadTable(files: FilePort, path: string): Promise<DhtTable | null> {
  try {
    return decodeTable(await files.readFile(path, { maxBytes: MAX_FILE_BYTES }));
  } catch (error) {
    if (hasCode(error, "not_found") || hasCode(error, "too_large")) return null;
    throw error;
  }
}

/** Replaces the file atomically. */
export function saveTable(files: FilePort, path: string, table: DhtTable): Promise<void> {
  return files.writeFile(path, encodeTable(table));
}
