/** Which items may lead into the private network, and under which addresses the library has a torrent. */
import { sql } from "kysely";
import type { Store } from "../database/store.ts";
import { MillraceError } from "../errors.ts";
import { parseMagnet } from "../metainfo/magnet.ts";
import { contentHashes, hashIs } from "./identity.ts";

/** Value of `allow_private` of an imported item whose list came from a server of the Internet. */
export const GIVEN_BY_PUBLIC = -1;

/**
 * SQL expression, 1 or 0: whether a server of the Internet gave a row of `playlist_items`. What it names is never
 * fetched from the private network, whoever asks.
 */
export const IS_FROM_PUBLIC = sql<number>`(playlist_items.allow_private = ${sql.lit(GIVEN_BY_PUBLIC)} OR EXISTS (
  SELECT 1 FROM external_playlists WHERE external_playlists.from_public = 1
    AND external_playlists.id = playlist_items.external_playlist_id))`;

/**
 * SQL expression, 1 or 0: whether the address of a row of `playlist_items` was given by a caller who may name private
 * addresses, or comes from an external list in the private network that such a caller added.
 */
export const MAY_NAME_PRIVATE = sql<number>`(playlist_items.allow_private = 1 OR EXISTS (
  SELECT 1 FROM external_playlists WHERE external_playlists.allow_private = 1 AND external_playlists.from_public = 0
    AND external_playlists.id = playlist_items.external_playlist_id))`;

/**
 * Whether the library has this address or magnet from servers of the Internet alone. Players, pages and exported lists
 * name it like an address that the user typed. Rejects as `Store.read`.
 */
export async function isFromPublic(store: Store, address: string): Promise<boolean> {
  if (!await store.mayHoldData()) return false;
  const infohash = /^magnet:/i.test(address) ? infohashOf(address) : "";
  const { hash } = contentHashes({ infohash, contentId: null, url: address, title: "" });
  const db = await store.read();
  const { rows: [found] } = await sql<{ all_public: number | null }>`SELECT min(${IS_FROM_PUBLIC}) AS all_public
    FROM playlist_items WHERE ${hashIs("hash", sql`${hash}`)} AND url = ${address} AND +is_deleted = 0`.execute(db);
  return found?.all_public === 1;
}

/**
 * A magnet under which the library has an infohash, one that the user gave where there is one; null where it has none.
 * Rejects as `Store.read`.
 */
export async function libraryMagnet(store: Store, infohashHex: string): Promise<string | null> {
  if (!await store.mayHoldData()) return null;
  const { hash } = contentHashes({ infohash: infohashHex, contentId: null, url: null, title: "" });
  const db = await store.read();
  const { rows: [found] } = await sql<{ url: string }>`SELECT url FROM playlist_items
    WHERE ${hashIs("hash", sql`${hash}`)} AND url LIKE 'magnet:%' AND +is_deleted = 0
    ORDER BY ${IS_FROM_PUBLIC}, id LIMIT 1`.execute(db);
  return found?.url ?? null;
}

function infohashOf(magnet: string): string {
  try {
    return parseMagnet(magnet).infohashHex;
  } catch (error) {
    if (error instanceof MillraceError) return "";
    throw error;
  }
}
