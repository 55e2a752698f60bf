/**
 * Finds out which items a filter selects, in turns and in the order of the library, and remembers it until an item changes. A page of a list, its total
 * and its channels then cost no more than the page: nothing but the first call after a change looks at the whole library.
 */
import { type Kysely, type RawBuilder, sql, type Transaction } from "kysely";
import { StepSize } from "../bytes/step-size.ts";
import { nextTurn } from "../bytes/turn.ts";
import type { Schema } from "../database/schema.ts";
import type { Store } from "../database/store.ts";

/** A connection to read from. */
export type Db = Kysely<Schema> | Transaction<Schema>;

/** Some items of the library. */
export interface ItemSelection {
  /** Ids among which they are looked for, all of them reached through an index: `SELECT … AS id … WHERE …`. */
  readonly candidates: RawBuilder<unknown>;
  /** The column of `candidates` that is the id. */
  readonly key: RawBuilder<unknown>;
  /** Condition on the row of `playlist_items`. */
  readonly where: RawBuilder<unknown>;
  /**
   * Candidates to go on with after the first `MAX_LOOKED_AT`, in the same order and with the same condition. The index of
   * titles finds few titles at once, but among 100,000 of them it takes 10 ms and more to go on where it was.
   */
  readonly others?: Pick<ItemSelection, "candidates" | "key">;
  /** Only the oldest item of each channel. Default false. */
  readonly perChannel?: boolean;
  /** Looks no further once so many were found. Default: all. */
  readonly limit?: number;
}

/** Candidates of one statement, at least and at most: 5000 take some 5 ms, in which the engine does nothing else. */
const MIN_LOOKED_AT = 200;
const MAX_LOOKED_AT = 5000;
/** The same with a server: nobody waits for the statement but its caller, and each is a round trip. */
const LOOKED_AT_BY_SERVER = 100_000;
/** Ids remembered, over all selections: 16 MB, two selections of everything in a library of a million. */
const MAX_IDS = 2_000_000;
/** Selections remembered. */
const MAX_SELECTIONS = 64;

/**
 * SQL expression for a number that is the same for all items of a channel: the id of the oldest, wherever that is. The index
 * of media groups begins with it.
 */
const CHANNEL = sql`(SELECT min(member.id) FROM playlist_items AS member
  WHERE member.media_group = playlist_items.media_group)`;

/** An item that does not stand where its id is. */
interface Moved {
  readonly id: number;
  readonly sort_key: number;
}

interface Known {
  readonly version: number;
  readonly ids: Promise<Float64Array>;
  /** Length of `ids`; 0 until they are found. */
  count: number;
}

/** Returns a number that changes with every change of an item, as `db` sees it. */
export async function libraryVersion(db: Db): Promise<number> {
  return (await db.selectFrom("playlist_version").select("version").executeTakeFirstOrThrow()).version;
}

/** Looks at the next `count` candidates after the id `after`: how many there were, the last, and which are selected. */
export function lookStatement(
  { candidates, key, where, perChannel = false }: ItemSelection,
  after: number,
  count: number,
): RawBuilder<{ last: number | null; looked: number; ids: string; channels: string }> {
  const channels = perChannel ? sql`, json_group_array(${CHANNEL}) FILTER (WHERE ${where}) AS channels` : sql``;
  return sql`SELECT max(candidate.id) AS last, count(*) AS looked,
      json_group_array(playlist_items.id) FILTER (WHERE ${where}) AS ids${channels}
    FROM (${candidates} AND ${key} > ${after} ORDER BY ${key} LIMIT ${count}) AS candidate
    LEFT JOIN playlist_items ON playlist_items.id = candidate.id`;
}

/** What was found out about the library of one store. */
export class Matches {
  readonly #isRemote: boolean;
  /** By statement; the one that was used longest ago is first. */
  readonly #known = new Map<string, Known>();

  /** `isRemote`: the database is a server. */
  constructor(isRemote: boolean) {
    this.#isRemote = isRemote;
  }

