/** Reads the playlist and its trash: which items a filter selects, and pages of them as JSON. */
import { type RawBuilder, sql } from "kysely";
import { nextTurn } from "../bytes/turn.ts";
import { foldText } from "../database/names.ts";
import { itemJson, type ItemJsonOptions } from "./item-json.ts";
import type { Db, ItemSelection } from "./matches.ts";

/** Selects the items to list. */
export interface ItemFilter {
  readonly owner?: string | undefined;
  /** Words or parts of words of the title, in any order; case and diacritics do not matter. */
  readonly query?: string | undefined;
  readonly category?: string | undefined;
  /** true: only favourites; false: only the others. */
  readonly isFavorite?: boolean | undefined;
  /** true: only enabled items; false: only the others. */
  readonly isEnabled?: boolean | undefined;
  /** true: only items whose infohash is known. Default false. */
  readonly hasInfohash?: boolean | undefined;
  /** The trash instead of the playlist. Default false. */
  readonly trash?: boolean;
}

/** A page of the playlist. */
export interface ListRequest extends ItemFilter, ItemJsonOptions {
  readonly offset?: number | undefined;
  readonly limit?: number | undefined;
}

/** Items per query: some 400 KB, and a few milliseconds in which the engine does nothing else. */
const PAGE_ITEMS = 500;
/** The index of titles holds every run of this many characters. Shorter queries look at all titles. */
const MIN_INDEXED_CHARS = 3;
/** Most words of a query that are looked for one by one; titles have fewer. */
const MAX_WORDS = 16;

/** The items that the filter selects. A query of three characters or more begins with what the index of titles has. */
export function selectionOf(filter: ItemFilter): ItemSelection {
  const words = wordsOf(filter).filter(isIndexed);
  const all = listed(filter.trash === true, filter.category);
  return { ...words.length > 0 ? { ...titlesWith(...words), others: all } : all, where: isSelected(filter) };
}

/** SQL condition that a row of `playlist_items` is one of the items that the filter selects. */
export function isSelected(filter: ItemFilter): RawBuilder<unknown> {
  return allOf([...conditionsOf(filter), ...wordsOf(filter).map(titleContains)]);
}

/** The folded words of the query; more than `MAX_WORDS` count as one. */
function wordsOf({ query = "" }: ItemFilter): string[] {
  const words = foldText(query).split(/\s+/).filter((word) => word !== "");
  return words.length <= MAX_WORDS ? words : [words.join(" ")];
}

/** The items of the playlist or the trash, or of one of its categories, as candidates. */
export function listed(isTrash: boolean, category?: string): Pick<ItemSelection, "candidates" | "key"> {
  const key = sql`id`;
  const place = sql`SELECT id FROM playlist_items WHERE is_deleted = ${Number(isTrash)}`;
  if (category === undefined) return { key, candidates: place };
  // SQLite merges the two, of which both have ascending ids; no item is in both.
  const both =
    sql`${place} AND category = ${category} UNION ALL SELECT item_id FROM item_groups WHERE name = ${category}`;
  return { key, candidates: sql`SELECT id FROM (${both}) WHERE true` };
}

/** SQL condition that a row of `playlist_items` has this category, or a further group of that name. */
export function isIn(category: string): RawBuilder<unknown> {
  return sql`(playlist_items.category = ${category}
    OR EXISTS (SELECT 1 FROM item_groups WHERE name = ${category} AND item_id = playlist_items.id))`;
}

/** Items whose titles contain `texts`, which `foldText` returned and `isIndexed` accepts, as candidates. */
export function titlesWith(...texts: readonly string[]): Pick<ItemSelection, "candidates" | "key"> {
  const phrase = texts.map((text) => `"${text.replaceAll('"', '""')}"`).join(" AND ");
  return {
    key: sql`rowid`,
    candidates: sql`SELECT rowid AS id FROM playlist_search WHERE playlist_search MATCH ${phrase}`,
  };
}

/** True when the index of titles can find a text that `foldText` returned. */
export function isIndexed(text: string): boolean {
  return [...text].length >= MIN_INDEXED_CHARS;
}

/** SQL condition that an item's title contains a text that `foldText` returned. */
export function titleContains(text: string): RawBuilder<unknown> {
  return sql`playlist_items.search_text LIKE ${`%${text.replaceAll(/[\\%_]/g, "\\$&")}%`} ESCAPE '\\'`;
}

function conditionsOf(
  { owner, category, isFavorite, isEnabled, hasInfohash, trash }: ItemFilter,
): RawBuilder<unknown>[] {
  const conditions = [sql`playlist_items.is_deleted = ${trash === true ? 1 : 0}`];
  if (owner !== undefined && owner !== "") conditions.push(sql`playlist_items.owner IN ('', ${owner})`);
  if (category !== undefined) conditions.push(isIn(category));
  if (isFavorite !== undefined) conditions.push(sql`playlist_items.is_favorite = ${Number(isFavorite)}`);
  if (isEnabled !== undefined) conditions.push(sql`playlist_items.enabled = ${Number(isEnabled)}`);
  if (hasInfohash === true) conditions.push(sql`playlist_items.infohash <> ''`);
  return conditions;
}

function allOf(conditions: readonly RawBuilder<unknown>[]): RawBuilder<unknown> {
  return sql.join(conditions, sql` AND `);
}

/**
 * Yields the items of `ids` as JSON objects separated by commas, in their order, in parts: UTF-8, each of whole items. Those
 * that have left the playlist or the trash meanwhile are left out. `as` is the form in which the database returns them.
 */
export async function* itemsJson(
  db: Db,
  ids: Float64Array,
  { trash = false, ...options }: Pick<ListRequest, "trash" | keyof ItemJsonOptions>,
  as: "text" | "bytes",
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const item = itemJson(trash ? "trash" : "playlist", options);
  // A local file returns bytes: making a non-ASCII string only to encode it again takes longer than the query.
  // A server returns text: some clients decode bytes more slowly.
  const type = sql.raw(as === "text" ? "TEXT" : "BLOB");
  const encoder = new TextEncoder();
  let separator = "";
  for (let at = 0; at < ids.length; at += PAGE_ITEMS) {
    if (at > 0) await nextTurn();
    const { rows: [page] } = await sql<{ body: string | ArrayBuffer | null }>`
      SELECT CAST(${separator} || group_concat(item, ',') AS ${type}) AS body FROM (
        SELECT ${item} AS item FROM ${among(ids.subarray(at, at + PAGE_ITEMS))}
        WHERE is_deleted = ${Number(trash)}
      )`.execute(db);
    if (page === undefined || page.body === null) continue;
    separator = ",";
    yield typeof page.body === "string" ? encoder.encode(page.body) : new Uint8Array(page.body);
  }
}

/** SQL for FROM: the items with these ids, in the order of the ids. */
export function among(ids: Float64Array, name: "playlist_items" | "head" = "playlist_items"): RawBuilder<unknown> {
  const items = sql.raw(name === "head" ? "playlist_items AS head" : name);
  const values = JSON.stringify([...ids]);
  // The inner SELECT hides the other columns of json_each, one of which is called id.
  return sql`(SELECT value AS wanted_id FROM json_each(${values})) AS wanted
    CROSS JOIN ${items} ON ${sql.ref(`${name}.id`)} = wanted.wanted_id`;
}
