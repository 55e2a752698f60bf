/**
 * Keeps what a guide says about the channels of the library. Of the other channels only their names are kept, by which they
 * are found when a list brings them: the programmes of a guide of 20,000 channels would fill the disk for nothing.
 */
import { type Kysely, sql, type Transaction } from "kysely";
import { nextTurn } from "../../bytes/turn.ts";
import { channelId, normalizedName } from "../../database/names.ts";
import type { Schema } from "../../database/schema.ts";
import { MillraceError } from "../../errors.ts";
import { type LibraryNames, matchChannels } from "./match.ts";
import type { XmltvChannel, XmltvEvent, XmltvProgramme, XmltvText } from "./xmltv-read.ts";

/** Programmes are kept from so long before now until so long after, seconds: what catch-up reaches, and two weeks. */
export const KEPT_BEFORE_S = 7 * 86_400;
const KEPT_AFTER_S = 15 * 86_400;
/** Most programmes of all guides: 2,000 channels for three weeks, about 1 GB. */
const MAX_PROGRAMMES = 2_000_000;
/** Most channels of one guide: twice those of the largest. Further ones are left out. */
const MAX_CHANNELS = 100_000;
/** Channels and programmes written in one statement: some milliseconds. */
const CHANNELS_AT_ONCE = 200;
const PROGRAMMES_AT_ONCE = 200;
/** Channels and programmes written in one transaction, and the text in them, characters: each commit waits for the disk. */
const CHANNELS_PER_COMMIT = 2000;
const PROGRAMMES_PER_COMMIT = 2000;
const CHARS_PER_COMMIT = 2 * 1024 * 1024;
/** Channels tidied up in one statement; each may have some thousand programmes. */
const TIDIED_AT_ONCE = 10;
/** A programme whose end is not stated ends with the next one, or after this, seconds. */
const LONGEST_OPEN_S = 6 * 3600;

/** What is stored beside the columns of a programme. */
export interface ProgrammeDetails {
  readonly lang: string;
  /** In further languages. */
  readonly texts: readonly XmltvText[];
  readonly categories: readonly string[];
  readonly icon: string;
  readonly episode: string;
  readonly year: number | null;
}

/** The guide that is being read. */
export interface KeeperParts {
  readonly db: Kysely<Schema>;
  readonly source: number;
  /** 1: a caller gave it. */
  readonly is_given: number;
  /** Number of this update. */
  readonly generation: number;
  /** Unix seconds. */
  readonly now: number;
  readonly library: LibraryNames;
}

/** One update of one guide. */
export class GuideKeeper {
  readonly #parts: KeeperParts;
  /** Ids of channels by key; 0: the library lacks it. */
  readonly #channels = new Map<string, number>();
  #found: XmltvChannel[] = [];
  #programmes: XmltvProgramme[] = [];
  #chars = 0;
  /** Programmes that may still be kept; found out at the first. */
  #room: number | null = null;
  #hasOpenEnds = false;

  constructor(parts: KeeperParts) {
    this.#parts = parts;
  }

