/** Imports an M3U list as the user's own items: `playlist_import`. */
import { sql, type Transaction } from "kysely";
import { nextTurn } from "../bytes/turn.ts";
import type { Schema } from "../database/schema.ts";
import type { Store } from "../database/store.ts";
import { abortError } from "../errors.ts";
import type { Clock } from "../ports.ts";
import {
  EntryBatch,
  type EntryFields,
  entryFields,
  EXPORTED,
  groupOf,
  type ImportedEntry,
  inStatements,
  type ListFacts,
  STATEMENT_ENTRIES,
} from "./entry.ts";
import { GroupNames } from "./group-names.ts";
import { hashIs } from "./identity.ts";
import { insertRows } from "./item-rows.ts";
import { countM3u, guidesOf, readM3u, type ReadM3uOptions } from "./m3u/read.ts";
import type { M3uEntry } from "./m3u/m3u-entry.ts";
import { GIVEN_BY_PUBLIC } from "./private-addresses.ts";
import { SharedIds } from "./shared-ids.ts";
import type { TaskProgress } from "./tasks.ts";

/** The list to import, and the owner of its items. */
export interface ImportRequest {
  /** The list, from its start; opened twice, to count and to read. */
  readonly open: () => ReadableStream<Uint8Array>;
  /** Base of relative addresses. */
  readonly baseUrl?: string | undefined;
  /** True when one layer of gzip was undone already. Default false. */
  readonly isUnpacked?: boolean | undefined;
  readonly owner: string;
  /** True when the caller may name addresses in the private network. */
  readonly allowPrivate: boolean;
  /** True when a server of the Internet gave the list: then it may not name them. Default false. */
  readonly isPublic?: boolean;
}

/**
 * Adds the entries in batches; a cancelled import keeps those already added (`done` of `total`). Entries that the user's own
 * enabled items already are (same content, title and group) are skipped, so that importing an export, or the same list
 * again, changes nothing. An item of an external list goes when that list does, so it stands only for its own exported entry. Bad lines are reported. Rejects as `readM3u`, if possible before anything is added.
 */
export async function importList(
  store: Store,
  clock: Clock,
  request: ImportRequest,
  progress: TaskProgress,
): Promise<void> {
  const options: ReadM3uOptions = {
    signal: progress.signal,
    isUnpacked: request.isUnpacked === true,
    ...(request.baseUrl === undefined ? {} : { baseUrl: request.baseUrl }),
  };
  progress.total = await countM3u(request.open(), options);
  let header: Readonly<Record<string, string>> = {};
  const batch = new EntryBatch();
  const ids = new SharedIds();
  const groups = await GroupNames.load(store);
  const lastBefore = await lastItem(store);
  const flush = async () => {
    if (progress.signal.aborted) throw abortError(progress.signal);
    const entries = batch.take();
    const db = await store.open();
    const facts = { header, category: "", isBroadcast: false, groups };
    const skipped = await db.transaction().execute(async (trx) => {
      let skipped = 0;
      await inStatements(entries, async (part) => {
        skipped += part.length - await addNew(trx, clock, request, part, facts, ids);
      });
      return skipped;
    });
    progress.skipped += skipped;
    progress.done += entries.length;
  };
  for await (const event of readM3u(request.open(), options)) {
    if (event.kind === "header") {
      await flush();
      header = event.header.attributes;
      await addGuides(store, -1, guidesOf(event.header), request.allowPrivate && request.isPublic !== true);
    } else if (event.kind === "error") progress.report(event.error);
    else if (batch.push(event.entry)) await flush();
  }
  await flush();
  await ungroup(store, { after: lastBefore, list: -1 }, ids);
}

async function lastItem(store: Store): Promise<number> {
  const db = await store.open();
  const { last } = await db.selectFrom("playlist_items").select((eb) => eb.fn.max<number | null>("id").as("last"))
    .executeTakeFirstOrThrow();
  return last ?? 0;
}

/** Takes the items of `list` with greater ids than `after` out of channels whose id the list has on entries of many names. */
export async function ungroup(
  store: Store,
  { after: before, list }: { readonly after: number; readonly list: number },
  ids: SharedIds,
): Promise<void> {
  const db = await store.open();
  for (const shared of ids.all) {
    for (let after = before;;) {
      const page = await db.selectFrom("playlist_items").select(["id", "title", "tvg_id"])
        .where("media_group", "=", `id:${shared}`).where("id", ">", after).where("external_playlist_id", "=", list)
        .orderBy("id").limit(STATEMENT_ENTRIES).execute();
      const last = page[page.length - 1];
      if (last === undefined) break;
      const groups = page.map((item) => ({ id: item.id, media: ids.mediaGroupOf(item) }));
      await sql`UPDATE playlist_items SET media_group = made.value ->> 'media'
        FROM json_each(${JSON.stringify(groups)}) AS made WHERE playlist_items.id = made.value ->> 'id'`.execute(db);
      after = last.id;
      await nextTurn();
    }
  }
}

