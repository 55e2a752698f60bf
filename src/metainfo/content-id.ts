/** The content id and the transport record that it names. */
import { decodeBencode, encodeBencode, isDictionary } from "../bytes/bencode.ts";
import { toHex } from "../bytes/hex.ts";
import { MillraceError } from "../errors.ts";
import { decodeName } from "./file-path.ts";
import { MAX_RECORD_BYTES } from "./limits.ts";
import { isTracker } from "./transport-file.ts";
import type { Metainfo } from "./types.ts";

/** The record that a content id refers to. */
export interface TransportRecord {
  /** 20 bytes. */
  readonly infohash: Uint8Array;
  readonly infohashHex: string;
  readonly name: string | null;
  readonly trackers: readonly string[];
}

const VERSION = 1;
const INFOHASH_BYTES = 20;

/**
 * The bencoded record `{ih, nm, tr, v}`, at most 1000 bytes: trackers are dropped from the end until it fits, then the
 * name is cut at a character.
 */
export function encodeTransportRecord(record: Pick<TransportRecord, "infohash" | "name" | "trackers">): Uint8Array {
  let name = record.name ?? "";
  const trackers = [...record.trackers];
  for (;;) {
    const bytes = encodeBencode({
      ih: record.infohash,
      nm: name === "" ? undefined : name,
      tr: trackers.length === 0 ? undefined : trackers,
      v: VERSION,
    });
    if (bytes.length <= MAX_RECORD_BYTES) return bytes;
    if (trackers.length > 0) trackers.pop();
    else name = [...name].slice(0, -1).join("");
  }
}

/** Reads a record. Throws `bad_transport_file`. */
export function decodeTransportRecord(bytes: Uint8Array): TransportRecord {
  const bad = (reason: string) => new MillraceError("bad_transport_file", `bad transport record: ${reason}`);
  if (bytes.length > MAX_RECORD_BYTES) throw bad(`longer than ${MAX_RECORD_BYTES} bytes`);
  const record = decodeBencode(bytes, { errorCode: "bad_transport_file", maxDepth: 4, maxValues: MAX_RECORD_BYTES });
  if (!isDictionary(record)) throw bad("it is not a dictionary");
  if (record["v"] !== VERSION) throw bad("its version is unknown");
  const infohash = record["ih"];
  if (!(infohash instanceof Uint8Array) || infohash.length !== INFOHASH_BYTES) throw bad("ih is not an infohash");
  const name = record["nm"] instanceof Uint8Array ? decodeName(record["nm"]) : null;
  const list: unknown[] = Array.isArray(record["tr"]) ? record["tr"] : [];
  const trackers = list.flatMap((item) => (item instanceof Uint8Array ? [decodeName(item)] : [])).filter(isTracker);
  return { infohash, infohashHex: toHex(infohash), name, trackers };
}

/** SHA-1 of a transport record, 40 hexadecimal characters. */
export async function recordId(record: Uint8Array): Promise<string> {
  return toHex(new Uint8Array(await crypto.subtle.digest("SHA-1", record as Uint8Array<ArrayBuffer>)));
}

/** The transport record of `metainfo`; its SHA-1 is both the content id and the target of a BEP 44 immutable item. */
export function transportRecordOf(metainfo: Pick<Metainfo, "infohash" | "name" | "trackers">): Uint8Array {
  return encodeTransportRecord({ ...metainfo, trackers: metainfo.trackers.flat() });
}

/** The content id of `metainfo`: 40 hexadecimal characters. */
export function contentId(metainfo: Pick<Metainfo, "infohash" | "name" | "trackers">): Promise<string> {
  return recordId(transportRecordOf(metainfo));
}
