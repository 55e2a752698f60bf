/** The guides that are fetched: those that callers gave, and those that lists name. */
import { type Selectable, sql } from "kysely";
import type { GuideSourcesTable } from "../../database/schema.ts";
import type { Store } from "../../database/store.ts";
import { MillraceError } from "../../errors.ts";
import type { Clock } from "../../ports.ts";
import { requireUpdateInterval } from "../refresh-time.ts";
import { deleteChannels } from "./keep.ts";

/** A row of the table. */
export type GuideSourceRow = Selectable<GuideSourcesTable>;

/** Most guides of one engine: lists may name a thousand, each of which may have 300 MB. */
const MAX_SOURCES = 32;
/** How often guides that lists name are fetched, seconds. */
const INTERVAL_S = 12 * 3600;

/** A new guide. */
export interface NewGuideSource {
  /** http or https. */
  readonly url: string;
  /** Seconds, 0 or at least 60. */
  readonly updateInterval: number;
  /** True when the caller may name private addresses. */
  readonly allowPrivate: boolean;
}

/** The guides in the database. */
export class GuideSources {
  readonly #store: Store;
  readonly #clock: Clock;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /**
   * Adds a guide, which is due at once unless its interval is 0; returns its id. One that a list names becomes the caller's.
   * Rejects with `invalid_argument`, or with `conflict` when there are too many or a caller gave it before.
   */
  async add({ url, updateInterval, allowPrivate }: NewGuideSource): Promise<number> {
    requireUpdateInterval(updateInterval);
    if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) {
      throw new MillraceError("invalid_argument", "invalid url: an http or https address is expected");
    }
    const db = await this.#store.open();
    const row = {
      is_given: 1,
      allow_private: Number(allowPrivate),
      update_interval: updateInterval,
      next_update: updateInterval === 0 ? 0 : this.#now(),
    };
    return await db.transaction().execute(async (trx) => {
      const before = await trx.selectFrom("guide_sources").select(["id", "is_given"]).where("url", "=", url)
        .executeTakeFirst();
      if (before?.is_given === 1) throw new MillraceError("conflict", `guide ${before.id} has this address already`);
      if (before !== undefined) {
        await trx.updateTable("guide_sources").set(row).where("id", "=", before.id).execute();
        return before.id;
      }
      const { count } = await trx.selectFrom("guide_sources").select((eb) => eb.fn.countAll<number>().as("count"))
        .executeTakeFirstOrThrow();
      if (count >= MAX_SOURCES) throw new MillraceError("conflict", `there are ${MAX_SOURCES} guides already`);
      const { id } = await trx.insertInto("guide_sources").values({ url, last_update: 0, ...row }).returning("id")
        .executeTakeFirstOrThrow();
      return id;
    });
  }

  /**
   * Gives a guide up that a caller gave; returns false when a list still names it, so that it stays. Rejects with `not_found`, or
   * with `conflict` for one that only lists name: it would come back.
   */
  async giveUp(id: number): Promise<boolean> {
    const { url, is_given } = await this.row(id);
    const db = await this.#store.open();
    const named = await db.selectFrom("guides").select("url").where("url", "=", url).executeTakeFirst();
    if (is_given === 0) throw new MillraceError("conflict", "a list names this guide: it goes when the list does");
    if (named === undefined) return true;
    await db.updateTable("guide_sources").set({ is_given: 0, allow_private: 0, update_interval: INTERVAL_S })
      .where("id", "=", id).execute();
    return false;
  }

  /** Removes a guide and what was kept of it. No update of it may be under way. */
  async remove(id: number): Promise<void> {
    const db = await this.#store.open();
    await db.deleteFrom("guide_sources").where("id", "=", id).execute();
    await deleteChannels(db, id, null);
  }

  /** All guides, in the order in which they were found. */
  async all(): Promise<GuideSourceRow[]> {
    const db = await this.#store.read();
    return await db.selectFrom("guide_sources").selectAll().orderBy("id").execute();
  }

  /** The row of a guide. Rejects with `not_found`. */
  async row(id: number): Promise<GuideSourceRow> {
    const db = await this.#store.read();
    const row = await db.selectFrom("guide_sources").selectAll().where("id", "=", id).executeTakeFirst();
    if (row === undefined) throw new MillraceError("not_found", `no guide ${id}`);
    return row;
  }

  /** Whether a guide may be fetched from the private network: a caller who may name it gave the guide, or a list there does. */
  async mayBePrivate({ url, is_given, allow_private }: GuideSourceRow): Promise<boolean> {
    if (is_given === 1 && allow_private === 1) return true;
    const db = await this.#store.read();
    const { rows } =
      await sql`SELECT 1 FROM guides LEFT JOIN external_playlists ON external_playlists.id = external_playlist_id
      WHERE guides.url = ${url} AND (guides.allow_private = 1 AND external_playlist_id = -1
        OR external_playlists.allow_private = 1 AND from_public = 0) LIMIT 1`.execute(db);
    return rows.length > 0;
  }

  /** Adds the guides that lists name while there is room; returns those that no list names any more. */
  async followLists(): Promise<number[]> {
    const db = await this.#store.open();
    const now = this.#now();
    await sql`INSERT OR IGNORE INTO guide_sources (url, is_given, allow_private, update_interval, last_update, next_update)
      SELECT url, 0, 0, ${INTERVAL_S}, 0, ${now} FROM guides WHERE url NOT IN (SELECT url FROM guide_sources)
      GROUP BY url ORDER BY min(external_playlist_id), url
      LIMIT max(0, ${MAX_SOURCES} - (SELECT count(*) FROM guide_sources))`.execute(db);
    const { rows } = await sql<{ id: number }>`SELECT id FROM guide_sources
      WHERE is_given = 0 AND url NOT IN (SELECT url FROM guides)`.execute(db);
    return rows.map(({ id }) => id);
  }

  #now(): number {
    return Math.floor(this.#clock.now() / 1000);
  }
}
