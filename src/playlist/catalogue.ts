/** The library as devices browse it: categories, and pages of what this engine can play, oldest first. */
import { type RawBuilder, sql } from "kysely";
import { foldText } from "../database/names.ts";
import type { Store } from "../database/store.ts";
import type { Clock } from "../ports.ts";

/** One item. */
export interface CatalogueItem {
  readonly id: number;
  readonly title: string;
  /** 1 live, 0 not, -1 unknown. */
  readonly isLive: number;
  /** True when its torrent is known to have several media files. */
  readonly isMulti: boolean;
  /** Address of its picture; empty when it has none. */
  readonly picture: string;
}

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
  | { readonly kind: "constant"; readonly value: boolean };

/** Selects items, and a page of them; absent fields do not restrict. */
export interface CatalogueRequest extends PageBounds {
  readonly category?: string;
  readonly isFavorite?: boolean;
  readonly filter?: CatalogueFilter;
}

/** SQL condition for items that this engine plays: the same items for which `selectorOf` returns a selector. */
const PLAYABLE = sql`is_deleted = 0 AND enabled = 1 AND transport_type = 'bt'
  AND (infohash <> '' OR content_id IS NOT NULL OR url IS NOT NULL)`;
/** The index of titles holds every run of this many characters; shorter words need a scan. */
const MIN_INDEXED_CHARS = 3;

/**
 * How long a count is reused, ms: a device that reads a long list page by page asks for the same number each time,
 * and counting 100,000 items takes as long as reading 20 pages of them.
 */
const BELIEVED_MS = 2000;
/** Lists whose count is remembered. */
const MAX_REMEMBERED = 64;

/** Facts about a list, remembered for `BELIEVED_MS`. */
interface Remembered {
  readonly atMs: number;
  readonly total: number;
  /** The page that begins at `offset` follows the item `afterId`, so that SQLite need not skip `offset` rows. */
  offset: number;
  afterId: number;
}

/** Reads the library of one engine. */
export class Catalogue {
  readonly #store: Store;
  readonly #clock: Clock;
  /** By the list's name or conditions; the oldest is first. */
  readonly #lists = new Map<string, Remembered>();
  #version: { readonly atMs: number; readonly value: Promise<number> } | null = null;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** A page of the items that match. */
  async items({ offset, limit, ...wanted }: CatalogueRequest): Promise<CataloguePage<CatalogueItem>> {
    const db = await this.#store.read();
    const where = sql`${PLAYABLE} AND ${conditionOf(wanted)}`;
    const list = await this.#list(JSON.stringify(wanted), async () => {
      const { rows } = await sql<{ total: number }>`SELECT count(*) AS total FROM playlist_items WHERE ${where}`
        .execute(db);
      return rows[0]?.total ?? 0;
    });
    const isAfter = offset >= list.offset;
    const { rows } = await sql<Row>`SELECT ${COLUMNS} FROM playlist_items
      WHERE ${where} AND id > ${isAfter ? list.afterId : 0}
      ORDER BY id LIMIT ${limit} OFFSET ${isAfter ? offset - list.offset : offset}`.execute(db);
    const last = rows.at(-1);
    if (last !== undefined) Object.assign(list, { offset: offset + rows.length, afterId: last.id });
    return { total: list.total, entries: rows.map(itemOf) };
  }

  /** The item with this id; null when there is none that this engine plays. */
  async item(id: number): Promise<CatalogueItem | null> {
    const { rows } = await sql<Row>`SELECT ${COLUMNS} FROM playlist_items WHERE ${PLAYABLE} AND id = ${id}`
      .execute(await this.#store.read());
    return rows[0] === undefined ? null : itemOf(rows[0]);
  }

  /** A page of the categories that have playable items, by name, each with the number of those items. */
  async categories(
    { offset, limit }: PageBounds,
  ): Promise<CataloguePage<{ readonly name: string; readonly items: number }>> {
    const db = await this.#store.read();
    const where = sql`${PLAYABLE} AND category <> ''`;
    const list = await this.#list("categories", async () => {
      const { rows } = await sql<{ total: number }>`
        SELECT count(DISTINCT category) AS total FROM playlist_items WHERE ${where}`.execute(db);
      return rows[0]?.total ?? 0;
    });
    if (limit === 0) return { total: list.total, entries: [] };
    const { rows } = await sql<{ name: string; items: number }>`SELECT category AS name, count(*) AS items
      FROM playlist_items WHERE ${where} GROUP BY category ORDER BY category LIMIT ${limit} OFFSET ${offset}`.execute(
      db,
    );
    return { total: list.total, entries: rows };
  }

  /** A 32-bit number that changes within `BELIEVED_MS` after items were added, changed or removed. */
  version(): Promise<number> {
    const nowMs = this.#clock.monotonic();
    if (this.#version === null || nowMs - this.#version.atMs >= BELIEVED_MS) {
      this.#version = { atMs: nowMs, value: this.#readVersion() };
    }
    return this.#version.value;
  }

  async #list(name: string, count: () => Promise<number>): Promise<Remembered> {
    const nowMs = this.#clock.monotonic();
    const known = this.#lists.get(name);
    if (known !== undefined && nowMs - known.atMs < BELIEVED_MS) return known;
    const list = { atMs: nowMs, total: await count(), offset: 0, afterId: 0 };
    this.#lists.delete(name);
    this.#lists.set(name, list);
    if (this.#lists.size > MAX_REMEMBERED) this.#lists.delete(this.#lists.keys().next().value!);
    return list;
  }

  async #readVersion(): Promise<number> {
    const { rows } = await sql<{ newest: number | null; last: number | null; total: number }>`
      SELECT max(updated_at) AS newest, max(id) AS last, count(*) AS total FROM playlist_items WHERE ${PLAYABLE}`
      .execute(await this.#store.read());
    const { newest = 0, last = 0, total = 0 } = rows[0] ?? {};
    return ((newest ?? 0) * 31 + (last ?? 0) * 7 + total) >>> 0;
  }
}

