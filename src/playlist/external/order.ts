/**
 * Puts the items of a list into the list's order with as few changes as possible. The order of the library is that of the
 * items' ids, which is the order in which they came; `sort_key` stands for the id of an item that belongs elsewhere.
 */
import { sql } from "kysely";
import { isTurnDue, nextTurn } from "../../bytes/turn.ts";
import type { Store } from "../../database/store.ts";
import { BATCH_ENTRIES, STATEMENT_ENTRIES } from "../entry.ts";
import type { Staged } from "./stage.ts";

/** An item is put this far behind or before its neighbour at most: what other lists have there is not mixed up with it. */
const REACH = 0.5;
/** Keys of neighbours differ by at least this part of themselves: a few bits more than a double needs. */
const LEAST_STEP = 2 ** -48;
/** Items looked at between two looks at the clock. */
const LOOKED_AT_ONCE = 4096;

/**
 * Returns the keys for a list's entries, given those of their items in the list's order (NaN: a new item, whose id will be
 * larger than all keys). NaN in the result: the item stays where it is, or comes last.
 */
export async function sortKeys(before: Float64Array): Promise<Float64Array> {
  const after = new Float64Array(before.length).fill(NaN);
  const stays = await longestAscent(before);
  let low = -Infinity;
  for (let at = 0; at < before.length;) {
    if (at % LOOKED_AT_ONCE === 0 && isTurnDue()) await nextTurn();
    if (stays[at] === 1) {
      low = before[at++]!;
      continue;
    }
    let end = at;
    while (end < before.length && stays[end] === 0) end++;
    const high = end < before.length ? before[end]! : Infinity;
    // New items come last by themselves.
    let last = end;
    if (high === Infinity) { while (last > at && Number.isNaN(before[last - 1]!)) last--; }
    if (!spread(after, at, last, low, high)) return spaced(before);
    at = end;
  }
  return after;
}

/** What puts a list in order. */
export interface Order {
  /** Keys of new items, by position. */
  readonly added: ReadonlyMap<number, number>;
  /** New keys of items that are here, by id. */
  readonly moved: ReadonlyMap<number, number>;
}

/** Finds out which entries do not stand where their list has them. `itemAt`: the items of staged entries, by position. */
export async function orderOf(
  { sequence, items }: Pick<Staged, "sequence" | "items">,
  itemAt: ReadonlyMap<number, number>,
): Promise<Order> {
  const added = new Map<number, number>();
  const moved = new Map<number, number>();
  const itemOf = (one: number) => one >= 0 ? one : itemAt.get(-1 - one);
  const before = Float64Array.from(sequence, (one) => {
    const item = itemOf(one);
    return item === undefined ? NaN : items.sortKeyOf(item);
  });
  const after = await sortKeys(before);
  for (const [at, key] of after.entries()) {
    if (Number.isNaN(key) || key === before[at]) continue;
    const item = itemOf(sequence[at]!);
    if (item === undefined) added.set(-1 - sequence[at]!, key);
    else moved.set(item, key);
  }
  return { added, moved };
}

/** Sets the keys from `from` to before `to` to values between `low` and `high`; false when there is no room for them. */
function spread(keys: Float64Array, from: number, to: number, low: number, high: number): boolean {
  if (from === to) return true;
  const begin = low === -Infinity ? high === Infinity ? 0 : high - REACH : low;
  const step = (Math.min(high, begin + REACH) - begin) / (to - from + 1);
  if (step <= Math.abs(begin + REACH) * LEAST_STEP) return false;
  for (let at = from; at < to; at++) keys[at] = begin + step * (at - from + 1);
  return true;
}

/** Keys for all entries at equal distances, between the smallest and the largest that there are. */
function spaced(before: Float64Array): Float64Array {
  let [low, high] = [Infinity, -Infinity];
  for (const key of before) {
    if (key < low) low = key;
    if (key > high) high = key;
  }
  const step = Math.max(high - low, REACH) / before.length;
  return before.map((_, at) => low + step * at);
}

/** Marks with 1 the entries of one of the longest ascending runs that leaving out the others gives. */
async function longestAscent(keys: Float64Array): Promise<Uint8Array> {
  /** By length less 1: the entry with the smallest key that ends such a run. */
  const ends = new Int32Array(keys.length);
  const previous = new Int32Array(keys.length);
  let length = 0;
  for (let at = 0; at < keys.length; at++) {
    if (at % LOOKED_AT_ONCE === 0 && isTurnDue()) await nextTurn();
    const key = keys[at]!;
    if (Number.isNaN(key)) continue;
    let [low, high] = [0, length];
    // Nearly all lists are in order: then each entry goes on where the last one was.
    if (length > 0 && keys[ends[length - 1]!]! < key) low = length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (keys[ends[middle]!]! < key) low = middle + 1;
      else high = middle;
    }
    previous[at] = low === 0 ? -1 : ends[low - 1]!;
    ends[low] = at;
    if (low === length) length++;
  }
  const stays = new Uint8Array(keys.length);
  for (let at = length === 0 ? -1 : ends[length - 1]!; at >= 0; at = previous[at]!) stays[at] = 1;
  return stays;
}

/** Stores new keys of items, in turns. */
export async function storeSortKeys(store: Store, keys: ReadonlyMap<number, number>): Promise<void> {
  if (keys.size === 0) return;
  const db = await store.open();
  const all = [...keys].map(([id, key]) => ({ id, key }));
  for (let from = 0; from < all.length; from += BATCH_ENTRIES) {
    const end = Math.min(from + BATCH_ENTRIES, all.length);
    await db.transaction().execute(async (trx) => {
      for (let at = from; at < end; at += STATEMENT_ENTRIES) {
        const part = JSON.stringify(all.slice(at, Math.min(at + STATEMENT_ENTRIES, end)));
        await sql`UPDATE playlist_items SET sort_key = made.value ->> 'key' FROM json_each(${part}) AS made
          WHERE playlist_items.id = made.value ->> 'id'`.execute(trx);
        await nextTurn();
      }
    });
  }
}
