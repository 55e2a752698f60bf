/** Counts the items of each category, in turns along the index of categories. */
import { type RawBuilder, sql } from "kysely";
import { StepSize } from "../bytes/step-size.ts";
import { nextTurn } from "../bytes/turn.ts";
import type { Store } from "../database/store.ts";
import { type Db, libraryVersion } from "./matches.ts";

/** A category that has items. */
export interface Category {
  readonly name: string;
  readonly items: number;
}

/** Most categories returned: more than any list has. */
const MAX_CATEGORIES = 5000;
/** Items looked at in one statement, at least and at most. */
const MIN_LOOKED_AT = 200;
const MAX_LOOKED_AT = 5000;
/** The same with a server, where each statement is a round trip. */
const LOOKED_AT_BY_SERVER = 100_000;
/** Answers remembered: each owner has one. */
const MAX_REMEMBERED = 8;

/** The categories of the playlist, remembered until an item changes. */
export class Categories {
  readonly #store: Store;
  /** By condition; the oldest is first. */
  readonly #known = new Map<string, { readonly version: number; readonly counted: Promise<readonly Category[]> }>();

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * By name, with the number of items of the playlist that fulfil `where`, a condition on rows of `playlist_items`; null: of
   * all. Those without an item are left out.
   */
  async of(where: RawBuilder<unknown> | null): Promise<readonly Category[]> {
    const db = await this.#store.read();
    const version = await libraryVersion(db);
    const compiled = where?.compile(db);
    const name = compiled === undefined ? "" : JSON.stringify([compiled.sql, compiled.parameters]);
    const known = this.#known.get(name);
    if (known?.version === version) return await known.counted;
    const entry = { version, counted: this.#count(db, where) };
    this.#known.delete(name);
    this.#known.set(name, entry);
    if (this.#known.size > MAX_REMEMBERED) this.#known.delete(this.#known.keys().next().value!);
    let isUnchanged = false;
    try {
      const counted = await entry.counted;
      isUnchanged = await libraryVersion(db) === version;
      return counted;
    } finally {
      if (!isUnchanged && this.#known.get(name) === entry) this.#known.delete(name);
    }
  }

  async #count(db: Db, where: RawBuilder<unknown> | null): Promise<readonly Category[]> {
    const items = where === null ? sql`count(*)` : sql`count(*) FILTER (WHERE ${where})`;
    // Without a condition the index of categories is enough.
    const rows = where === null ? sql`` : sql`CROSS JOIN playlist_items ON playlist_items.id = candidate.id`;
    const size = new StepSize(MIN_LOOKED_AT, MAX_LOOKED_AT);
    const counted: { name: string; items: number }[] = [];
    let after = { name: "", id: 0 };
    for (;;) {
      const count = this.#store.isRemote ? LOOKED_AT_BY_SERVER : size.value;
      // One category may continue in the next statement. The row of its last item says where that begins.
      const { rows: counts } = await size.run(() =>
        sql<{ name: string; items: number; last: number; looked: number }>`
          SELECT candidate.category AS name, ${items} AS items, max(candidate.id) AS last,
            count(*) AS looked
          FROM (SELECT category, id FROM playlist_items WHERE is_deleted = 0
            AND (category, id) > (${after.name}, ${after.id}) ORDER BY category, id LIMIT ${count}) AS candidate
          ${rows}
          GROUP BY candidate.category ORDER BY candidate.category`.execute(db)
      );
      let looked = 0;
      for (const row of counts) {
        looked += row.looked;
        after = { name: row.name, id: row.last };
        if (row.items === 0 || row.name === "") continue;
        const last = counted.at(-1);
        if (last?.name === row.name) last.items += row.items;
        else if (counted.length === MAX_CATEGORIES) return counted;
        else counted.push({ name: row.name, items: row.items });
      }
      if (looked < count) return counted;
      await nextTurn();
    }
  }
}