interface Row {
  readonly id: number;
  readonly title: string;
  readonly is_live: number;
  readonly is_multi: number;
  readonly picture: string;
}

const COLUMNS = sql`id, title, is_live, is_multi_tfile AND is_live <> 1 AS is_multi,
  iif(poster <> '', poster, iif(tvg_logo LIKE 'data:%', '', tvg_logo)) AS picture`;

function itemOf({ id, title, is_live, is_multi, picture }: Row): CatalogueItem {
  return { id, title, isLive: is_live, isMulti: Boolean(is_multi), picture };
}

function conditionOf({ category, isFavorite, filter }: Omit<CatalogueRequest, keyof PageBounds>): RawBuilder<unknown> {
  const conditions = [sql`1`];
  if (category !== undefined) conditions.push(sql`category = ${category}`);
  if (isFavorite !== undefined) conditions.push(sql`is_favorite = ${Number(isFavorite)}`);
  if (filter !== undefined) conditions.push(filterOf(filter));
  return sql.join(conditions, sql` AND `);
}

function filterOf(filter: CatalogueFilter): RawBuilder<unknown> {
  switch (filter.kind) {
    case "constant":
      return filter.value ? sql`1` : sql`0`;
    case "live":
      return filter.value ? sql`is_live = 1` : sql`is_live <> 1`;
    case "title": {
      const text = foldText(filter.text);
      const found = filter.test === "is" ? sql`search_text = ${text}` : containing(text);
      return filter.negated ? sql`NOT (${found})` : found;
    }
    default:
      return sql`(${sql.join(filter.of.map(filterOf), filter.kind === "all" ? sql` AND ` : sql` OR `)})`;
  }
}

function containing(text: string): RawBuilder<unknown> {
  if ([...text].length >= MIN_INDEXED_CHARS) {
    return sql`id IN (SELECT rowid FROM playlist_search WHERE playlist_search MATCH ${`"${
      text.replaceAll('"', '""')
    }"`})`;
  }
  return sql`search_text LIKE ${`%${text.replaceAll(/[\\%_]/g, "\\$&")}%`} ESCAPE '\\'`;
}
