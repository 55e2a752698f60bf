/** Finds the item of each staged entry, although addresses and titles change. */
import { sql } from "kysely";
import { nextTurn } from "../../bytes/turn.ts";
import { channelId } from "../../database/names.ts";
import type { Store } from "../../database/store.ts";
import { abortError } from "../../errors.ts";
import { entryName } from "../entry.ts";
import { hashIs } from "../identity.ts";
import type { Removed, Staged } from "./stage.ts";

/** Entries matched in one statement. */
const MATCHED_AT_ONCE = 500;

/** What the staged entries are to the items of their list. */
export interface Matched {
  /** Entries that have an item, or are of a channel that the user deleted for good. */
  readonly matched: number;
  /** Items that the list had at its last update, without those in the trash and locked ones. */
  readonly present: number;
  /** Which of them have no entry any more. */
  readonly lost: readonly number[];
  /** The items of the entries that have one, by position. */
  readonly items: ReadonlyMap<number, number>;
}

/** An entry and its item. A negative item stands for `removed[-item - 1]`, a channel that the user deleted for good. */
interface Pair {
  readonly position: number;
  readonly item: number;
}

/**
 * Finds the item of each staged entry: first by content (among entries with the same content the first entry gets the first
 * item, the second the second), then, since addresses change, by `tvg-id` and title, then by a `tvg-id` that only one item
 * and one entry have. Entries of channels that the user deleted for good are found in the same way.
 */
export async function match(
  store: Store,
  id: number,
  staged: Pick<Staged, "isFresh" | "removed" | "ids" | "items" | "settledIds">,
  signal: AbortSignal,
): Promise<Matched> {
  if (staged.isFresh) return { matched: 0, present: 0, lost: [], items: new Map() };
  const { removed, ids } = staged;
  const db = await store.open();
  let matched = 0;
  const itemAt = new Map<number, number>();
  const assign = async (pairs: readonly Pair[]) => {
    if (pairs.length === 0) return;
    matched += pairs.length;
    for (const { position, item } of pairs) if (item >= 0) itemAt.set(position, item);
    // An insert that always conflicts: unlike an update it finds each row by the primary key.
    await sql`INSERT INTO external_entries (external_playlist_id, position, hash, nth, name, fields, item_id)
      SELECT ${id}, value ->> 'position', '', 0, '', '', value ->> 'item' FROM json_each(${JSON.stringify(pairs)})
      WHERE true ON CONFLICT (external_playlist_id, position) DO UPDATE SET item_id = excluded.item_id`.execute(db);
  };
  for (let from = 0;; from += MATCHED_AT_ONCE) {
    await nextTurn();
    if (signal.aborted) throw abortError(signal);
    const page = await db.selectFrom("external_entries").select(["position", "hash", "nth"])
      .where("external_playlist_id", "=", id).where("position", ">=", from)
      .where("position", "<", from + MATCHED_AT_ONCE).execute();
    if (page.length === 0) break;
    const hashes = JSON.stringify([...new Set(page.map(({ hash }) => hash))]);
    const { rows: items } = await sql<{ id: number; hash: string }>`SELECT playlist_items.id, hash
      FROM json_each(${hashes}) AS wanted CROSS JOIN playlist_items ON ${hashIs("hash", sql`wanted.value`)}
      WHERE +external_playlist_id = ${id} ORDER BY playlist_items.id`.execute(db);
    const byHash = new Map<string, number[]>();
    for (const item of items) if (staged.items.isFree(item.id)) append(byHash, item.hash, item.id);
    await assign(page.flatMap(({ position, hash, nth }) => {
      const item = byHash.get(hash)?.[nth];
      return item === undefined ? [] : [{ position, item }];
    }));
  }
  const free = await freeItems(store, staged);
  const moved: Pair[] = [];
  const take = async (pairs: readonly Pair[]) => {
    for (const pair of pairs) {
      free.shown.delete(pair.item);
      if (pair.item < 0) moved.push(pair);
    }
    await assign(pairs);
  };
  const unmatched = async (visit: (page: readonly Unmatched[]) => Promise<void>) => {
    for (let after = -1; free.byName.size > 0;) {
      await nextTurn();
      if (signal.aborted) throw abortError(signal);
      const page = await db.selectFrom("external_entries").select(["position", "name"])
        .select(sql<string>`fields ->> 'tvg_id'`.as("tvg_id"))
        .where("external_playlist_id", "=", id).where("position", ">", after).where("item_id", "is", null)
        .orderBy("position").limit(MATCHED_AT_ONCE).execute();
      const last = page[page.length - 1];
      if (last === undefined) break;
      after = last.position;
      await visit(page);
    }
  };
  /** Positions of the entries that have neither address nor name of an item, by id; -1: several. */
  const byId = new Map<string, number>();
  await unmatched(async (page) => {
    const pairs: Pair[] = [];
    for (const { position, name, tvg_id } of page) {
      const item = free.byName.get(name)?.shift();
      if (item !== undefined) pairs.push({ position, item });
      else if (tvg_id !== "") {
        const key = channelId(tvg_id);
        if (key !== "" && !ids.all.has(key)) byId.set(key, byId.has(key) ? -1 : position);
      }
    }
    await take(pairs);
  });
  const pairs: Pair[] = [];
  const left = new Set([...free.byName.values()].flat());
  for (const [key, position] of byId) {
    const item = free.byId.get(key);
    if (position >= 0 && item !== undefined && left.has(item)) pairs.push({ position, item });
  }
  for (let from = 0; from < pairs.length; from += MATCHED_AT_ONCE) {
    await nextTurn();
    await take(pairs.slice(from, from + MATCHED_AT_ONCE));
  }
  await followRemoved(store, id, removed, moved);
  return { matched, present: staged.items.present, lost: [...free.shown], items: itemAt };
}