  /** True for a channel whose programmes are not kept. */
  isUnwanted(id: string): boolean {
    const key = channelId(id);
    return key === "" || (this.#channels.get(key) ?? (this.#channels.size < MAX_CHANNELS ? null : 0)) === 0;
  }

  /** Takes the next channels and programmes. Rejects with `too_large` for more programmes than are kept. */
  async add(events: readonly XmltvEvent[]): Promise<void> {
    for (const event of events) {
      if (event.kind === "channel") this.#found.push(event);
      else if (!this.isUnwanted(event.channel)) this.#push(event);
    }
    // Before most programmes are read, so that the reader knows which it may skip.
    const isAtFirst = this.#programmes.length > 0 && this.#channels.size === 0;
    if (isAtFirst || this.#found.length >= CHANNELS_PER_COMMIT) await this.#keepChannels();
    if (this.#programmes.length >= PROGRAMMES_PER_COMMIT || this.#chars >= CHARS_PER_COMMIT) {
      await this.#keepProgrammes();
    }
  }

  /** Keeps what `add` still holds. */
  async flush(): Promise<void> {
    await this.#keepProgrammes();
  }

  /** Keeps the rest, and removes what this guide does not say any more: programmes to come, and channels. */
  async finish(): Promise<void> {
    await this.flush();
    const { db, source, generation, now } = this.#parts;
    for await (const ids of channelsOf(db, source)) {
      // A guide says everything from its first programme on; what was before stays, for catch-up.
      await sql`WITH firsts AS MATERIALIZED (
          SELECT channel, min(start) AS start FROM programmes
          WHERE channel IN (SELECT value FROM json_each(${ids})) AND generation = ${generation} GROUP BY channel)
        DELETE FROM programmes WHERE channel IN (SELECT value FROM json_each(${ids})) AND generation <> ${generation}
          AND start >= coalesce((SELECT start FROM firsts WHERE firsts.channel = programmes.channel), ${now})`
        .execute(db);
      if (this.#hasOpenEnds) await endOpen(db, ids);
    }
    await deleteChannels(db, source, generation);
    const { rows: [counts] } = await sql<{ channels: number; programmes: number }>`SELECT
      (SELECT count(*) FROM guide_channels WHERE source = ${source}) AS channels,
      (SELECT count(*) FROM programmes WHERE channel IN (
        SELECT id FROM guide_channels WHERE source = ${source} AND is_kept = 1)) AS programmes`.execute(db);
    await db.updateTable("guide_sources").set(counts!).where("id", "=", source).execute();
  }

  #push(programme: XmltvProgramme): void {
    const { now } = this.#parts;
    const { start, stop, texts } = programme;
    if ((stop ?? start) < now - KEPT_BEFORE_S || start > now + KEPT_AFTER_S) return;
    this.#programmes.push(programme);
    for (const { title, subtitle, description } of texts) {
      this.#chars += title.length + subtitle.length + description.length;
    }
  }

  async #keepChannels(): Promise<void> {
    const found = this.#found;
    this.#found = [];
    await this.#keepThese(found);
  }

  async #keepThese(found: readonly XmltvChannel[]): Promise<void> {
    if (found.length === 0) return;
    await this.#parts.db.transaction().execute(async (trx) => {
      for (let from = 0; from < found.length; from += CHANNELS_AT_ONCE) {
        await this.#keepSome(trx, found.slice(from, from + CHANNELS_AT_ONCE));
      }
    });
  }

  async #keepSome(db: Transaction<Schema>, found: readonly XmltvChannel[]): Promise<void> {
    const { source, is_given, generation, library } = this.#parts;
    const byKey = new Map<string, { xmltv_id: string; name: string; icon: string; names: Set<string> }>();
    for (const { id, names, icon } of found) {
      const key = channelId(id);
      if (key === "" || !this.#channels.has(key) && this.#channels.size + byKey.size >= MAX_CHANNELS) continue;
      const same = byKey.get(key) ?? { xmltv_id: id, name: names[0] ?? "", icon, names: new Set() };
      for (const name of names) same.names.add(normalizedName(name));
      same.names.delete("");
      byKey.set(key, same);
    }
    if (byKey.size === 0) return;
    const values = [...byKey].map(([key, { xmltv_id, name, icon, names }]) => ({
      key,
      xmltv_id,
      name,
      icon,
      names: [...names],
    }));
    // Names of a channel that this guide has twice are added.
    const { rows } = await sql<{ id: number; key: string }>`
      INSERT INTO guide_channels (source, key, xmltv_id, name, icon, generation)
      SELECT ${source}, value ->> 'key', value ->> 'xmltv_id', value ->> 'name', value ->> 'icon', ${generation}
      FROM json_each(${JSON.stringify(values)}) WHERE true
      ON CONFLICT (source, key) DO UPDATE SET generation = excluded.generation, xmltv_id = excluded.xmltv_id,
        name = iif(excluded.name = '', name, excluded.name), icon = iif(excluded.icon = '', icon, excluded.icon)
      RETURNING id, key`.execute(db);
    const fresh = rows.filter(({ key }) => !this.#channels.has(key)).map(({ id }) => id);
    const named = rows.flatMap(({ id, key }) => [...byKey.get(key)!.names].map((name) => [name, id]));
    await sql`DELETE FROM guide_names WHERE channel IN (SELECT value FROM json_each(${JSON.stringify(fresh)}))`
      .execute(db);
    await sql`INSERT OR IGNORE INTO guide_names (name, channel) SELECT value ->> 0, value ->> 1
      FROM json_each(${JSON.stringify(named)})`.execute(db);
    const channels = rows.map(({ id, key }) => ({ id, source, is_given, key, names: [...byKey.get(key)!.names] }));
    const matched = await matchChannels(db, channels, library);
    await sql`UPDATE guide_channels SET is_kept = id IN (SELECT value FROM json_each(${JSON.stringify([...matched])}))
      WHERE id IN (SELECT value FROM json_each(${JSON.stringify(rows.map(({ id }) => id))}))`.execute(db);
    for (const { id, key } of rows) this.#channels.set(ownCopy(key), matched.has(id) ? id : 0);
  }

  async #keepProgrammes(): Promise<void> {
    const programmes = this.#programmes;
    this.#programmes = [];
    this.#chars = 0;
    await this.#keepChannels();
    // Some guides have programmes of channels that they do not name.
    const unnamed = new Set(
      programmes.map(({ channel }) => channel).filter((id) => !this.#channels.has(channelId(id))),
    );
    if (unnamed.size > 0) {
      await this.#keepThese([...unnamed].map((id) => ({ kind: "channel", id, names: [], icon: "" })));
    }
    const kept = programmes.filter(({ channel }) => (this.#channels.get(channelId(channel)) ?? 0) > 0);
    await this.#requireRoom(kept.length);
    if (kept.length === 0) return;
    await this.#parts.db.transaction().execute(async (trx) => {
      for (let from = 0; from < kept.length; from += PROGRAMMES_AT_ONCE) {
        await this.#write(trx, kept.slice(from, from + PROGRAMMES_AT_ONCE));
        await nextTurn();
      }
    });
  }

  async #write(db: Transaction<Schema>, programmes: readonly XmltvProgramme[]): Promise<void> {
    const { generation } = this.#parts;
    const values = programmes.map(({ channel, start, stop, texts: [first, ...texts], ...more }) => {
      const { categories, icon, episode, year } = more;
      this.#hasOpenEnds ||= stop === null;
      const details: ProgrammeDetails = { lang: first!.lang, texts, categories, icon, episode, year };
      const { title, subtitle, description } = first!;
      const id = this.#channels.get(channelId(channel))!;
      return [id, start, stop ?? 0, title, subtitle, description, JSON.stringify(details)];
    });
    await sql`INSERT INTO programmes (channel, start, stop, title, subtitle, description, details, generation)
      SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, ${generation}
      FROM json_each(${JSON.stringify(values)}) WHERE true
      ON CONFLICT (channel, start) DO UPDATE SET stop = excluded.stop, title = excluded.title,
        subtitle = excluded.subtitle, description = excluded.description, details = excluded.details,
        generation = excluded.generation`.execute(db);
  }

  async #requireRoom(count: number): Promise<void> {
    if (this.#room === null) {
      const { rows: [others] } = await sql<{ count: number }>`SELECT coalesce(sum(programmes), 0) AS count
        FROM guide_sources WHERE id <> ${this.#parts.source}`.execute(this.#parts.db);
      this.#room = MAX_PROGRAMMES - others!.count;
    }
    this.#room -= count;
    if (this.#room < 0) {
      throw new MillraceError(
        "too_large",
        `no more than ${MAX_PROGRAMMES} programmes are kept: remove guides, or channels that you do not watch`,
      );
    }
  }
}

