/**
 * Finds out which channels of guides are channels of the library: those with the same `tvg-id`, and where no guide has it
 * those with the same name, compared as media groups are.
 */
import { type Kysely, sql, type Transaction } from "kysely";
import { nextTurn } from "../../bytes/turn.ts";
import { normalizedName } from "../../database/names.ts";
import type { Schema } from "../../database/schema.ts";
import { abortError } from "../../errors.ts";

/** Items read at once, and channels matched at once: some milliseconds. */
const ITEMS_AT_ONCE = 500;
const CHANNELS_AT_ONCE = 200;
/** Channels matched in one transaction. */
const CHANNELS_PER_COMMIT = 2000;
/** Most names remembered: 30 MB. Lists with more live channels than this are matched by id. */
const MAX_NAMES = 200_000;
/** Most channels of the library that share a name and have different ids. */
const MAX_GROUPS = 8;

/** A channel of a guide. */
export interface GuideChannel {
  readonly id: number;
  readonly source: number;
  /** 1: a caller gave its guide. */
  readonly is_given: number;
  readonly key: string;
  /** Normalised. */
  readonly names: readonly string[];
}

/** Media groups of live items that have another key than their name, by their normalised names. */
export type LibraryNames = ReadonlyMap<string, readonly string[]>;

/** Reads the names of the library's channels. Rejects with the signal's reason. */
export async function libraryNames(db: Kysely<Schema>, signal: AbortSignal): Promise<LibraryNames> {
  const names = new Map<string, string[]>();
  for (let after = 0;;) {
    // Films are read, too: SQLite would look for the next channel as long as it takes.
    const page = await db.selectFrom("playlist_items").select(["id", "title", "tvg_name", "media_group", "is_live"])
      .where("is_deleted", "=", 0).where("id", ">", after).orderBy("id").limit(ITEMS_AT_ONCE).execute();
    for (const { title, tvg_name, media_group: group, is_live } of page) {
      if (is_live === 0) continue;
      for (const name of new Set([normalizedName(title), normalizedName(tvg_name)])) {
        if (name === "" || group === `name:${name}`) continue;
        const groups = names.get(name);
        if (groups === undefined && names.size < MAX_NAMES) names.set(name, [group]);
        else if (groups !== undefined && groups.length < MAX_GROUPS && !groups.includes(group)) groups.push(group);
      }
    }
    const last = page[page.length - 1];
    if (last === undefined || page.length < ITEMS_AT_ONCE) return names;
    after = last.id;
    await nextTurn();
    if (signal.aborted) throw abortError(signal);
  }
}

/**
 * Stores what `channels` match, in place of what they matched before; returns the ids of those that match something. In the
 * caller's transaction: each commit waits for the disk.
 */
export async function matchChannels(
  trx: Transaction<Schema>,
  channels: readonly GuideChannel[],
  library: LibraryNames,
): Promise<Set<number>> {
  const matched = new Set<number>();
  for (let from = 0; from < channels.length; from += CHANNELS_AT_ONCE) {
    const some = channels.slice(from, from + CHANNELS_AT_ONCE);
    const ids = JSON.stringify(some.map(({ id }) => id));
    const groups = JSON.stringify(
      some.flatMap(({ key, names }) => [`id:${key}`, ...names.map((one) => `name:${one}`)]),
    );
    // The plus keeps SQLite from choosing the index of places, and reading the whole library for each name.
    const { rows: present } = await sql<{ name: string }>`SELECT value AS name FROM json_each(${groups}) WHERE EXISTS (
      SELECT 1 FROM playlist_items WHERE media_group = value AND +is_deleted = 0 AND is_live <> 0)`.execute(trx);
    const known = new Set(present.map(({ name }) => name));
    const matches = some.flatMap((channel) => matchesOf(channel, known, library));
    await sql`DELETE FROM guide_matches WHERE channel IN (SELECT value FROM json_each(${ids}))`.execute(trx);
    // Of the channels of one guide that have the same name the first one counts.
    await sql`INSERT OR IGNORE INTO guide_matches (media_group, rank, source, channel)
      SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(${JSON.stringify(matches)})`
      .execute(trx);
    const { rows } = await sql<{ channel: number }>`SELECT DISTINCT channel FROM guide_matches
      WHERE channel IN (SELECT value FROM json_each(${ids}))`.execute(trx);
    for (const { channel } of rows) matched.add(channel);
    await nextTurn();
  }
  return matched;
}

type Match = readonly [group: string, rank: number, source: number, channel: number];

function matchesOf(
  { id, source, is_given, key, names }: GuideChannel,
  known: ReadonlySet<string>,
  library: LibraryNames,
): Match[] {
  const rank = is_given === 1 ? 0 : 1;
  const groups = new Map<string, number>();
  for (const name of names) {
    if (known.has(`name:${name}`)) groups.set(`name:${name}`, rank + 2);
    for (const group of library.get(name) ?? []) groups.set(group, rank + 2);
  }
  if (known.has(`id:${key}`)) groups.set(`id:${key}`, rank);
  return [...groups].map(([group, itsRank]) => [group, itsRank, source, id]);
}

/** Matches all channels of all guides. Rejects with the signal's reason. */
export async function matchAll(db: Kysely<Schema>, signal: AbortSignal): Promise<void> {
  const library = await libraryNames(db, signal);
  for (let after = 0;;) {
    const { rows } = await sql<Omit<GuideChannel, "names"> & { names: string }>`
      SELECT channel.id, source, is_given, key, (SELECT json_group_array(name) FROM guide_names
        WHERE guide_names.channel = channel.id) AS names
      FROM guide_channels AS channel JOIN guide_sources ON guide_sources.id = source
      WHERE channel.id > ${after} ORDER BY channel.id LIMIT ${CHANNELS_PER_COMMIT}`.execute(db);
    const last = rows[rows.length - 1];
    if (last === undefined) return;
    const channels = rows.map((row) => ({ ...row, names: JSON.parse(row.names) as string[] }));
    await db.transaction().execute((trx) => matchChannels(trx, channels, library));
    after = last.id;
    if (signal.aborted) throw abortError(signal);
  }
}
