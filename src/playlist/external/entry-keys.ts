/**
 * Recognises entries that have not changed since the last update. Where one of a hundred changed, the others cost no more than
 * being read: they are neither staged nor compared with their items.
 */
import { sql } from "kysely";
import { StepSize } from "../../bytes/step-size.ts";
import { nextTurn } from "../../bytes/turn.ts";
import type { Store } from "../../database/store.ts";
import type { ListFacts } from "../entry.ts";
import type { M3uEntry } from "../m3u/m3u-entry.ts";

/** To be raised whenever the same entry makes another item than before, or items of unchanged entries stay as they are. */
const ENTRY_VERSION = 2;
/** Items read in one statement, at least and at most. */
const MIN_READ = 200;
const MAX_READ = 5000;

/** The items of a list, before its entries are read. */
export class KnownItems {
  /** Items that the last list had, by the key of their entry. */
  readonly #byKey = new Map<number, number>();
  /** Items without an unchanged entry so far; true: the last list had them, and they are neither in the trash nor locked. */
  readonly #free = new Map<number, boolean>();
  /** Those that do not stand where their ids are in the order of the library. */
  readonly #sortKeys = new Map<number, number>();
  /** Items for which the value in `#free` was true at first. */
  #present = 0;

  /** Reads them, in turns. */
  static async load(store: Store, id: number): Promise<KnownItems> {
    const known = new KnownItems();
    const db = await store.open();
    const size = new StepSize(MIN_READ, MAX_READ);
    for (let after = 0;;) {
      const { rows } = await size.run(() =>
        sql<
          Row
        >`SELECT id, entry_key, sort_key, vanished_at IS NULL AS is_here, is_deleted = 0 AND locked = 0 AS is_shown
          FROM playlist_items WHERE external_playlist_id = ${id} AND id > ${after} ORDER BY id LIMIT ${size.value}`
          .execute(db)
      );
      for (const row of rows) {
        const isPresent = row.is_here === 1 && row.is_shown === 1;
        known.#free.set(row.id, isPresent);
        if (row.sort_key !== null) known.#sortKeys.set(row.id, row.sort_key);
        if (isPresent) known.#present++;
        // One that vanished changes by coming back.
        if (row.entry_key !== null && row.is_here === 1) known.#byKey.set(row.entry_key, row.id);
      }
      const last = rows[rows.length - 1];
      if (last === undefined) return known;
      after = last.id;
      await nextTurn();
    }
  }

  /** Items that the list had at its last update, without those in the trash and locked ones. */
  get present(): number {
    return this.#present;
  }

  /** Returns the item that is as the entry with this key says, which from then on is no longer free; null without one. */
  settle(key: number): number | null {
    const item = this.#byKey.get(key);
    if (item === undefined) return null;
    this.#byKey.delete(key);
    return this.#free.delete(item) ? item : null;
  }

  /** Where an item stands in the order of the library. */
  sortKeyOf(item: number): number {
    return this.#sortKeys.get(item) ?? item;
  }

  /** True when the list has no items at all, not even in the trash. */
  get isNone(): boolean {
    return this.#free.size === 0;
  }

  /** Whether an item has no unchanged entry. */
  isFree(item: number): boolean {
    return this.#free.has(item);
  }

  /** The free items, oldest first; true as in `present`. */
  get free(): Iterable<[id: number, isPresent: boolean]> {
    return this.#free;
  }
}

interface Row {
  readonly id: number;
  readonly entry_key: number | null;
  readonly sort_key: number | null;
  readonly is_here: 0 | 1;
  readonly is_shown: 0 | 1;
}

/** What `entryKey` needs to know of the list, as one text. */
export function factsKey({ header, category, isBroadcast }: Omit<ListFacts, "groups">): string {
  return JSON.stringify([ENTRY_VERSION, category, isBroadcast, header]);
}

/** 53 bits of all that makes an item of an entry: among 500,000 entries two share them once in 70,000 lists. */
export function entryKey(
  { url, title, durationSeconds, attributes, group, directives }: M3uEntry,
  facts: string,
): number {
  const text = JSON.stringify([url, title, durationSeconds, attributes, group, directives]) + facts;
  // Two sums of FNV-1a with different beginnings and primes.
  let low = 0x811c9dc5;
  let high = 0x2f6b1d4a;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    low = Math.imul(low ^ code, 0x01000193);
    high = Math.imul(high ^ code, 0x5bd1e995) ^ (high >>> 15);
  }
  return (high & 0x1fffff) * 2 ** 32 + (low >>> 0);
}
