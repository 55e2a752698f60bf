/** The library as devices browse it: categories, and pages of what this engine can play, in the order of the library. */
import { type RawBuilder, sql } from "kysely";
import { foldText } from "../database/names.ts";
import type { Store } from "../database/store.ts";
import { Categories } from "./categories.ts";
import { contentHashes, hashIs } from "./identity.ts";
import { catchupDays } from "./catchup.ts";
import { among, isIn, isIndexed, listed, titleContains, titlesWith } from "./listing.ts";
import { type ItemSelection, libraryVersion, matchesOf } from "./matches.ts";
import { GUIDE_ID } from "./guide/export.ts";
import { HAS_STREAM } from "./playable.ts";
import { type LibraryTorrent, libraryTorrents, type TorrentRequest } from "./torrents.ts";

/** One item. */
export interface CatalogueItem {
  readonly id: number;
  readonly title: string;
  /** 1 live, 0 not, -1 unknown. */
  readonly isLive: number;
  /** True when its torrent is known to have several media files, and it is not one of them. */
  readonly isMulti: boolean;
  /** Address of its picture; empty when it has none. */
  readonly picture: string;
  /** Empty: none. */
  readonly category: string;
  /** Its channel in programme guides; empty: none. */
  readonly tvgId: string;
  /** When it was added, Unix seconds. */
  readonly addedS: number;
  /** How many days of it can be watched later; 0: it has no archive. */
  readonly archiveDays: number;
}

/** How televisions sort items: channels, films, and torrents of several files. Each item is of one kind. */
export type CatalogueKind = "channel" | "film" | "series";

/** A part of a list. */
export interface CataloguePage<T> {
  /** Entries on all pages. */
  readonly total: number;
  readonly entries: readonly T[];
}

/** Position of a page in its list. */
export interface PageBounds {
  readonly offset: number;
  readonly limit: number;
}

/** A device's search, as a tree of conditions. */
export type CatalogueFilter =
  | { readonly kind: "all" | "any"; readonly of: readonly CatalogueFilter[] }
  | { readonly kind: "title"; readonly test: "contains" | "is"; readonly text: string; readonly negated: boolean }
  /** Items of broadcasts, or all others. */
  | { readonly kind: "live"; readonly value: boolean }
  /** Items that come from peers, not by HTTP. */
  | { readonly kind: "peers" }
  | { readonly kind: "sort"; readonly of: CatalogueKind }
  | { readonly kind: "constant"; readonly value: boolean };

/** Selects items, and a page of them; absent fields do not restrict. */
export interface CatalogueRequest extends PageBounds {
  readonly category?: string;
  readonly isFavorite?: boolean;
  readonly filter?: CatalogueFilter;
}

/** SQL condition for items that this engine plays. */
export const PLAYABLE = sql`is_deleted = 0 AND enabled = 1 AND ${HAS_STREAM}`;

/** Reads the library of one engine. */
export class Catalogue {
  readonly #store: Store;
  readonly #categories: Categories;

  constructor(store: Store) {
    this.#store = store;
    this.#categories = new Categories(store);
  }

