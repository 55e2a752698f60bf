/** Magnets of mutable torrents (BEP 46): they name a key, whose owner says in the DHT which torrent is meant now. */
import { decodeBencode, isDictionary } from "../bytes/bencode.ts";
import { fromHex, toHex } from "../bytes/hex.ts";
import { MillraceError } from "../errors.ts";

/** Longest value of an item of the DHT, bytes (BEP 44). */
const MAX_ITEM_BYTES = 1000;

const INFOHASH_BYTES = 20;

/** What a magnet of a mutable torrent names. */
export interface MutableMagnet {
  /** Ed25519, 32 bytes. */
  readonly publicKey: Uint8Array;
  /** At most 64 bytes; mostly empty. */
  readonly salt: Uint8Array;
  /** The same link of the torrent with this infohash. */
  of(infohashHex: string): string;
}

/** Reads `magnet:?xs=urn:btpk:<key>&s=<salt>`, both hexadecimal; null for other links, and for those that name a torrent. */
export function readMutableMagnet(uri: string): MutableMagnet | null {
  const fields = new URLSearchParams(uri.trim().replace(/^magnet:\/{0,2}\?/i, "").replaceAll(/&amp;/gi, "&"));
  const key = fields.getAll("xs").map((source) => /^urn:btpk:([0-9a-f]{64})$/i.exec(source.trim())?.[1])
    .find((found) => found !== undefined);
  const salt = fields.get("s")?.trim() ?? "";
  if (key === undefined || fields.has("xt") || !/^(?:[0-9a-f]{2}){0,64}$/i.test(salt)) return null;
  return {
    publicKey: fromHex(key),
    salt: fromHex(salt),
    of(infohashHex) {
      const rest = [...fields].filter(([field, value]) =>
        field !== "s" && !(field === "xs" && /^urn:btpk:/i.test(value))
      );
      return `magnet:?${new URLSearchParams([["xt", `urn:btih:${infohashHex}`], ...rest])}`;
    },
  };
}

/** The infohash in the value of the item, hexadecimal. Throws `bad_transport_file`. */
export function decodeMutableValue(bytes: Uint8Array): string {
  const limits = { errorCode: "bad_transport_file", maxDepth: 4, maxValues: MAX_ITEM_BYTES } as const;
  const value = decodeBencode(bytes, limits);
  const infohash = isDictionary(value) ? value["ih"] : null;
  if (!(infohash instanceof Uint8Array) || infohash.length !== INFOHASH_BYTES) {
    throw new MillraceError("bad_transport_file", "the DHT item of this magnet link names no torrent");
  }
  return toHex(infohash);
}
