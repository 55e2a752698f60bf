/** Reads the playlist and its trash page by page, each through an index. */
import { type Kysely, type RawBuilder, sql, type Transaction } from "kysely";
import { nextTurn } from "../bytes/turn.ts";
import { foldText } from "../database/names.ts";
import type { Schema } from "../database/schema.ts";
import { itemJson } from "./item-json.ts";

/** Selects the items to list. */
export interface ItemFilter {
  readonly owner?: string | undefined;
  /** Part of the title; case and diacritics do not matter. */
  readonly query?: string | undefined;
  readonly category?: string | undefined;
  /** true: only favourites; false: only the others. */
  readonly isFavorite?: boolean | undefined;
  /** The trash instead of the playlist. Default false. */
  readonly trash?: boolean;
}

/** A page of the playlist. */
export interface ListRequest extends ItemFilter {
  readonly offset?: number | undefined;
  readonly limit?: number | undefined;
  /** See `itemJson`. */
  readonly logoUrl?: string | undefined;
}

type Db = Kysely<Schema> | Transaction<Schema>;

/** A filter as SQL: what follows FROM and WHERE, and the column that orders by item id. */
export interface FilterSql {
  readonly from: RawBuilder<unknown>;
  readonly where: RawBuilder<unknown>;
  readonly key: RawBuilder<unknown>;
}

/** Items per query: some 400 KB, and a few milliseconds in which the engine does nothing else. */
const PAGE_ITEMS = 500;
/** The index of titles holds every run of this many characters. Shorter queries scan all titles. */
const MIN_INDEXED_CHARS = 3;

/**
 * See `FilterSql`. A query of three characters or more uses the index of titles, and the join is forced to begin there:
 * SQLite has no statistics to choose that itself.
 */
export function filterSql(filter: ItemFilter): FilterSql {
  const { owner, category, query, isFavorite } = filter;
  const conditions = [sql`is_deleted = ${filter.trash === true ? 1 : 0}`];
  if (owner !== undefined && owner !== "") conditions.push(sql`owner IN ('', ${owner})`);
  if (category !== undefined) conditions.push(sql`category = ${category}`);
  if (isFavorite !== undefined) conditions.push(sql`is_favorite = ${Number(isFavorite)}`);
  const text = foldText(query ?? "");
  const isIndexed = [...text].length >= MIN_INDEXED_CHARS;
  if (isIndexed) conditions.unshift(sql`playlist_search MATCH ${`"${text.replaceAll('"', '""')}"`}`);
  else if (text !== "") conditions.push(sql`playlist_items.search_text LIKE ${likePattern(text)} ESCAPE '\\'`);
  return {
    from: isIndexed
      ? sql`playlist_search CROSS JOIN playlist_items ON playlist_items.id = playlist_search.rowid`
      : sql`playlist_items`,
    where: sql.join(conditions, sql` AND `),
    key: isIndexed ? sql`playlist_search.rowid` : sql`playlist_items.id`,
  };
}

/** Most categories returned: more than any list has. */
const MAX_CATEGORIES = 5000;

/** Categories of the playlist with the number of their items, by name; items without one are left out. */
export async function listCategories(
  db: Db,
  owner: string | undefined,
): Promise<{ readonly name: string; readonly items: number }[]> {
  let query = db.selectFrom("playlist_items").select(({ fn, ref }) => [
    ref("category").$castTo<string>().as("name"),
    fn.countAll<number>().as("items"),
  ]).where("is_deleted", "=", 0).where("category", "is not", null).where("category", "!=", "");
  if (owner) query = query.where("owner", "in", ["", owner]);
  return await query.groupBy("category").orderBy("category").limit(MAX_CATEGORIES).execute();
}

/** Number of items that match, whatever `offset` and `limit` are. */
export async function countItems(db: Db, request: ItemFilter): Promise<number> {
  const { from, where } = filterSql(request);
  const { rows } = await sql<{ total: number }>`SELECT count(*) AS total FROM ${from} WHERE ${where}`.execute(db);
  return rows[0]?.total ?? 0;
}

/**
 * Yields the items that match as JSON objects separated by commas, oldest first, in parts: UTF-8, each of whole items. No
 * item comes twice; unless `db` is a snapshot, changes made meanwhile may or may not be seen. `as` is the form in which the
 * database returns them.
 */
export async function* itemsJson(
  db: Db,
  request: ListRequest,
  as: "text" | "bytes",
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const { from, where, key } = filterSql(request);
  const item = itemJson(request.trash === true ? "trash" : "playlist", request.logoUrl);
  // A local file returns bytes: making a non-ASCII string only to encode it again takes longer than the query.
  // A server returns text: some clients decode bytes more slowly.
  const type = sql.raw(as === "text" ? "TEXT" : "BLOB");
  const encoder = new TextEncoder();
  let left = request.limit ?? Infinity;
  let after = 0;
  if (request.offset !== undefined && request.offset > 0) {
    const skipped = await skipQuery({ from, where, key }, request.offset).execute(db);
    if (skipped.rows[0] === undefined) return;
    after = skipped.rows[0].id;
  }
  for (let separator = ""; left > 0; separator = ",") {
    const size = Math.min(PAGE_ITEMS, left);
    const { rows } = await sql<{ body: string | ArrayBuffer | null; last: number; count: number }>`
      SELECT CAST(${separator} || group_concat(item, ',') AS ${type}) AS body, max(id) AS last, count(*) AS count FROM (
        SELECT id, ${item} AS item FROM ${from} WHERE ${where} AND ${key} > ${after} ORDER BY ${key} LIMIT ${size}
      )`.execute(db);
    const page = rows[0];
    if (page === undefined || page.body === null) return;
    yield typeof page.body === "string" ? encoder.encode(page.body) : new Uint8Array(page.body);
    if (page.count < size) return;
    await nextTurn();
    after = page.last;
    left -= page.count;
  }
}

/** Finds the last item before a page that begins at `offset` > 0. */
export function skipQuery({ from, where, key }: FilterSql, offset: number): RawBuilder<{ id: number }> {
  return sql<{ id: number }>`SELECT ${key} AS id FROM ${from} WHERE ${where} ORDER BY ${key} LIMIT 1 OFFSET ${
    offset - 1
  }`;
}

function likePattern(text: string): string {
  return `%${text.replaceAll(/[\\%_]/g, "\\$&")}%`;
}
