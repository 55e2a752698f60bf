/** Turns staged and matched entries into items: adds new ones, updates changed ones, and keeps what the user changed. */
import { sql, type Transaction } from "kysely";
import { StepSize } from "../../bytes/step-size.ts";
import { nextTurn } from "../../bytes/turn.ts";
import { searchText } from "../../database/names.ts";
import type { Schema } from "../../database/schema.ts";
import type { Store } from "../../database/store.ts";
import { abortError, MillraceError } from "../../errors.ts";
import { BATCH_ENTRIES, type EntryFields, STATEMENT_ENTRIES } from "../entry.ts";
import { ENTRY_COLUMNS, insertRows, insertText } from "../item-rows.ts";
import type { PlaylistItem } from "../items.ts";
import { editedColumns } from "../edit.ts";
import { EDITED } from "../overlay.ts";
import type { SharedIds } from "../shared-ids.ts";

/** Columns of items that a refresh may write. */
const WRITTEN = [
  ...ENTRY_COLUMNS,
  "entry_key",
  "first_hash",
  "first_hash_v2",
  "enabled",
  "is_deleted",
  "vanished_at",
  "enabled_before",
  "updated_at",
] as const;
const UPDATE = `UPDATE playlist_items SET ${
  WRITTEN.map((name) => `${name} = made.value ->> '${name}'`).join(", ")
} FROM json_each(`;

/** Items read in one statement while finding out which vanished, at least and at most. */
const MIN_MARKED = 100;
const MAX_MARKED = 5000;

/** The entries that this update has staged, as counts. */
export interface Expected {
  /** Entries, and how many of them match an item. */
  readonly rows: number;
  readonly matched: number;
  /** Items that have no entry. */
  readonly lost: readonly number[];
}

/** The staged entries belong to another engine on the same database, which began to read the list after this one. */
function overtaken(): MillraceError {
  return new MillraceError("conflict", "another engine is reading this list just now");
}

/** True while the list exists: it may be deleted at any time, with everything that came from it. */
async function exists(trx: Transaction<Schema>, id: number): Promise<boolean> {
  const list = await trx.selectFrom("external_playlists").select("id").where("id", "=", id).executeTakeFirst();
  return list !== undefined;
}

/**
 * Disables the items that no entry matches (`lost`); locked ones stay as they are. Call before `applyEntries`. Rejects with
 * `conflict`, and changes nothing, when the staged entries are no longer what `expected` says.
 */
export async function markVanished(store: Store, id: number, now: number, expected: Expected): Promise<void> {
  const db = await store.open();
  await db.transaction().execute(async (trx) => {
    const found = await trx.selectFrom("external_entries").where("external_playlist_id", "=", id)
      .select((eb) => [eb.fn.countAll<number>().as("rows"), eb.fn.count<number>("item_id").as("matched")])
      .executeTakeFirstOrThrow();
    if (!await exists(trx, id)) return;
    if (found.rows !== expected.rows || found.matched !== expected.matched) throw overtaken();
    const size = new StepSize(MIN_MARKED, MAX_MARKED);
    for (let from = 0; from < expected.lost.length;) {
      await nextTurn();
      const part = expected.lost.slice(from, from + size.value);
      await size.run(() =>
        sql`UPDATE playlist_items
          SET vanished_at = ${now}, enabled_before = enabled, enabled = 0, updated_at = ${now}
          WHERE id IN (SELECT value FROM json_each(${JSON.stringify(part)})) AND is_deleted = 0 AND locked = 0
            AND vanished_at IS NULL`.execute(trx)
      );
      from += part.length;
    }
  });
}

/** Moves items that vanished before `limit` (Unix seconds) to the trash, except favourites and locked ones. */
export async function sweepVanished(store: Store, limit: number, now: number): Promise<void> {
  const db = await store.open();
  const size = new StepSize(MIN_MARKED, MAX_MARKED);
  for (let vanishedAt = 0, after = 0;;) {
    const { rows } = await sql<{ id: number; vanished_at: number }>`SELECT id, vanished_at FROM playlist_items
      WHERE vanished_at IS NOT NULL AND vanished_at <= ${limit} AND (vanished_at, id) > (${vanishedAt}, ${after})
      ORDER BY vanished_at, id LIMIT ${size.value}`.execute(db);
    const last = rows[rows.length - 1];
    if (last === undefined) return;
    const ids = JSON.stringify(rows.map(({ id }) => id));
    await size.run(() =>
      sql`UPDATE playlist_items SET is_deleted = 1, updated_at = ${now}
        WHERE id IN (SELECT value FROM json_each(${ids})) AND vanished_at <= ${limit} AND is_deleted = 0 AND locked = 0
          AND is_favorite = 0`.execute(db)
    );
    [vanishedAt, after] = [last.vanished_at, last.id];
    await nextTurn();
  }
}

/** The staged entries. */
export interface Applied {
  /** As in `Staged`. */
  readonly isFresh: boolean;
  readonly rows: number;
  /** The ids of the whole list. */
  readonly ids: SharedIds;
  /** Where new items do not come last: their `sort_key`, by position. */
  readonly sortKeys: ReadonlyMap<number, number>;
}

/**
 * Adds and updates the staged entries, batch by batch; each batch is one transaction.
 *
 * @throws `conflict`: as `markVanished`
 */
