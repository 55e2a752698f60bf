/** Transport files: `.torrent` files, and how to recognise those of live broadcasts. */
import {
  type BencodeDictionary,
  type BencodeScan,
  decodeBencode,
  decodeBencodeInTurns,
  encodeBencode,
  integerWithin,
  scanBencode,
} from "../bytes/bencode.ts";
import { concatBytes, toHex } from "../bytes/hex.ts";
import { MillraceError } from "../errors.ts";
import { decodeName } from "./file-path.ts";
import { type InfoExtras, metainfoOf } from "./info.ts";
import { MAX_TRANSPORT_FILE_BYTES, MAX_URL_LENGTH, MAX_URLS } from "./limits.ts";
import type { HashTree, Metainfo } from "./types.ts";

const ENCODER = new TextEncoder();

/** A transport file, decoded. */
export interface TransportFileParts {
  /** The bencoded `info`, unchanged. */
  readonly infoBytes: Uint8Array;
  readonly info: unknown;
  /** The fields around it. */
  readonly extras: Required<InfoExtras>;
}

/**
 * Decodes a transport file once, in turns if it is large. Rejects with `bad_transport_file` and the reason, or
 * `too_large` above 16 MiB.
 */
export async function readTransportFile(bytes: Uint8Array): Promise<TransportFileParts> {
  checkSize(bytes);
  // Some creators end the file with a line break, so the value need not fill it.
  const { spans, value } = await decodeBencodeInTurns(bytes, { errorCode: "bad_transport_file" });
  return partsOf(bytes, spans, value);
}

/** `readTransportFile` in one turn, for small files. Throws where that rejects. */
export function splitTransportFile(bytes: Uint8Array): TransportFileParts {
  checkSize(bytes);
  const { spans, end } = scanBencode(bytes, { errorCode: "bad_transport_file" });
  return partsOf(bytes, spans, decodeBencode(bytes.subarray(0, end), { errorCode: "bad_transport_file" }));
}

function checkSize(bytes: Uint8Array): void {
  if (bytes.length > MAX_TRANSPORT_FILE_BYTES) {
    throw new MillraceError("too_large", `transport files above ${MAX_TRANSPORT_FILE_BYTES} bytes are not accepted`);
  }
}

function partsOf(bytes: Uint8Array, spans: BencodeScan["spans"], value: unknown): TransportFileParts {
  const span = spans.get("info");
  if (span === undefined) throw new MillraceError("bad_transport_file", "bad transport file: info is missing");
  const outer = value as BencodeDictionary;
  return {
    infoBytes: bytes.subarray(span.start, span.end),
    info: outer["info"],
    extras: {
      trackers: readTrackers(outer),
      webSeeds: readUrls(outer["url-list"], isWebSeed),
      httpSeeds: readUrls(outer["httpseeds"], isWebSeed),
      nodes: readNodes(outer["nodes"]),
      pieceLayers: outer["piece layers"],
    },
  };
}

/**
 * Reads a `.torrent` file: v1, v2, or a hybrid as v1 (BEP 3, 5, 12, 17, 19, 52). Rejects with `bad_transport_file` and the
 * reason, or `too_large` above 16 MiB.
 */
export async function parseTransportFile(bytes: Uint8Array): Promise<Metainfo> {
  const { infoBytes, info, extras } = await readTransportFile(bytes);
  return await metainfoOf(info, infoBytes, extras);
}

/** The transport file of `metainfo`: `info` byte for byte, with its trackers, web seeds, nodes and piece layers. */
export function encodeMetainfo(
  metainfo: Pick<Metainfo, "infoBytes" | "trackers" | "webSeeds" | "httpSeeds" | "nodes"> & {
    readonly trees?: readonly Layered[];
  },
): Uint8Array<ArrayBuffer> {
  const layers = encodeLayers(metainfo.trees ?? []);
  return encodeAround([["info", metainfo.infoBytes], ...(layers === null ? [] : [["piece layers", layers] as const])], {
    announce: metainfo.trackers[0]?.[0],
    "announce-list": metainfo.trackers.length > 0 ? metainfo.trackers : undefined,
    httpseeds: (metainfo.httpSeeds?.length ?? 0) > 0 ? metainfo.httpSeeds : undefined,
    nodes: metainfo.nodes.length > 0 ? metainfo.nodes.map(splitNode) : undefined,
    "url-list": metainfo.webSeeds.length > 0 ? metainfo.webSeeds : undefined,
  });
}

