/** Searches the playlist for titles, by item or by channel. */
import { sql } from "kysely";
import { nextTurn } from "../bytes/turn.ts";
import type { Store } from "../database/store.ts";
import { foundJson, iconsJson, itemJson, type ItemJsonOptions } from "./item-json.ts";
import { among, isSelected, selectionOf } from "./listing.ts";
import { matchesOf } from "./matches.ts";

/** A search and the page of results wanted. */
export interface SearchRequest extends ItemJsonOptions {
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
  /**
   * Finds only items with an infohash and returns them as `foundJson` does with this time, Unix seconds. Default: all items,
   * as `playlist_get` has them.
   */
  readonly foundAtS?: number | undefined;
}

/** One result: a channel, or a single item. */
export interface SearchResult {
  readonly name: string;
  /** Addresses of pictures, a JSON list. */
  readonly icons: string;
  /** Items as JSON. */
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
/** Items of one channel, from the oldest that matches, among which the matching ones are looked for: more than any list has. */
const MAX_MEMBERS = 1000;
/** Results per statement: with the most items each that is 15 ms. */
const RESULTS_AT_ONCE = 25;

/** Enabled items that match, in the order of the library; channels where their oldest item stands. */
export async function searchItems(store: Store, request: SearchRequest): Promise<SearchPage> {
  const { page, pageSize, groupByChannels: perChannel } = request;
  const filter = { ...request, isEnabled: true, hasInfohash: request.foundAtS !== undefined };
  const db = await store.read();
  const ids = await matchesOf(store).of(db, { ...selectionOf(filter), perChannel });
  const wanted = ids.subarray(page * pageSize, (page + 1) * pageSize);
  const item = request.foundAtS === undefined ? itemJson("playlist", request) : foundJson(request.foundAtS);
  const icons = iconsJson(request.logoUrl);
  const isFound = isSelected(filter);
  const results: SearchResult[] = [];
  for (let at = 0; at < wanted.length; at += RESULTS_AT_ONCE) {
    if (at > 0) await nextTurn();
    const some = wanted.subarray(at, at + RESULTS_AT_ONCE);
    if (!perChannel) {
      const { rows } = await sql<{ name: string; icons: string; item: string }>`
        SELECT title AS name, ${icons} AS icons, ${item} AS item FROM ${among(some)} WHERE ${isFound}`.execute(db);
      for (const { name, icons, item } of rows) results.push({ name, icons, items: [item] });
      continue;
    }
    // A JSON text in a list of JSON texts is a string: it is not parsed here.
    const { rows } = await sql<{ name: string; icons: string; items: string }>`
      SELECT head.title AS name, ${icons} AS icons, (SELECT json_group_array(CAST(item AS TEXT)) FROM (
        SELECT ${item} AS item FROM (SELECT * FROM playlist_items
          WHERE media_group = head.media_group AND id >= head.id ORDER BY id LIMIT ${MAX_MEMBERS}) AS playlist_items
        WHERE ${isFound} LIMIT ${MAX_ITEMS})) AS items
      FROM ${among(some, "head")}`.execute(db);
    for (const { name, icons, items } of rows) {
      const theirs = JSON.parse(items) as string[];
      if (theirs.length > 0) results.push({ name, icons, items: theirs });
    }
  }
  return { total: ids.length, results };
}