export async function applyEntries(
  store: Store,
  id: number,
  { isFresh, rows, ids, sortKeys }: Applied,
  now: number,
  signal: AbortSignal,
): Promise<void> {
  const db = await store.open();
  const perStatement = isFresh ? 1 : STATEMENT_ENTRIES;
  const perBatch = isFresh ? BATCH_ENTRIES / STATEMENT_ENTRIES : BATCH_ENTRIES;
  for (let from = 0; from < rows; from += perBatch) {
    if (signal.aborted) throw abortError(signal);
    const end = Math.min(from + perBatch, rows);
    const isOver = await db.transaction().execute(async (trx) => {
      if (!await exists(trx, id)) return true;
      for (let at = from; at < end; at += perStatement) {
        if (isFresh) await addRow(trx, id, at, now);
        else await applyPart(trx, { id, ids, sortKeys, now }, at, Math.min(at + perStatement, end));
        await nextTurn();
      }
      return false;
    });
    if (isOver) return;
  }
}

/** Adds the items of the row at `position`. Those whose ids are none are separated when all are there: `ungroup`. */
async function addRow(trx: Transaction<Schema>, id: number, position: number, now: number): Promise<void> {
  const text = sql`(SELECT fields FROM external_entries
    WHERE external_playlist_id = ${id} AND position = ${position} AND hash = '')`;
  const added = await insertText(trx, text, { owner: "", external_playlist_id: id, allow_private: 0, now });
  if (added === 0) throw overtaken();
}

/** Applies the entries at the positions from `from` to before `end`. */
async function applyPart(
  trx: Transaction<Schema>,
  { id, ids: sharedIds, sortKeys, now }: Omit<Applied, "rows" | "isFresh"> & {
    readonly id: number;
    readonly now: number;
  },
  from: number,
  end: number,
): Promise<void> {
  const entries = await trx.selectFrom("external_entries").select(["fields", "item_id"])
    .where("external_playlist_id", "=", id).where("position", ">=", from).where("position", "<", end)
    .orderBy("position").execute();
  if (entries.length !== end - from) throw overtaken();
  const ids = JSON.stringify(entries.flatMap(({ item_id }) => item_id === null ? [] : [item_id]));
  const known = await trx.selectFrom("playlist_items").selectAll()
    .where("id", "in", sql<number>`(SELECT value FROM json_each(${ids}))`).execute();
  const items = new Map(known.map((item) => [item.id, item]));
  const added: EntryFields[] = [];
  const changed: Record<string, unknown>[] = [];
  for (const [index, entry] of entries.entries()) {
    const read = JSON.parse(entry.fields) as EntryFields;
    const fields = sharedIds.all.size === 0 ? read : { ...read, media_group: sharedIds.mediaGroupOf(read) };
    if (entry.item_id === null) {
      added.push({ ...fields, sort_key: sortKeys.get(from + index) ?? null });
      continue;
    }
    // Of a channel that the user deleted for good there is none.
    const item = items.get(entry.item_id);
    if (item === undefined || item.locked === 1) continue;
    const merged = { ...merge(item, fields, sharedIds), ...returned(item) };
    if (WRITTEN.some((name) => name !== "updated_at" && merged[name] !== item[name])) {
      changed.push({ id: item.id, ...merged, updated_at: now });
    }
  }
  await insertRows(trx, added, { owner: "", external_playlist_id: id, allow_private: 0, now });
  if (changed.length > 0) {
    await sql`${sql.raw(UPDATE)}${JSON.stringify(changed)}) AS made WHERE playlist_items.id = made.value ->> 'id'`
      .execute(trx);
  }
}

/** The entry's values, except where the user changed the item. */
function merge(item: PlaylistItem, fields: EntryFields, ids: SharedIds): EntryFields & FirstHashes {
  const isRenamed = (item.edited & EDITED.title) !== 0;
  const title = isRenamed ? item.title : fields.title;
  const kept = editedColumns(item, fields.imported);
  const tvg_id = kept.tvg_id ?? fields.tvg_id;
  return {
    ...fields,
    ...firstHashes(item, fields),
    ...(item.hash === fields.hash ? found(item, fields) : {}),
    ...kept as Partial<EntryFields>,
    title,
    search_text: isRenamed ? searchText(title) : fields.search_text,
    media_group: isRenamed || kept.tvg_id !== undefined ? ids.mediaGroupOf({ title, tvg_id }) : fields.media_group,
    tvg_logo: (item.edited & EDITED.logo) !== 0 ? item.tvg_logo : fields.tvg_logo,
  };
}

type FirstHashes = Pick<PlaylistItem, "first_hash" | "first_hash_v2">;

function firstHashes(item: PlaylistItem, { hash, hash_v2 }: EntryFields): FirstHashes {
  const [first, firstV2] = [item.first_hash ?? item.hash, item.first_hash_v2 ?? item.hash_v2];
  return { first_hash: first === hash ? null : first, first_hash_v2: firstV2 === hash_v2 ? null : firstV2 };
}

/** Returns what an analysis found out about the same content, where the entry itself does not say. */
function found(item: PlaylistItem, fields: EntryFields): Partial<EntryFields> {
  const isLive = fields.is_live === -1 ? item.is_live : fields.is_live;
  return {
    content_id: fields.content_id ?? item.content_id,
    infohash: fields.infohash || item.infohash,
    transport_type: item.transport_type,
    is_live: isLive,
    content_type: isLive === 1 ? "live" : isLive === 0 ? "vod" : "unknown",
  };
}

type Presence = Pick<PlaylistItem, "enabled" | "is_deleted" | "vanished_at" | "enabled_before">;

/** Restores the state from before the item vanished, even out of the trash, if its list has it again. */
function returned(item: PlaylistItem): Presence {
  const { enabled, is_deleted, vanished_at, enabled_before } = item;
  if (vanished_at === null) return { enabled, is_deleted, vanished_at, enabled_before };
  return { enabled: enabled_before ?? enabled, is_deleted: 0, vanished_at: null, enabled_before: null };
}
