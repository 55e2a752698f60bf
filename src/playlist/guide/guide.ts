/** The programme guide: where it comes from, and what is on. */
import { sql } from "kysely";
import type { Store } from "../../database/store.ts";
import type { Clock, Logger } from "../../ports.ts";
import { UpdateSchedule } from "../external/update-schedule.ts";
import type { OpenUrl } from "../external/external-playlist.ts";
import { contentHashes, hashIs } from "../identity.ts";
import { type Db, libraryVersion } from "../matches.ts";
import { exportXmltv, hasProgrammes, type XmltvRequest } from "./export.ts";
import { deleteExpired } from "./keep.ts";
import { matchAll } from "./match.ts";
import { nowAndNextJson, type Programme, programmesOf, SHIFT_S } from "./programmes.ts";
import { type GuideSourceRow, GuideSources, type NewGuideSource } from "./sources.ts";
import { GuideUpdater } from "./updater.ts";

/** Guides fetched at once, and how many of them may have failed the last time: reading one keeps a processor busy. */
const LANES = { all: 2, failed: 1 };
/** Changes of the library are looked at no more often than this, ms: it takes a second for 100,000 items. */
const LOOK_EVERY_MS = 30_000;

/** Most items that play the same; further ones say nothing new. */
const MAX_SAME = 10;

/** Dependencies of `Guide`. */
export interface GuideParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  readonly open: OpenUrl;
  /** In [0, 1). Default `Math.random`. */
  readonly random?: () => number;
  /** As `Ports.spent`. Default: nobody is told. */
  readonly spent?: ((bytes: number) => void) | undefined;
}

/** What is on a channel of the library. */
export interface ChannelGuide {
  readonly playlistItemId: number;
  readonly programmes: readonly Programme[];
}

/** Guides, their updates, and the programmes that were kept. */
export class Guide {
  readonly #parts: GuideParts;
  readonly #sources: GuideSources;
  readonly #updater: GuideUpdater;
  readonly #schedule: UpdateSchedule;
  readonly #closing = new AbortController();
  /** Of the library whose channels were matched last. */
  #matchedVersion: number | null = null;
  #lookedMs = -Infinity;

