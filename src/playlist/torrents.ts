/** The torrents of the library, the newest first, in the categories of Torznab: what indexers of torrents list. */
import { type RawBuilder, sql } from "kysely";
import type { Store } from "../database/store.ts";
import { LASTING_HASH } from "./identity.ts";
import { among, selectionOf } from "./listing.ts";
import { matchesOf } from "./matches.ts";

/** A torrent of the library whose infohash is known. Broadcasts are left out. */
export interface LibraryTorrent {
  readonly id: number;
  readonly title: string;
  /** Lower-case hex. */
  readonly infohashHex: string;
  /** Its magnet link or address; null: none. */
  readonly url: string | null;
  /** When it was added, Unix seconds. */
  readonly addedS: number;
  /** Peers that the last check found; null: never checked, or the check found nothing out. */
  readonly peers: number | null;
  /** Numbers of its categories, at least one. */
  readonly categories: readonly number[];
}

/** Selects torrents, and a page of them. */
export interface TorrentRequest {
  /** Words of the title, in any order; empty: all. */
  readonly query: string;
  /** Numbers of categories, of which 2000 and 5000 stand for all that begin so; null: all. */
  readonly categories: readonly number[] | null;
  readonly offset: number;
  readonly limit: number;
}

/** The categories that torrents can have, by number. Those of a thousand have all below them. */
export const TORRENT_CATEGORIES: readonly { readonly number: number; readonly name: string }[] = [
  { number: 2000, name: "Movies" },
  { number: 2030, name: "Movies/SD" },
  { number: 2040, name: "Movies/HD" },
  { number: 2045, name: "Movies/UHD" },
  { number: 5000, name: "TV" },
  { number: 5030, name: "TV/SD" },
  { number: 5040, name: "TV/HD" },
  { number: 5045, name: "TV/UHD" },
  { number: 5070, name: "TV/Anime" },
];
const ANIME = 5070;

/** Nothing but the title says what a torrent is: a season in it makes an episode or season. `search_text` is folded. */
const NAMES_SEASON = sql`(search_text GLOB '*s[0-9][0-9]e[0-9]*' OR search_text GLOB '*[. _[(]s[0-9][0-9][]. _)]*'
  OR search_text GLOB '*[. _[(]s[0-9][0-9]')`;
/** A torrent of several files without one may be either; so may one with the word, which films have in their names, too. */
const IS_SERIES = sql`(${NAMES_SEASON} OR is_multi_tfile = 1 AND file_index IS NULL
  OR search_text GLOB '*season[. _][0-9]*')`;
const IS_FILM = sql`NOT ${NAMES_SEASON}`;
const IS_ANIME = sql`(playlist_items.category LIKE '%anime%')`;
/** What is added to 2000 or 5000. */
const QUALITY = sql`CASE WHEN search_text LIKE '%2160p%' OR search_text LIKE '%uhd%' THEN 45
  WHEN search_text LIKE '%1080%' OR search_text LIKE '%720p%' THEN 40 ELSE 30 END`;

interface Row {
  readonly id: number;
  readonly title: string;
  readonly infohash: string;
  readonly url: string | null;
  readonly created_at: number;
  readonly peers: number | null;
  readonly quality: number;
  readonly series: number;
  readonly film: number;
  readonly anime: number;
}

/** A page of them, and how many there are on all pages. */
export async function libraryTorrents(
  store: Store,
  { query, categories, offset, limit }: TorrentRequest,
): Promise<{ readonly total: number; readonly entries: readonly LibraryTorrent[] }> {
  const db = await store.read();
  const selection = selectionOf({ query, hasInfohash: true, isEnabled: true });
  const wanted = categories === null ? [] : [isAmong(new Set(categories))];
  const where = sql.join([selection.where, sql`is_live <> 1`, ...wanted], sql` AND `);
  const ids = await matchesOf(store).of(db, { ...selection, where });
  // The library lists the oldest first.
  const end = Math.max(0, ids.length - offset);
  const page = ids.slice(Math.max(0, end - limit), end).reverse();
  if (page.length === 0) return { total: ids.length, entries: [] };
  const { rows } = await sql<Row>`SELECT playlist_items.id, title, infohash, url, created_at, item_checks.peers,
      ${QUALITY} AS quality, ${IS_SERIES} AS series, ${IS_FILM} AS film, ${IS_ANIME} AS anime
    FROM ${among(page)} LEFT JOIN item_checks ON item_checks.hash = ${LASTING_HASH} WHERE is_deleted = 0`.execute(db);
  return { total: ids.length, entries: rows.map(torrentOf) };
}

function torrentOf({ id, title, infohash, url, created_at, peers, quality, series, film, anime }: Row): LibraryTorrent {
  return {
    ...{ id, title, infohashHex: infohash.toLowerCase(), url, addedS: created_at, peers },
    categories: [
      ...series ? [5000 + quality, ...anime ? [ANIME] : []] : [],
      ...film ? [2000 + quality] : [],
    ],
  };
}

function isAmong(asked: ReadonlySet<number>): RawBuilder<unknown> {
  const of = (base: number, kind: RawBuilder<unknown>, more: readonly RawBuilder<unknown>[]) => {
    if (asked.has(base)) return [kind];
    const qualities = [30, 40, 45].filter((quality) => asked.has(base + quality));
    const any = [...qualities.length === 0 ? [] : [sql`${QUALITY} IN (${sql.join(qualities)})`], ...more];
    return any.length === 0 ? [] : [sql`(${kind} AND (${sql.join(any, sql` OR `)}))`];
  };
  const conditions = [...of(2000, IS_FILM, []), ...of(5000, IS_SERIES, asked.has(ANIME) ? [IS_ANIME] : [])];
  return conditions.length === 0 ? sql`0` : sql`(${sql.join(conditions, sql` OR `)})`;
}