/** Notes the present addresses of channels that the user deleted for good. */
async function followRemoved(
  store: Store,
  id: number,
  removed: readonly Removed[],
  moved: readonly Pair[],
): Promise<void> {
  const db = await store.open();
  for (let from = 0; from < moved.length; from += MATCHED_AT_ONCE) {
    const part = moved.slice(from, from + MATCHED_AT_ONCE)
      .map(({ position, item }) => ({ position, hash: removed[-item - 1]!.hash }));
    await sql`UPDATE OR REPLACE external_removed SET hash = entry.hash,
        tvg_id = entry.fields ->> 'tvg_id', title = entry.fields ->> 'title'
      FROM json_each(${JSON.stringify(part)}) AS made CROSS JOIN external_entries AS entry
        ON entry.external_playlist_id = ${id} AND entry.position = made.value ->> 'position'
      WHERE external_removed.external_playlist_id = ${id}
        AND external_removed.hash = made.value ->> 'hash'`.execute(db);
    await nextTurn();
  }
}

interface Unmatched {
  readonly position: number;
  readonly name: string;
  readonly tvg_id: string;
}

interface FreeItems {
  /** Items that no entry matches yet, by name, oldest first; then channels that the user deleted for good. */
  readonly byName: Map<string, number[]>;
  /** The item whose id no other has, taken or not, by `channelId`; 0 where several have it. */
  readonly byId: Map<string, number>;
  /** Which of those `present` have no entry. */
  readonly shown: Set<number>;
}

async function freeItems(
  store: Store,
  { removed, items, settledIds }: Pick<Staged, "removed" | "items" | "settledIds">,
): Promise<FreeItems> {
  const db = await store.open();
  const byName = new Map<string, number[]>();
  const byId = new Map<string, number>();
  const shown = new Set<number>();
  const note = (item: number, tvg_id: string, title: string, isTaken: boolean) => {
    const key = channelId(tvg_id);
    if (key !== "") byId.set(key, byId.has(key) || settledIds.has(key) ? 0 : item);
    if (!isTaken) append(byName, entryName({ tvg_id }, { title }), item);
  };
  const all = [...items.free];
  for (let from = 0; from < all.length; from += MATCHED_AT_ONCE) {
    const part = all.slice(from, from + MATCHED_AT_ONCE);
    const { rows } = await sql<FreeItem>`
      SELECT id, tvg_id, imported ->> 'title' AS title,
        EXISTS (SELECT 1 FROM external_entries WHERE item_id = item.id) AS taken
      FROM playlist_items AS item WHERE id IN (SELECT value FROM json_each(${JSON.stringify(part.map(([id]) => id))}))
      ORDER BY id`.execute(db);
    const isPresent = new Map(part);
    for (const row of rows) {
      note(row.id, row.tvg_id, row.title, row.taken === 1);
      if (row.taken === 0 && isPresent.get(row.id)) shown.add(row.id);
    }
    await nextTurn();
  }
  // An older release did not note their names.
  for (const [at, { tvg_id, title }] of removed.entries()) if (title !== null) note(-at - 1, tvg_id, title, false);
  return { byName, byId, shown };
}

interface FreeItem {
  readonly id: number;
  readonly tvg_id: string;
  readonly title: string;
  readonly taken: 0 | 1;
}

function append(lists: Map<string, number[]>, key: string, value: number): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