  constructor(parts: GuideParts) {
    const { store, clock, log, open, random = Math.random, spent } = parts;
    this.#parts = parts;
    this.#sources = new GuideSources(store, clock);
    this.#updater = new GuideUpdater({ store, sources: this.#sources, clock, log, open, random, spent });
    this.#schedule = new UpdateSchedule({
      store,
      table: "guide_sources",
      updater: this.#updater,
      lanes: LANES,
      tidy: (now) => this.#tidy(now),
      clock,
      log,
    });
  }

  /** Starts the schedule unless the database is still empty. */
  async start(): Promise<void> {
    if (await this.#parts.store.mayHoldData()) void this.wake();
  }

  /** To be called after lists came or went: follows the guides that they name, and begins the updates that are due. */
  wake(): Promise<void> {
    this.#lookedMs = this.#parts.clock.monotonic();
    return this.#schedule.wake();
  }

  /** The guides, in the order in which they were found. */
  sources(): Promise<GuideSourceRow[]> {
    return this.#sources.all();
  }

  /**
   * Adds a guide and begins to fetch it; returns its id.
   *
   * @throws `invalid_argument`, `conflict`: as `GuideSources.add`
   */
  async add(source: NewGuideSource, updateNow: boolean): Promise<number> {
    const id = await this.#sources.add(source);
    // A failure is logged, and shown as `last_error`.
    if (updateNow) this.#updater.update(id, { isByHand: true }).catch(() => {}).finally(() => void this.wake());
    else void this.wake();
    return id;
  }

  /**
   * Deletes a guide and what was kept of it, unless a list names it, too.
   *
   * @throws `not_found`, `conflict`: as `GuideSources.giveUp`
   */
  async delete(id: number): Promise<void> {
    if (await this.#sources.giveUp(id)) await this.#remove(id);
    void this.wake();
  }

  async #remove(id: number): Promise<void> {
    await this.#updater.stop(id);
    await this.#sources.remove(id);
  }

  /**
   * Fetches a guide now.
   *
   * @throws `not_found`, `connection_failed`, `denied`, `timeout`, `too_large`, `invalid_argument`: as
   * `GuideUpdater.update`
   */
  async update(id: number): Promise<void> {
    await this.#updater.update(id, { isByHand: true });
    void this.wake();
  }

  /**
   * The programmes of some items that are on between two times, Unix seconds, at the times of each item's `tvg-shift`; at most
   * `limit` in all. Items that do not exist are left out.
   */
  async programmes(ids: readonly number[], fromS: number, toS: number, limit: number): Promise<ChannelGuide[]> {
    const db = await this.#parts.store.read();
    await this.noticeChanges();
    const { rows } = await sql<{ id: number; media_group: string; shift_s: number }>`
      SELECT playlist_items.id, media_group, ${SHIFT_S} AS shift_s FROM json_each(${JSON.stringify(ids)}) AS wanted
      CROSS JOIN playlist_items ON playlist_items.id = wanted.value WHERE is_deleted = 0`.execute(db);
    let room = limit;
    const guides: ChannelGuide[] = [];
    for (const { id, media_group, shift_s } of rows) {
      const all = room === 0 ? [] : await programmesOf(db, media_group, fromS - shift_s, toS - shift_s);
      const programmes = all.slice(0, room).map((programme) => ({
        ...programme,
        start: programme.start + shift_s,
        stop: programme.stop + shift_s,
      }));
      room -= programmes.length;
      guides.push({ playlistItemId: id, programmes });
    }
    return guides;
  }

  /** Titles of what is on now, by the ids of the items (some hundred at most) that have any. */
  async onNow(ids: readonly number[]): Promise<ReadonlyMap<number, string>> {
    const db = await this.#parts.store.read();
    if (ids.length === 0 || !await hasProgrammes(db)) return new Map();
    await this.noticeChanges();
    const nowS = Math.floor(this.#parts.clock.now() / 1000);
    const { rows } = await sql<{ id: number; title: string | null }>`
      SELECT playlist_items.id, ${nowAndNextJson(nowS)} ->> '$.now.title' AS title
      FROM json_each(${JSON.stringify(ids)}) AS wanted
      CROSS JOIN playlist_items ON playlist_items.id = wanted.value WHERE is_live <> 0`.execute(db);
    return new Map(rows.flatMap(({ id, title }) => title ? [[id, title] as const] : []));
  }

  /** Ids of items that were added under an infohash (lower-case hexadecimal), or under a content id where that is empty. */
  async itemsOf(content: { readonly infohash: string; readonly contentId: string | null }): Promise<number[]> {
    const db = await this.#parts.store.read();
    const { hash } = contentHashes({ ...content, url: null, title: "" });
    const { rows } = await sql<{ id: number }>`SELECT id FROM playlist_items WHERE ${hashIs("hash", sql`${hash}`)}
      AND +is_deleted = 0 LIMIT ${MAX_SAME}`.execute(db);
    return rows.map(({ id }) => id);
  }

  /** Everything that is kept, as XMLTV: see `exportXmltv`. */
  export(request: Omit<XmltvRequest, "fromS" | "toS">): AsyncGenerator<string> {
    return exportXmltv(this.#parts.store, { ...request, fromS: 0, toS: Number.MAX_SAFE_INTEGER });
  }

  /** Begins to match the channels again if the library has changed and nobody looked lately. */
  async noticeChanges(): Promise<void> {
    const db = await this.#parts.store.read();
    if (this.#parts.clock.monotonic() - this.#lookedMs < LOOK_EVERY_MS) return;
    if (await libraryVersion(db) !== this.#matchedVersion) void this.wake();
  }

  /** Ends updates and the schedule. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([this.#schedule.close(), this.#updater.close()]);
  }

  async #tidy(now: number): Promise<void> {
    for (const id of await this.#sources.followLists()) await this.#remove(id);
    const db = await this.#parts.store.open();
    await deleteExpired(db, now, this.#closing.signal);
    const version = await libraryVersion(db);
    if (version === this.#matchedVersion) return;
    await matchAll(db, this.#closing.signal);
    this.#matchedVersion = version;
    await readAgain(db, now);
  }
}

/** Makes guides due that have channels which were not in the library when they were read. */
async function readAgain(db: Db, now: number): Promise<void> {
  await sql`UPDATE guide_sources SET etag = '', last_modified = '', next_update = ${now} WHERE id IN (
    SELECT guide_channels.source FROM guide_channels WHERE is_kept = 0 AND EXISTS (
      SELECT 1 FROM guide_matches WHERE guide_matches.channel = guide_channels.id))`.execute(db);
}