  /**
   * The ids of the items selected, as the library lists them: the oldest first, but those of an external list in its order. Do
   * not change the array: others get the same.
   */
  async of(db: Db, selection: ItemSelection): Promise<Float64Array> {
    const version = await libraryVersion(db);
    const { sql: text, parameters } = lookStatement(selection, 0, 0).compile(db);
    const name = JSON.stringify([text, parameters, selection.limit]);
    const known = this.#known.get(name);
    if (known?.version === version) {
      this.#known.delete(name);
      this.#known.set(name, known);
      return await known.ids;
    }
    const found: Known = { version, ids: this.#find(db, selection), count: 0 };
    this.#known.delete(name);
    this.#known.set(name, found);
    try {
      const ids = await found.ids;
      found.count = ids.length;
      // Outside a snapshot items may have changed meanwhile: the result is a mixture then.
      if (await libraryVersion(db) !== version) this.#forget(name, found);
      this.#shrink();
      return ids;
    } catch (error) {
      this.#forget(name, found);
      throw error;
    }
  }

  async #find(db: Db, selection: ItemSelection): Promise<Float64Array> {
    const { perChannel = false, limit = Infinity } = selection;
    const size = new StepSize(MIN_LOOKED_AT, MAX_LOOKED_AT);
    const found: number[] = [];
    const channels = new Set<number>();
    for (let after = 0;;) {
      const isFirst = after === 0;
      const count = this.#isRemote ? LOOKED_AT_BY_SERVER : isFirst && selection.others ? MAX_LOOKED_AT : size.value;
      const look = lookStatement(isFirst ? selection : { ...selection, ...selection.others }, after, count);
      const { rows: [row] } = await size.run(() => look.execute(db));
      const ids = JSON.parse(row!.ids) as number[];
      const theirs = perChannel ? JSON.parse(row!.channels) as number[] : ids;
      for (const [at, id] of ids.entries()) {
        if (perChannel && channels.has(theirs[at]!)) continue;
        if (perChannel) channels.add(theirs[at]!);
        found.push(id);
      }
      if (row!.looked < count || row!.last === null || found.length >= limit) break;
      after = row!.last;
      await nextTurn();
    }
    return await this.#inOrder(db, Float64Array.from(found.length > limit ? found.slice(0, limit) : found));
  }

  /** Puts `ids`, which ascend, into the order of the library. */
  async #inOrder(db: Db, ids: Float64Array): Promise<Float64Array> {
    const size = new StepSize(MIN_LOOKED_AT, MAX_LOOKED_AT);
    const moved: Moved[] = [];
    for (let [key, id] = [Number.MIN_SAFE_INTEGER, 0];;) {
      const count = this.#isRemote ? LOOKED_AT_BY_SERVER : size.value;
      const { rows } = await size.run(() =>
        sql<Moved>`SELECT id, sort_key FROM playlist_items WHERE sort_key IS NOT NULL
          AND (sort_key, id) > (${key}, ${id}) ORDER BY sort_key, id LIMIT ${count}`.execute(db)
      );
      for (const row of rows) moved.push(row);
      const last = rows.at(-1);
      if (last === undefined || rows.length < count) break;
      [key, id] = [last.sort_key, last.id];
      await nextTurn();
    }
    if (moved.length === 0) return ids;
    const isMoved = new Set(moved.map(({ id }) => id));
    const wanted = new Set<number>();
    const ordered: number[] = [];
    for (const id of ids) if (isMoved.has(id)) wanted.add(id);
    const those = moved.filter(({ id }) => wanted.has(id));
    let next = 0;
    for (const id of ids) {
      if (isMoved.has(id)) continue;
      while (next < those.length && those[next]!.sort_key < id) ordered.push(those[next++]!.id);
      ordered.push(id);
    }
    while (next < those.length) ordered.push(those[next++]!.id);
    return Float64Array.from(ordered);
  }

  #forget(name: string, entry: Known): void {
    if (this.#known.get(name) === entry) this.#known.delete(name);
  }

  #shrink(): void {
    let ids = 0;
    for (const { count } of this.#known.values()) ids += count;
    for (const [name, { count }] of this.#known) {
      if (ids <= MAX_IDS && this.#known.size <= MAX_SELECTIONS) return;
      this.#known.delete(name);
      ids -= count;
    }
  }
}

/** One per store, so that all its readers share the bound. */
const PER_STORE = new WeakMap<Store, Matches>();

/** The `Matches` of a store. */
export function matchesOf(store: Store): Matches {
  let matches = PER_STORE.get(store);
  if (matches === undefined) PER_STORE.set(store, matches = new Matches(store.isRemote));
  return matches;
}
