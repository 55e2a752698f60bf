/**
 * Stages the entries of a list in the database until all are there: only a list that was read to its end may change items,
 * and memory then holds no more of each entry than a key.
 */
import { sql, type Transaction } from "kysely";
import { toHex } from "../../bytes/hex.ts";
import { nextTurn } from "../../bytes/turn.ts";
import type { Schema } from "../../database/schema.ts";
import type { Store } from "../../database/store.ts";
import { abortError, MillraceError } from "../../errors.ts";
import { EntryBatch, entryFields, entryName, groupOf, inStatements, type ListFacts } from "../entry.ts";
import { guidesOf, readM3u } from "../m3u/read.ts";
import { hashIs } from "../identity.ts";
import { SharedIds } from "../shared-ids.ts";
import type { M3uEntry, M3uHeader } from "../m3u/types.ts";
import type { TaskError } from "../tasks.ts";

/** Staged entries deleted in one statement. */
const CLEARED_AT_ONCE = 2000;
/** Entries matched in one statement. */
const MATCHED_AT_ONCE = 500;
/** Longest key of an entry that is kept as it is, characters: nearly all are shorter. */
const MAX_KEY_CHARS = 200;
/** Most entries of one list. Longer lists are refused, not cut: items missing from the beginning may be in the rest. */
const MAX_ENTRIES = 500_000;

/** A list that was read. */
export interface Staged {
  readonly entries: number;
  /** Entries staged, without duplicates and those that the user deleted. */
  readonly rows: number;
  readonly guides: readonly string[];
  readonly ids: SharedIds;
}

/** The list to stage. */
export interface StageRequest {
  readonly id: number;
  readonly body: ReadableStream<Uint8Array>;
  /** True when one layer of gzip was undone already; another is refused. Default false. */
  readonly isUnpacked?: boolean | undefined;
  readonly baseUrl: string;
  /** Largest list, bytes, packed or not. */
  readonly maxBytes: number;
  readonly facts: Omit<ListFacts, "header">;
  readonly report: (error: TaskError) => void;
  readonly signal: AbortSignal;
}

/**
 * Reads and stages the list; takes only the first of several entries with the same address, title and group. Rejects as
 * `readM3u`, and with `too_large` for more than 500,000 entries, `invalid_argument` for none.
 */
export async function stage(store: Store, request: StageRequest): Promise<Staged> {
  const { id, signal, baseUrl, maxBytes, isUnpacked = false } = request;
  const db = await store.open();
  await clearStage(store, id);
  const removedRows = await db.selectFrom("external_removed").select("hash").where("external_playlist_id", "=", id)
    .execute();
  const removed = new Set(removedRows.map(({ hash }) => hash));
  const seen = new Map<string, number>();
  const known = new Set<string>();
  const ids = new SharedIds();
  let header: M3uHeader = { attributes: {} };
  let entries = 0;
  let position = 0;
  const batch = new EntryBatch();
  const flush = async () => {
    if (signal.aborted) throw abortError(signal);
    const facts = { ...request.facts, header: header.attributes };
    const write = (trx: Transaction<Schema>) => async (part: readonly M3uEntry[]) => {
      const all = part.map((entry) => ({ entry, fields: entryFields(entry, facts) }));
      for (const { fields } of all) ids.add(fields);
      const rows = all.filter(({ fields }) => !removed.has(fields.hash)).map(({ entry, fields }) => {
        const nth = seen.get(fields.hash) ?? 0;
        seen.set(fields.hash, nth + 1);
        const name = entryName(fields, entry);
        return { position: position++, hash: fields.hash, nth, name, fields: JSON.stringify(fields) };
      });
      if (rows.length === 0) return;
      await sql`INSERT INTO external_entries (external_playlist_id, position, hash, nth, name, fields)
        SELECT ${id}, value ->> 'position', value ->> 'hash', value ->> 'nth', value ->> 'name', value ->> 'fields'
        FROM json_each(${JSON.stringify(rows)})`.execute(trx);
    };
    await db.transaction().execute((trx) => inStatements(batch.take(), write(trx)));
  };
  const limits = { maxBytes, maxUnpackedBytes: maxBytes, isUnpacked, maxEntries: MAX_ENTRIES + 1 };
  for await (const event of readM3u(request.body, { baseUrl, signal, ...limits })) {
    if (event.kind === "header") header = event.header;
    else if (event.kind === "error") request.report(event.error);
    else {
      if (++entries > MAX_ENTRIES) {
        throw new MillraceError("too_large", `the list has more than ${MAX_ENTRIES} entries`);
      }
      const key = await keyOf(event.entry);
      if (known.has(key)) continue;
      known.add(key);
      if (batch.push(event.entry)) await flush();
    }
  }
  await flush();
  if (entries === 0) {
    throw new MillraceError("invalid_argument", "the list has no entries; the items of the last update stay");
  }
  return { entries, rows: position, guides: guidesOf(header), ids };
}