/**
 * Stores the addresses of the programme guides that a list names. `mayNamePrivate` counts for imported lists; for external
 * ones their own columns do.
 */
export async function addGuides(
  store: Store,
  externalPlaylistId: number,
  urls: readonly string[],
  mayNamePrivate = false,
): Promise<void> {
  if (urls.length === 0) return;
  const db = await store.open();
  await sql`INSERT INTO guides (external_playlist_id, url, allow_private)
    SELECT ${externalPlaylistId}, value, ${Number(mayNamePrivate)} FROM json_each(${JSON.stringify(urls)}) WHERE true
    ON CONFLICT DO UPDATE SET allow_private = max(allow_private, excluded.allow_private)`.execute(db);
}

interface Known {
  readonly hash: string;
  readonly file_index: number | null;
  readonly title: string;
  readonly category: string | null;
  readonly imported: string | null;
  /** 1: an enabled item of the user. */
  readonly is_own: number;
}

/** Adds those of `entries` that are new; returns their number. */
async function addNew(
  trx: Transaction<Schema>,
  clock: Clock,
  { owner, allowPrivate, isPublic = false }: ImportRequest,
  entries: readonly M3uEntry[],
  facts: ListFacts,
  ids: SharedIds,
): Promise<number> {
  const all = entries.map((entry) => ({
    group: groupOf(entry),
    fields: entryFields(entry, facts),
    isExternal: entry.attributes[EXPORTED.external] !== undefined,
    item: namedItem(entry.url),
  }));
  for (const { fields } of all) ids.add(fields);
  const hashes = JSON.stringify(all.map(({ fields }) => fields.hash));
  // The plus keeps SQLite from choosing another index than that of the hashes and reading all items for each batch.
  const { rows: known } = await sql<Known>`SELECT hash, file_index, title, category, imported,
      external_playlist_id = -1 AND enabled = 1 AS is_own
    FROM json_each(${hashes}) AS wanted CROSS JOIN playlist_items ON ${hashIs("hash", sql`wanted.value`)}
    WHERE +is_deleted = 0 AND (${owner} = '' OR owner IN ('', ${owner}))`.execute(trx);
  const keys = new Set<string>();
  const external = new Set<string>();
  for (const item of known) {
    const there = item.is_own === 1 ? keys : external;
    const imported = item.imported === null ? null : JSON.parse(item.imported) as ImportedEntry;
    const group = imported === null ? item.category ?? "" : groupOf(imported);
    there.add(key(item, item.title, group));
    // An export has the category where the list had no group.
    if (group === "" && item.category !== null) there.add(key(item, item.title, item.category));
    // The user may have edited the item's title since; the list still has the old one.
    if (imported !== null) there.add(key(item, imported.title, group));
  }
  const added: EntryFields[] = [];
  const named = await titlesOf(trx, all.flatMap(({ item }) => item === null ? [] : [item]));
  for (const { group, fields, isExternal, item } of all) {
    if (item !== null && named.get(item) === fields.title) continue;
    const its = key(fields, fields.title, group);
    if (keys.has(its) || isExternal && external.has(its)) continue;
    keys.add(its);
    added.push(fields);
  }
  const now = Math.floor(clock.now() / 1000);
  const allow_private = isPublic ? GIVEN_BY_PUBLIC : Number(allowPrivate);
  await insertRows(trx, added, { owner, external_playlist_id: -1, allow_private, now });
  return added.length;
}

/** The item that an address of an export with failover names; null for other addresses. */
function namedItem(url: string): number | null {
  const id = /\/engine\/(?:getstream|manifest\.m3u8)\?(?:[^#]*&)?item=(\d{1,15})(?:&|$)/.exec(url)?.[1];
  return id === undefined ? null : Number(id);
}

async function titlesOf(trx: Transaction<Schema>, ids: readonly number[]): Promise<Map<number, string>> {
  if (ids.length === 0) return new Map();
  const { rows } = await sql<{ id: number; title: string }>`SELECT id, title FROM playlist_items
    WHERE id IN (SELECT value FROM json_each(${JSON.stringify(ids)})) AND is_deleted = 0`.execute(trx);
  return new Map(rows.map(({ id, title }) => [id, title]));
}

function key({ hash, file_index }: Pick<Known, "hash" | "file_index">, title: string, group: string): string {
  return `${hash} ${file_index} ${group.length} ${group} ${title}`;
}