/** Deletes the channels of a guide that an update did not find, or all of them (`generation` null), with their programmes. */
export async function deleteChannels(db: Kysely<Schema>, source: number, generation: number | null): Promise<void> {
  for await (const ids of channelsOf(db, source, generation ?? -1)) {
    await db.transaction().execute(async (trx) => {
      for (const table of ["programmes", "guide_names", "guide_matches"] as const) {
        await sql`DELETE FROM ${sql.table(table)} WHERE channel IN (SELECT value FROM json_each(${ids}))`.execute(trx);
      }
      await sql`DELETE FROM guide_channels WHERE id IN (SELECT value FROM json_each(${ids}))`.execute(trx);
    });
  }
}

/** Deletes the programmes that are over for long. */
export async function deleteExpired(db: Kysely<Schema>, now: number, signal: AbortSignal): Promise<void> {
  for await (const ids of channelsOf(db, null)) {
    await sql`DELETE FROM programmes WHERE channel IN (SELECT value FROM json_each(${ids}))
      AND start < ${now - KEPT_BEFORE_S} AND stop < ${now - KEPT_BEFORE_S}`.execute(db);
    if (signal.aborted) return;
  }
}

/**
 * Some ids at a time, as JSON: of the channels of one guide or of all (`source` null), those of another generation than
 * `unless`. Other tasks get turns.
 */
async function* channelsOf(db: Kysely<Schema>, source: number | null, unless?: number): AsyncGenerator<string> {
  for (let after = 0;;) {
    let query = db.selectFrom("guide_channels").select("id").where("id", ">", after).orderBy("id").limit(
      TIDIED_AT_ONCE,
    );
    if (source !== null) query = query.where("source", "=", source);
    if (unless !== undefined) query = query.where("generation", "<>", unless);
    const page = await query.execute();
    const last = page[page.length - 1];
    if (last === undefined) return;
    yield JSON.stringify(page.map(({ id }) => id));
    after = last.id;
    await nextTurn();
  }
}

async function endOpen(db: Kysely<Schema>, ids: string): Promise<void> {
  await sql`UPDATE programmes SET stop = min(start + ${LONGEST_OPEN_S}, coalesce((
      SELECT min(later.start) FROM programmes AS later
      WHERE later.channel = programmes.channel AND later.start > programmes.start), start + ${LONGEST_OPEN_S}))
    WHERE channel IN (SELECT value FROM json_each(${ids})) AND stop = 0`.execute(db);
}

/** A copy in its own memory: a substring would keep a whole piece of the guide alive. */
function ownCopy(text: string): string {
  return new TextDecoder().decode(new TextEncoder().encode(text));
}