  /** A page of the items that match. */
  async items({ offset, limit, ...wanted }: CatalogueRequest): Promise<CataloguePage<CatalogueItem>> {
    const db = await this.#store.read();
    const ids = await matchesOf(this.#store).of(db, selectionOf(wanted));
    if (limit === 0 || offset >= ids.length) return { total: ids.length, entries: [] };
    const { rows } = await sql<Row>`SELECT ${COLUMNS} FROM ${among(ids.subarray(offset, offset + limit))}
      WHERE ${PLAYABLE}`.execute(db);
    return { total: ids.length, entries: rows.map(itemOf) };
  }

  /** The item with this id; null when there is none that this engine plays. */
  async item(id: number): Promise<CatalogueItem | null> {
    const { rows } = await sql<Row>`SELECT ${COLUMNS} FROM playlist_items WHERE ${PLAYABLE} AND id = ${id}`
      .execute(await this.#store.read());
    return rows[0] === undefined ? null : itemOf(rows[0]);
  }

  /** A page of the categories that have playable items that match, by name, each with the number of those items. */
  async categories(
    { offset, limit, filter }: PageBounds & { readonly filter?: CatalogueFilter },
  ): Promise<CataloguePage<{ readonly name: string; readonly items: number }>> {
    const all = await this.#categories.of(filter === undefined ? PLAYABLE : sql`${PLAYABLE} AND ${filterOf(filter)}`);
    return { total: all.length, entries: all.slice(offset, offset + limit) };
  }

  /** A page of the torrents that match, the newest first. */
  async torrents(request: TorrentRequest): Promise<CataloguePage<LibraryTorrent>> {
    return await libraryTorrents(this.#store, request);
  }

  /** Whether an item names the torrent with this infohash, lower-case hex. */
  async hasTorrent(infohash: string): Promise<boolean> {
    const { hash } = contentHashes({ infohash, contentId: null, url: null, title: "" });
    const { rows } = await sql`SELECT 1 FROM playlist_items WHERE is_deleted = 0 AND ${
      hashIs("hash", sql`${hash}`)
    } LIMIT 1`
      .execute(await this.#store.read());
    return rows.length > 0;
  }

  /** A 32-bit number that changes when items were added, changed or removed. */
  async version(): Promise<number> {
    return await libraryVersion(await this.#store.read()) >>> 0;
  }
}

interface Row {
  readonly id: number;
  readonly title: string;
  readonly is_live: number;
  readonly is_multi: number;
  readonly picture: string;
  readonly category: string | null;
  readonly tvg_id: string;
  readonly created_at: number;
  readonly url: string | null;
  /** Of its entry in a list, JSON; null where nothing in them is about an archive. */
  readonly attributes: string | null;
}

const COLUMNS =
  sql`playlist_items.id, title, playlist_items.category, ${GUIDE_ID} AS tvg_id, created_at, is_live, is_multi_tfile AND is_live <> 1 AND file_index IS NULL AS is_multi,
  iif(imported LIKE '%"catchup%', json_extract(imported, '$.attributes'), NULL) AS attributes, playlist_items.url,
  iif(poster <> '', poster, iif(tvg_logo LIKE 'data:%', '', tvg_logo)) AS picture`;

function itemOf(row: Row): CatalogueItem {
  const { id, title, is_live, is_multi, picture, category, tvg_id, created_at, url, attributes } = row;
  return {
    ...{ id, title, isLive: is_live, isMulti: Boolean(is_multi), picture },
    ...{ category: category ?? "", tvgId: tvg_id, addedS: created_at },
    archiveDays: attributes === null ? 0 : catchupDays(url ?? "", JSON.parse(attributes)),
  };
}

/** A torrent of which nothing is known but that it has several files is no channel. */
const IS_SERIES = sql`(is_live <> 1 AND is_multi_tfile = 1 AND file_index IS NULL)`;
const IS_CHANNEL = sql`(is_live = 1 OR (is_live = -1 AND is_multi_tfile = 0))`;
const OF_KIND: Readonly<Record<CatalogueKind, RawBuilder<unknown>>> = {
  channel: IS_CHANNEL,
  series: IS_SERIES,
  film: sql`(NOT ${IS_CHANNEL} AND NOT ${IS_SERIES})`,
};

function selectionOf({ category, isFavorite, filter }: Omit<CatalogueRequest, keyof PageBounds>): ItemSelection {
  const conditions = [PLAYABLE];
  if (category !== undefined) conditions.push(isIn(category));
  if (isFavorite !== undefined) conditions.push(sql`is_favorite = ${Number(isFavorite)}`);
  if (filter !== undefined) conditions.push(filterOf(filter));
  const title = filter === undefined ? null : requiredTitle(filter);
  return {
    ...(title === null ? listed(false, category) : { ...titlesWith(title), others: listed(false, category) }),
    where: sql.join(conditions, sql` AND `),
  };
}

/** Text that the title of every match contains, for the index of titles; null when there is none that it can find. */
function requiredTitle(filter: CatalogueFilter): string | null {
  if (filter.kind === "all") {
    for (const one of filter.of) {
      const title = requiredTitle(one);
      if (title !== null) return title;
    }
  }
  if (filter.kind !== "title" || filter.negated) return null;
  const text = foldText(filter.text);
  return isIndexed(text) ? text : null;
}

function filterOf(filter: CatalogueFilter): RawBuilder<unknown> {
  switch (filter.kind) {
    case "constant":
      return filter.value ? sql`1` : sql`0`;
    case "sort":
      return OF_KIND[filter.of];
    case "live":
      return filter.value ? sql`is_live = 1` : sql`is_live <> 1`;
    case "peers":
      return sql`transport_type = 'bt'`;
    case "title": {
      const text = foldText(filter.text);
      const found = filter.test === "is"
        ? sql`substr(search_text, 1, instr(search_text || char(10), char(10)) - 1) = ${text}`
        : titleContains(text);
      return filter.negated ? sql`NOT (${found})` : found;
    }
    default:
      return sql`(${sql.join(filter.of.map(filterOf), filter.kind === "all" ? sql` AND ` : sql` OR `)})`;
  }
}
