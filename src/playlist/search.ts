/** Searches the playlist for titles, by item or by channel. */
import { type RawBuilder, sql } from "kysely";
import type { Store } from "../database/store.ts";
import { itemJson } from "./item-json.ts";
import { filterSql } from "./listing.ts";

/** A search and the page of results wanted. */
export interface SearchRequest {
  /** Part of the title; empty: everything. */
  readonly query: string;
  /** From 0. */
  readonly page: number;
  readonly pageSize: number;
  readonly category?: string | undefined;
  readonly isFavorite?: boolean | undefined;
  readonly owner?: string | undefined;
  /** True when there is one result per channel, with all its items. */
  readonly groupByChannels: boolean;
  /** See `itemJson`. */
  readonly logoUrl?: string | undefined;
}

/** One result: a channel, or a single item. */
export interface SearchResult {
  readonly name: string;
  /** Items as JSON, as `playlist_get` has them. */
  readonly items: readonly string[];
}

/** A page of results. */
export interface SearchPage {
  /** Results on all pages. */
  readonly total: number;
  readonly results: readonly SearchResult[];
}

/** Most items of one channel in a result. */
const MAX_ITEMS = 100;

/** Enabled items that match, oldest first; channels by their oldest item. */
export async function searchItems(store: Store, request: SearchRequest): Promise<SearchPage> {
  const db = await store.read();
  const { from, where: filter, key } = filterSql(request);
  const where = sql`${filter} AND enabled = 1`;
  const page = sql`LIMIT ${request.pageSize} OFFSET ${request.page * request.pageSize}`;
  const item = itemJson("playlist", request.logoUrl);
  const count = request.groupByChannels ? sql`count(DISTINCT media_group)` : sql`count(*)`;
  const total = await one(sql`SELECT ${count} AS n FROM ${from} WHERE ${where}`);
  if (!request.groupByChannels) {
    const { rows } = await sql<{ name: string; item: string }>`
      SELECT title AS name, ${item} AS item FROM ${from} WHERE ${where} ORDER BY ${key} ${page}`.execute(db);
    return { total, results: rows.map(({ name, item }) => ({ name, items: [item] })) };
  }
  const { rows } = await sql<{ media_group: string; first: number }>`
    SELECT media_group, min(${key}) AS first FROM ${from} WHERE ${where}
    GROUP BY media_group ORDER BY first ${page}`.execute(db);
  const results: SearchResult[] = [];
  for (const { media_group } of rows) {
    const items = await sql<{ name: string; item: string }>`
      SELECT title AS name, ${item} AS item FROM ${from} WHERE ${where} AND media_group = ${media_group}
      ORDER BY ${key} LIMIT ${MAX_ITEMS}`.execute(db);
    const [first] = items.rows;
    if (first !== undefined) results.push({ name: first.name, items: items.rows.map(({ item }) => item) });
  }
  return { total, results };

  async function one(query: RawBuilder<unknown>): Promise<number> {
    const { rows } = await query.execute(db);
    return (rows[0] as { n: number } | undefined)?.n ?? 0;
  }
}
