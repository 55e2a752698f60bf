/** The picture of an item, or of a channel by its name. */
import { sql } from "kysely";
import { foldText, mediaGroup, normalizedName } from "../database/names.ts";
import type { Store } from "../database/store.ts";
import { hashIs } from "./identity.ts";

/** Most items read whose title contains the name. */
const MAX_CANDIDATES = 500;

/** Names the item or channel whose icon is wanted. */
export interface IconRequest {
  readonly id?: number | undefined;
  /** Name or `tvg-id` of a channel, compared as media groups are. */
  readonly commonName?: string | undefined;
  /** `hash` or `hash_v2`. */
  readonly hash?: string | undefined;
}

interface Row {
  readonly title: string;
  readonly tvg_logo: string;
  readonly poster: string;
}

/** Address of the logo, else the poster, of the first item that matches one of the names given; null when no match has one. */
export async function iconOf(
  store: Store,
  { id = -1, commonName = "", hash = "" }: IconRequest,
): Promise<string | null> {
  const db = await store.read();
  const digest = sql`${hash.toLowerCase() || null}`;
  const groups = commonName === "" ? [] : [
    mediaGroup({ title: commonName, tvgId: "" }),
    mediaGroup({ title: "", tvgId: commonName }),
  ];
  const hasPicture = sql`(tvg_logo <> '' OR poster <> '')`;
  // The plus keeps SQLite from choosing the first index, which would scan the whole playlist.
  const isListed = sql`+is_deleted = 0`;
  // An id may also name an item in the trash, which shows pictures too.
  const { rows: [named] } = await sql<Row>`SELECT title, tvg_logo, poster FROM playlist_items WHERE ${hasPicture}
    AND (id = ${id} OR ${hashIs("hash", digest)} AND ${isListed} OR ${hashIs("hash_v2", digest)} AND ${isListed}
      OR media_group IN (SELECT value FROM json_each(${JSON.stringify(groups)})) AND ${isListed})
    ORDER BY id LIMIT 1`.execute(db);
  if (named !== undefined) return named.tvg_logo || named.poster;
  // Channels with a `tvg-id` are grouped by it, not by name; find their names through the index of titles.
  const text = foldText(commonName).trim();
  if ([...text].length < 3) return null;
  const { rows } = await sql<Row>`SELECT title, tvg_logo, poster
    FROM playlist_search CROSS JOIN playlist_items ON playlist_items.id = playlist_search.rowid
    WHERE playlist_search MATCH ${`"${text.replaceAll('"', '""')}"`} AND ${isListed} AND ${hasPicture}
    ORDER BY playlist_search.rowid LIMIT ${MAX_CANDIDATES}`.execute(db);
  const wanted = normalizedName(commonName);
  const found = rows.find(({ title }) => normalizedName(title) === wanted);
  return found === undefined ? null : found.tvg_logo || found.poster;
}
