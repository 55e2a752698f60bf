/** Nodes and peers as messages of the DHT write them, over IPv4 (BEP 5) and IPv6 (BEP 32). */
import ipaddr from "ipaddr.js";
import { concatBytes } from "../bytes/hex.ts";
import type { SocketAddress } from "../ports.ts";
import { COMPACT4_BYTES, COMPACT6_BYTES, parseCompact } from "./addresses.ts";
import type { LibraryContact } from "./dht-library.ts";

/** There are two DHTs: nodes of IPv4 and nodes of IPv6 have separate tables (BEP 32). */
export type Family = 4 | 6;

/** Length of a node's id (BEP 5). */
export const NODE_ID_BYTES = 20;

/** Bytes of an address with its port, the field of a reply that has nodes, and their name in `want`. */
export const WIRE = {
  4: { peerBytes: COMPACT4_BYTES, field: "nodes", want: "n4" },
  6: { peerBytes: COMPACT6_BYTES, field: "nodes6", want: "n6" },
} as const;

/** Which of the two DHTs a literal address belongs to. */
export function familyOf(host: string): Family {
  return host.includes(":") ? 6 : 4;
}

/** An address and port: 6 or 18 bytes. */
export function encodePeer({ host, port }: SocketAddress): Uint8Array {
  return new Uint8Array([...ipaddr.parse(host).toByteArray(), port >> 8, port & 255]);
}

/** The `values` of a reply, without those of the other family and those that nobody can dial. */
export function decodePeers(values: unknown, family: Family): SocketAddress[] {
  const { peerBytes } = WIRE[family];
  return (Array.isArray(values) ? values as unknown[] : []).flatMap((value) =>
    value instanceof Uint8Array && value.length === peerBytes ? parseCompact(value, peerBytes) : []
  );
}

/** Nodes of one family, as a reply has them. */
export function encodeNodes(nodes: readonly LibraryContact[]): Uint8Array {
  return concatBytes(nodes.flatMap((node) => [node.id, encodePeer(node)]));
}

/** Splits a field of nodes; an incomplete last one is left out. */
export function nodeEntries(bytes: Uint8Array, family: Family): Uint8Array[] {
  const size = NODE_ID_BYTES + WIRE[family].peerBytes;
  return Array.from({ length: Math.floor(bytes.length / size) }, (_, n) => bytes.subarray(n * size, (n + 1) * size));
}

/** The nodes of one family that a reply names. Their ids are views of `reply`, as the library decoded it. */
export function namedNodes(reply: unknown, family: Family): LibraryContact[] {
  const { field, peerBytes } = WIRE[family];
  const bytes = typeof reply === "object" && reply !== null ? (reply as Record<string, unknown>)[field] : null;
  if (!(bytes instanceof Uint8Array)) return [];
  return nodeEntries(bytes, family).flatMap((entry) =>
    parseCompact(entry.subarray(NODE_ID_BYTES), peerBytes).map((at) => ({
      id: entry.subarray(0, NODE_ID_BYTES),
      ...at,
    }))
  );
}