/** Bencodes `fields` with `info` inserted unchanged, keys sorted as BEP 3 requires. */
export function encodeOuter(infoBytes: Uint8Array, fields: Readonly<Record<string, unknown>>): Uint8Array<ArrayBuffer> {
  return encodeAround([["info", infoBytes]], fields);
}

type Layered = Pick<HashTree, "root" | "layer">;

/** BEP 52, `piece layers`: keys are the roots' bytes, which the library would write as text. Null when there is none. */
function encodeLayers(trees: readonly Layered[]): Uint8Array | null {
  const known = new Map(trees.flatMap(({ root, layer }) => layer === null ? [] : [[toHex(root), { root, layer }]]));
  if (known.size === 0) return null;
  const sorted = [...known].sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(([, { root, layer }]) => [root, layer]);
  return concatBytes([ENCODER.encode("d"), ...sorted.map(encodeBencode), ENCODER.encode("e")]);
}

/** Bencodes a dictionary of `fields` beside `parts`, which are bencoded. All keys are ASCII. */
export function encodeAround(
  parts: readonly (readonly [string, Uint8Array])[],
  fields: Readonly<Record<string, unknown>>,
): Uint8Array<ArrayBuffer> {
  const entries = [...parts];
  for (const [key, value] of Object.entries(fields)) {
    if (value !== undefined) entries.push([key, encodeBencode(value)]);
  }
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  const encoded = entries.flatMap(([key, value]) => [encodeBencode(key), value]);
  return concatBytes([ENCODER.encode("d"), ...encoded, ENCODER.encode("e")]);
}

/** True for a valid tracker URL (BEP 3, BEP 15). */
export function isTracker(url: string): boolean {
  return /^(https?|udp|wss?):\/\/[^/]/i.test(url) && url.length <= MAX_URL_LENGTH && URL.canParse(url);
}

/** True for a valid web seed URL (BEP 17, BEP 19). */
export function isWebSeed(url: string): boolean {
  return /^https?:\/\/[^/]/i.test(url) && url.length <= MAX_URL_LENGTH && URL.canParse(url);
}

function textOf(value: unknown): string {
  return value instanceof Uint8Array && value.length <= MAX_URL_LENGTH ? decodeName(value).trim() : "";
}

function readUrls(value: unknown, accept: (url: string) => boolean): string[] {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  return [...new Set(list.map(textOf).filter(accept))].slice(0, MAX_URLS);
}

/** `announce-list` wins over `announce` unless it is empty (BEP 12). */
function readTrackers(outer: BencodeDictionary): string[][] {
  const seen = new Set<string>();
  const tiers: string[][] = [];
  const lists: unknown[] = Array.isArray(outer["announce-list"]) ? outer["announce-list"] : [];
  for (const list of lists) {
    const tier = readUrls(list, (url) => isTracker(url) && !seen.has(url)).slice(0, MAX_URLS - seen.size);
    for (const url of tier) seen.add(url);
    if (tier.length > 0) tiers.push(tier);
    if (seen.size >= MAX_URLS) break;
  }
  if (tiers.length > 0) return tiers;
  const single = readUrls(outer["announce"], isTracker).slice(0, 1);
  return single.length > 0 ? [single] : [];
}

function readNodes(value: unknown): string[] {
  if (!Array.isArray(value)) return [];
  const nodes: string[] = [];
  for (const entry of value.slice(0, MAX_URLS)) {
    if (!Array.isArray(entry)) continue;
    const host = textOf(entry[0]);
    const port = integerWithin(entry[1], 1, 65535);
    if (port === null || !/^[0-9A-Za-z.:_-]{1,253}$/.test(host)) continue;
    nodes.push(host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`);
  }
  return nodes;
}

function splitNode(node: string): [string, number] {
  const colon = node.lastIndexOf(":");
  return [node.slice(0, colon).replace(/^\[|\]$/g, ""), Number(node.slice(colon + 1))];
}