/** Key made of address, title and group; long ones become their SHA-256, or 500,000 could take hundreds of MB. */
async function keyOf(entry: M3uEntry): Promise<string> {
  const key = JSON.stringify([entry.url, entry.title, groupOf(entry)]);
  if (key.length <= MAX_KEY_CHARS) return key;
  return toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key))));
}

/** Deletes the staged entries. */
export async function clearStage(store: Store, id: number): Promise<void> {
  const db = await store.open();
  for (let from = 0;; from += CLEARED_AT_ONCE) {
    const { numDeletedRows } = await db.deleteFrom("external_entries").where("external_playlist_id", "=", id)
      .where("position", "<", from + CLEARED_AT_ONCE).executeTakeFirstOrThrow();
    if (numDeletedRows === 0n) return;
    await nextTurn();
  }
}

/**
 * Finds the item of each staged entry: first by content (among entries with the same content the first entry gets the first
 * item, the second the second), then, since addresses change, by `tvg-id` and title. Returns how many entries have an item, and which items have none.
 */
export async function match(store: Store, id: number, signal: AbortSignal): Promise<Matched> {
  const db = await store.open();
  let matched = 0;
  const assign = async (pairs: readonly { position: number; item: number }[]) => {
    if (pairs.length === 0) return;
    matched += pairs.length;
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
    for (const item of items) append(byHash, item.hash, item.id);
    await assign(page.flatMap(({ position, hash, nth }) => {
      const item = byHash.get(hash)?.[nth];
      return item === undefined ? [] : [{ position, item }];
    }));
  }
  const { free, present, shown } = await freeItems(store, id);
  for (let after = -1; free.size > 0;) {
    await nextTurn();
    if (signal.aborted) throw abortError(signal);
    const page = await db.selectFrom("external_entries").select(["position", "name"])
      .where("external_playlist_id", "=", id).where("position", ">", after).where("item_id", "is", null)
      .orderBy("position").limit(MATCHED_AT_ONCE).execute();
    const last = page[page.length - 1];
    if (last === undefined) break;
    after = last.position;
    await assign(page.flatMap(({ position, name }) => {
      const item = free.get(name)?.shift();
      if (item === undefined) return [];
      shown.delete(item);
      return [{ position, item }];
    }));
  }
  return { matched, present, lost: shown.size };
}

/** What the staged entries are to the items of their list. */
export interface Matched {
  /** Entries that have an item. */
  readonly matched: number;
  /** Items that the list had at its last update, without those in the trash and locked ones. */
  readonly present: number;
  /** How many of them have no entry any more. */
  readonly lost: number;
}

interface FreeItems {
  /** Items that no entry matches yet, by name, oldest first. */
  readonly free: Map<string, number[]>;
  /** As in `Matched`. */
  readonly present: number;
  /** Which of those `present` are among `free`. */
  readonly shown: Set<number>;
}

async function freeItems(store: Store, id: number): Promise<FreeItems> {
  const db = await store.open();
  const free = new Map<string, number[]>();
  const shown = new Set<number>();
  let present = 0;
  for (let after = 0;;) {
    const { rows } = await sql<FreeItem>`
      SELECT id, tvg_id, imported ->> 'title' AS title,
        EXISTS (SELECT 1 FROM external_entries WHERE item_id = item.id) AS taken,
        is_deleted = 0 AND locked = 0 AND vanished_at IS NULL AS is_present
      FROM playlist_items AS item WHERE external_playlist_id = ${id} AND id > ${after}
      ORDER BY id LIMIT ${MATCHED_AT_ONCE}`.execute(db);
    const last = rows[rows.length - 1];
    if (last === undefined) break;
    for (const row of rows) {
      present += row.is_present;
      if (row.taken === 1) continue;
      append(free, entryName(row, row), row.id);
      if (row.is_present === 1) shown.add(row.id);
    }
    after = last.id;
    await nextTurn();
  }
  return { free, present, shown };
}

interface FreeItem {
  readonly id: number;
  readonly tvg_id: string;
  readonly title: string;
  readonly taken: 0 | 1;
  readonly is_present: 0 | 1;
}

function append(lists: Map<string, number[]>, key: string, value: number): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
