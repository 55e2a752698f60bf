/** Decides when two items are the same content. */
import { sha1 } from "@noble/hashes/legacy.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { type RawBuilder, sql } from "kysely";
import { toHex } from "../bytes/hex.ts";

/** The fields that locate an item's content. */
export interface Located {
  readonly infohash: string;
  readonly contentId: string | null;
  readonly url: string | null;
  readonly title: string;
}

/** A fresh hash state, a working copy of it, and the digest, reused: allocating them for each line takes longer than hashing it. */
const SHA1 = { empty: sha1.create(), working: sha1.create(), digest: new Uint8Array(20) };
const SHA256 = { empty: sha256.create(), working: sha256.create(), digest: new Uint8Array(32) };

function digestOf({ empty, working, digest }: typeof SHA1 | typeof SHA256, bytes: Uint8Array): string {
  (empty as typeof SHA1.empty)._cloneInto(working as typeof SHA1.working);
  working.update(bytes).digestInto(digest);
  return toHex(digest);
}

/**
 * Stable hashes that identify an item's content, hexadecimal. The hashed text is `kind:value` with its infohash, else content
 * id, else URL, else (for an item that is only searched for) the letters and digits of its title. `hash` is its SHA-1,
 * `hashV2` its SHA-256.
 */
export function contentHashes(item: Located): { hash: string; hashV2: string } {
  const text = item.infohash !== ""
    ? `infohash:${item.infohash}`
    : item.contentId !== null
    ? `content_id:${item.contentId}`
    : item.url !== null
    ? `url:${item.url}`
    : `title:${item.title.normalize("NFKC").toLowerCase().replace(/[^\p{L}\p{N}+]+/gu, "")}`;
  const bytes = new TextEncoder().encode(text);
  // Not Web Crypto: for such short texts it takes three times as long and allocates a quarter of all memory that an import uses.
  return { hash: digestOf(SHA1, bytes), hashV2: digestOf(SHA256, bytes) };
}

/** SQL: the hash by which callers and checks know an item, which does not change with its address. */
export const LASTING_HASH = sql<string>`coalesce(playlist_items.first_hash, playlist_items.hash)`;

/** SQL condition that an item's hash is `value` (an SQL expression); uses the indexes on the first 6 characters. */
export function hashIs(column: "hash" | "hash_v2", value: RawBuilder<unknown>): RawBuilder<boolean> {
  const hash = sql.ref(`playlist_items.${column}`);
  return sql`substr(${hash}, 1, 6) = substr(${value}, 1, 6) AND ${hash} = ${value}`;
}
