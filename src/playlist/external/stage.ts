/**
 * Stages the entries of a list in the database until all are there: only a list that was read to its end may change items,
 * and memory then holds no more of each entry than a key.
 */
import { type Selectable, sql, type Transaction } from "kysely";
import { toHex } from "../../bytes/hex.ts";
import { nextTurn } from "../../bytes/turn.ts";
import type { ExternalRemovedTable, Schema } from "../../database/schema.ts";
import type { Store } from "../../database/store.ts";
import { abortError, MillraceError } from "../../errors.ts";
import {
  EntryBatch,
  type EntryFields,
  entryFields,
  entryName,
  groupOf,
  inStatements,
  type ListFacts,
} from "../entry.ts";
import { entryKey, factsKey, KnownItems } from "./entry-keys.ts";
import { GroupNames } from "../group-names.ts";
import { guidesOf, readM3u } from "../m3u/read.ts";
import { rowsText } from "../item-rows.ts";
import { SharedIds } from "../shared-ids.ts";
import type { M3uEntry, M3uHeader } from "../m3u/m3u-entry.ts";
import type { TaskError } from "../tasks.ts";

/** Staged entries deleted in one statement. */
const CLEARED_AT_ONCE = 2000;
/** Longest key of an entry that is kept as it is, characters: nearly all are shorter. */
const MAX_KEY_CHARS = 200;
/** Most entries of one list. Longer lists are refused, not cut: items missing from the beginning may be in the rest. */
const MAX_ENTRIES = 500_000;

/** A list that was read. */
export interface Staged {
  readonly entries: number;
  /**
   * True when nothing is known of the list: then each row has the items of up to `STATEMENT_ENTRIES` entries, as `rowsText`
   * writes them, because no entry has to be compared with an item. That saves two thirds of what staging costs.
   */
  readonly isFresh: boolean;
  /** Rows staged, without duplicates, unchanged entries and those that the user deleted. */
  readonly rows: number;
  readonly guides: readonly string[];
  readonly ids: SharedIds;
  /** The items that the list had before; those of unchanged entries, which are not staged, are not free any more. */
  readonly items: KnownItems;
  /** Ids of the unchanged entries, as `channelId` returns them. */
  readonly settledIds: ReadonlySet<string>;
  /** The list's order: the items of unchanged entries, and for entries that were staged -1 less their position. */
  readonly sequence: readonly number[];
  /** Channels that the user deleted for good and that no entry has under the same address. */
  readonly removed: readonly Removed[];
}

/** A channel that the user deleted for good. */
export type Removed = Pick<Selectable<ExternalRemovedTable>, "hash" | "tvg_id" | "title">;

/** The list to stage. */
export interface StageRequest {
  readonly id: number;
  readonly body: ReadableStream<Uint8Array>;
  /** True when one layer of gzip was undone already; another is refused. Default false. */
  readonly isUnpacked?: boolean | undefined;
  readonly baseUrl: string;
  /** Largest list, bytes, packed or not. */
  readonly maxBytes: number;
  readonly facts: Omit<ListFacts, "header" | "groups">;
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
  const items = await KnownItems.load(store, id);
  const settledIds = new Set<string>();
  const sequence: number[] = [];
  const removedRows = await db.selectFrom("external_removed").select(["hash", "tvg_id", "title"])
    .where("external_playlist_id", "=", id).execute();
  const isFresh = items.isNone && removedRows.length === 0;
  const removed = new Set(removedRows.map(({ hash }) => hash));
  const removedHere = new Set<string>();
  const seen = new Map<string, number>();
  const known = new Set<string>();
  const ids = new SharedIds();
  const groups = await GroupNames.load(store);
  let header: M3uHeader = { attributes: {} };
  const guides = new Set<string>();
  let entries = 0;
  let position = 0;
  const batch = new EntryBatch();
  const flush = async () => {
    if (signal.aborted) throw abortError(signal);
    const facts = { ...request.facts, header: header.attributes, groups };
    const factsText = factsKey(facts);
    const fieldsOf = (entry: M3uEntry): EntryFields => {
      ids.add({ title: entry.title, tvg_id: entry.attributes["tvg-id"] ?? "" });
      return { ...entryFields(entry, facts), entry_key: entryKey(entry, factsText) };
    };
    const writeFresh = (trx: Transaction<Schema>) => async (part: readonly M3uEntry[]) => {
      const fields = rowsText(part.map(fieldsOf));
      await trx.insertInto("external_entries")
        .values({ external_playlist_id: id, position: position++, hash: "", nth: 0, name: "", fields }).execute();
    };
    const write = (trx: Transaction<Schema>) => async (part: readonly M3uEntry[]) => {
      const rows: unknown[][] = [];
      for (const entry of part) {
        const tvgId = ids.add({ title: entry.title, tvg_id: entry.attributes["tvg-id"] ?? "" });
        const entry_key = entryKey(entry, factsText);
        const item = items.settle(entry_key);
        if (item !== null) {
          if (tvgId !== "") settledIds.add(tvgId);
          sequence.push(item);
          continue;
        }
        const fields: EntryFields = { ...entryFields(entry, facts), entry_key };
        const { hash } = fields;
        if (removed.has(hash)) {
          removedHere.add(hash);
          continue;
        }
        const nth = seen.get(hash) ?? 0;
        seen.set(hash, nth + 1);
        sequence.push(-1 - position);
        rows.push([position++, hash, nth, entryName(fields, entry), JSON.stringify(fields)]);
      }
      if (rows.length === 0) return;
      await sql`INSERT INTO external_entries (external_playlist_id, position, hash, nth, name, fields)
        SELECT ${id}, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4
        FROM (SELECT jsonb(value) AS value FROM json_each(${JSON.stringify(rows)}) LIMIT -1 OFFSET 0)`.execute(trx);
    };
    await db.transaction().execute((trx) => inStatements(batch.take(), (isFresh ? writeFresh : write)(trx)));
  };
  const limits = { maxBytes, maxUnpackedBytes: maxBytes, isUnpacked, maxEntries: MAX_ENTRIES + 1 };
  for await (const event of readM3u(request.body, { baseUrl, signal, ...limits })) {
    if (event.kind === "header") {
      // Joined lists have several, each for the entries that follow.
      await flush();
      header = event.header;
      for (const url of guidesOf(header)) guides.add(url);
    } else if (event.kind === "error") request.report(event.error);
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
  return {
    entries,
    isFresh,
    rows: position,
    guides: [...guides],
    ids,
    items,
    settledIds,
    sequence,
    removed: removedRows.filter(({ hash }) => !removedHere.has(hash)),
  };
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
