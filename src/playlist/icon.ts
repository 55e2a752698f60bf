/** The picture of an item, or of a channel by its name. */
import { sql } from "kysely";
import { foldText, mediaGroup, normalizedName } from "../database/names.ts";
import type { Store } from "../database/store.ts";
import { hashIs } from "./identity.ts";
import { isIndexed, titlesWith } from "./listing.ts";
import { EDITED } from "./overlay.ts";
import { IS_FROM_PUBLIC } from "./private-addresses.ts";

/** Most items read whose title contains the name, and most of those with a picture. */
const MAX_NAMED = 5000;
const MAX_CANDIDATES = 500;
/** Most items of a channel read: a list may name all its items alike. */
const MAX_MEMBERS = 5000;

/** Names the item or channel whose icon is wanted. */
export interface IconRequest {
  readonly id?: number | undefined;
  /** Name or `tvg-id` of a channel, compared as media groups are. */
  readonly commonName?: string | undefined;
  /** `hash` or `hash_v2`. */
  readonly hash?: string | undefined;
}

/** The picture that was found. */
export interface Icon {
  readonly url: string;
  /** A server of the Internet named it: it may not be fetched from the private network. */
  readonly isFromPublic: boolean;
}

interface Row {
  readonly title: string;
  readonly tvg_logo: string;
  readonly poster: string;
  readonly edited: number;
  readonly is_from_public: number;
}

const COLUMNS = sql`title, tvg_logo, poster, edited, ${IS_FROM_PUBLIC} AS is_from_public`;

function iconIn({ tvg_logo, poster, edited, is_from_public }: Row): Icon {
  const isUsers = tvg_logo !== "" && (edited & EDITED.logo) !== 0;
  return { url: tvg_logo || poster, isFromPublic: is_from_public === 1 && !isUsers };
}

/** The logo, else the poster, of the first item that matches one of the names given; null when no match has one. */
export async function iconOf(
  store: Store,
  { id = -1, commonName = "", hash = "" }: IconRequest,
): Promise<Icon | null> {
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
  const { rows: [named] } = await sql<Row>`SELECT ${COLUMNS} FROM playlist_items WHERE ${hasPicture}
    AND (id = ${id} OR ${hashIs("hash", digest)} AND ${isListed} OR ${hashIs("hash_v2", digest)} AND ${isListed}
      OR first_hash = ${digest} AND ${isListed} OR first_hash_v2 = ${digest} AND ${isListed}
      OR id IN (SELECT member.id FROM playlist_items AS member
        WHERE media_group IN (SELECT value FROM json_each(${JSON.stringify(groups)})) LIMIT ${MAX_MEMBERS})
        AND ${isListed})
    ORDER BY id LIMIT 1`.execute(db);
  if (named !== undefined) return iconIn(named);
  // Channels with a `tvg-id` are grouped by it, not by name; find their names through the index of titles.
  const text = foldText(commonName).trim();
  if (!isIndexed(text)) return null;
  const { candidates, key } = titlesWith(text);
  const { rows } = await sql<Row>`SELECT ${COLUMNS}
    FROM (${candidates} ORDER BY ${key} LIMIT ${MAX_NAMED}) AS named
    CROSS JOIN playlist_items ON playlist_items.id = named.id
    WHERE ${isListed} AND ${hasPicture} LIMIT ${MAX_CANDIDATES}`.execute(db);
  const wanted = normalizedName(commonName);
  const found = rows.find(({ title }) => normalizedName(title) === wanted);
  return found === undefined ? null : iconIn(found);
}
