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
    const counts = new Map<string, number>();
    for (const source of [CATEGORIES, MORE_GROUPS]) await this.#add(counts, db, source, where);
    const names = [...counts.keys()].sort((a, b) => a < b ? -1 : 1).slice(0, MAX_CATEGORIES);
    return names.map((name) => ({ name, items: counts.get(name)! }));
  }

  async #add(counts: Map<string, number>, db: Db, source: Source, where: RawBuilder<unknown> | null): Promise<void> {
    const wanted = [...source.condition === null ? [] : [source.condition], ...where === null ? [] : [where]];
    const items = wanted.length === 0 ? sql`count(*)` : sql`count(*) FILTER (WHERE ${sql.join(wanted, sql` AND `)})`;
    // Without a condition the index is enough.
    const rows = wanted.length === 0 ? sql`` : sql`CROSS JOIN playlist_items ON playlist_items.id = candidate.id`;
    const size = new StepSize(MIN_LOOKED_AT, MAX_LOOKED_AT);
    let after = { name: "", id: 0 };
    for (let names = 0; names <= MAX_CATEGORIES;) {
      const count = this.#store.isRemote ? LOOKED_AT_BY_SERVER : size.value;
      // One category may continue in the next statement. The row of its last item says where that begins.
      const { rows: found } = await size.run(() =>
        sql<{ name: string; items: number; last: number; looked: number }>`
          SELECT candidate.name AS name, ${items} AS items, max(candidate.id) AS last, count(*) AS looked
          FROM (${source.after(after.name, after.id)} LIMIT ${count}) AS candidate ${rows}
          GROUP BY candidate.name ORDER BY candidate.name`.execute(db)
      );
      let looked = 0;
      for (const row of found) {
        looked += row.looked;
        if (row.name !== after.name) names++;
        after = { name: row.name, id: row.last };
        if (row.items > 0 && row.name !== "") counts.set(row.name, (counts.get(row.name) ?? 0) + row.items);
      }
      if (looked < count) return;
      await nextTurn();
    }
  }
}

/** An index of names and items. */
interface Source {
  /** The names and ids after a name and an id, in the order of the index. */
  readonly after: (name: string, id: number) => RawBuilder<unknown>;
  /** Condition on the items, where the index has more than those of the playlist. */
  readonly condition: RawBuilder<unknown> | null;
}

const CATEGORIES: Source = {
  after: (name, id) =>
    sql`SELECT category AS name, id FROM playlist_items WHERE is_deleted = 0 AND (category, id) > (${name}, ${id})
      ORDER BY category, id`,
  condition: null,
};
const MORE_GROUPS: Source = {
  after: (name, id) =>
    sql`SELECT name, item_id AS id FROM item_groups WHERE (name, item_id) > (${name}, ${id}) ORDER BY name, item_id`,
  condition: sql`playlist_items.is_deleted = 0`,
};
