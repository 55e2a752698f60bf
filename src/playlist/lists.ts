/** Lists that come in and go out: imports, external playlists, exports, and the tasks that they run as. */
import { deadline } from "../bytes/deadline.ts";
import { forEachLimited } from "../bytes/limited.ts";
import type { Store } from "../database/store.ts";
import { hasCode, MillraceError } from "../errors.ts";
import type { Clock, FilePort, Logger } from "../ports.ts";
import { exportM3u, type ExportRequest } from "./export.ts";
import { ExternalPlaylists } from "./external/playlists.ts";
import { sweepVanished } from "./external/apply.ts";
import { UpdateSchedule } from "./external/update-schedule.ts";
import { believedTime } from "./external/vanished-time.ts";
import type { ExternalPlaylistEdit, NewExternalPlaylist, OpenUrl, Sealer } from "./external/external-playlist.ts";
import { ExternalUpdater, isWhole, LIST_PATIENCE } from "./external/updater.ts";
import { importList } from "./import.ts";
import { type ItemFacts, itemsToAnalyze, learn } from "./learn.ts";
import { guidesOf, readM3u } from "./m3u/read.ts";
import { searchItems, type SearchPage, type SearchRequest } from "./search.ts";
import { removeLeftSpools, spool, type Spooled, type SpoolParts } from "./spool.ts";
import { TaskList } from "./tasks.ts";

/** Largest list that is imported, bytes as received. */
export const MAX_IMPORT_BYTES = 64 * 1024 * 1024;
/** Most bytes of a list read to find the guides in its first line: comments may stand before the first entry. */
const MAX_GUIDES_BYTES = 1024 * 1024;
/** How long the server of a list may take to answer when the caller waits for its guides, ms. */
const GUIDES_TIMEOUT_MS = 30_000;
/** Lists that are updated at once when the user asks for all: one slow server does not stop the others. */
const UPDATED_AT_ONCE = 4;
/** Updates that the schedule runs at once, which mostly wait for servers. */
const LANES = { all: 8, failed: 4 };
/** How long an item that vanished from its list stays out of the trash, seconds. */
const VANISHED_S = 7 * 86_400;
/** How long a whole list may take to arrive, ms. */
const DOWNLOAD_TIMEOUT_MS = 10 * 60_000;

/** Dependencies of `Lists`. */
export interface ListsParts {
  readonly store: Store;
  readonly files: FilePort;
  /** Directory for lists while they are imported; null: they stay in memory. */
  readonly stateDir: string | null;
  readonly clock: Clock;
  readonly log: Logger;
  readonly open: OpenUrl;
  readonly sealer: Sealer;
  /** In [0, 1). Default `Math.random`. */
  readonly random?: () => number;
  /** Called after lists brought or took items. */
  readonly onChanged?: () => void;
}

/** Everything that reads or writes lists, behind one object. */
export class Lists {
  readonly tasks: TaskList;
  readonly external: Pick<ExternalPlaylists, "get">;
  readonly #parts: ListsParts;
  readonly #playlists: ExternalPlaylists;
  readonly #updater: ExternalUpdater;
  readonly #schedule: UpdateSchedule;

  constructor(parts: ListsParts) {
    const { store, clock, log, open, sealer, random = Math.random } = parts;
    this.#parts = parts;
    this.tasks = new TaskList(clock, (kind, error) => log.log("error", "a task failed", { kind, error }));
    this.#playlists = new ExternalPlaylists(store, clock, sealer);
    this.external = this.#playlists;
    const playlists = this.#playlists;
    const spools = this.#spools;
    this.#updater = new ExternalUpdater({
      store,
      playlists,
      clock,
      log,
      open,
      sealer,
      spools,
      random,
      onChanged: () => this.#changed(),
    });
    this.#schedule = new UpdateSchedule({
      store,
      table: "external_playlists",
      updater: this.#updater,
      lanes: LANES,
      tidy: async (now) => {
        if (await believedTime(store, now, VANISHED_S)) await sweepVanished(store, now - VANISHED_S, now);
      },
      clock,
      log,
    });
  }

  /** Removes the files of a killed run, and starts the schedule of external playlists unless the database is still empty. */
  async start(): Promise<void> {
    await removeLeftSpools(this.#spools).catch((error) => {
      this.#parts.log.log("warn", "lists that an earlier run left could not be removed", { error });
    });
    if (await this.#parts.store.mayHoldData()) void this.#schedule.wake();
  }

  /** Stores a list until it is imported. Rejects with `too_large`, `disk_full` or `io`. */
  keep(chunks: AsyncIterable<Uint8Array>): Promise<Spooled> {
    return spool(this.#spools, chunks, MAX_IMPORT_BYTES);
  }

  #changed(): void {
    this.#parts.onChanged?.();
  }

  get #spools(): SpoolParts {
    const { files, stateDir } = this.#parts;
    return { files, directory: stateDir === null ? null : `${stateDir}/imports` };
  }

  /** Imports a list in the background, then removes it; returns the task. Rejects with `too_busy`. */
  async import(list: Spooled, owner: string, allowPrivate: boolean): Promise<number> {
    const { store, clock } = this.#parts;
    try {
      return this.tasks.start(
        "playlist_import",
        async (progress) => {
          await importList(store, clock, { open: list.open, owner, allowPrivate }, progress);
          this.#changed();
        },
        list.remove,
      );
    } catch (error) {
      await list.remove();
      throw error;
    }
  }

  /** Fetches a list and imports it in the background; returns the task. Rejects with `too_busy`. */
  importUrl(url: string, owner: string, allowPrivate: boolean): number {
    const { store, clock, open } = this.#parts;
    return this.tasks.start(
      "playlist_import",
      async (progress) => {
        const late = deadline(clock, DOWNLOAD_TIMEOUT_MS, progress.signal);
        let list: Spooled | null = null;
        try {
          const options = { ...LIST_PATIENCE, maxBytes: MAX_IMPORT_BYTES, allowPrivate };
          const answer = await opened(open, url, options, late.signal);
          list = await this.keep(answer.body).catch(async (error) => {
            // It may have failed before anything was read.
            await answer.body.cancel().catch(() => {});
            throw error;
          });
          const { url: baseUrl, isUnpacked, isPublic } = answer;
          const request = { open: list.open, baseUrl, isUnpacked, owner, allowPrivate, isPublic };
          await importList(store, clock, request, progress);
          this.#changed();
        } finally {
          late.cancel();
          await list?.remove();
        }
      },
      undefined,
      "elsewhere",
    );
  }

  /** Adds an external playlist and, unless `updateNow` is false, begins to fetch it; returns its id. */
  async addExternal(list: NewExternalPlaylist, updateNow: boolean): Promise<number> {
    const id = await this.#playlists.add(list);
    // A failure is logged, and shown as `lastError`.
    if (updateNow) {
      this.#updater.update(id, { isByHand: true }).catch(() => {}).finally(() => void this.#schedule.wake());
    } else void this.#schedule.wake();
    return id;
  }

  /** See `ExternalPlaylists.edit`. */
  async editExternal(id: number, edit: ExternalPlaylistEdit): Promise<void> {
    await this.#playlists.edit(id, edit);
    void this.#schedule.wake();
  }

  /** See `ExternalPlaylists.delete`. */
  async deleteExternal(id: number): Promise<void> {
    await this.#playlists.delete(id);
    this.#changed();
  }

  /** See `ExternalUpdater.update`. */
  async updateExternal(id: number): Promise<void> {
    await this.#updater.update(id, { isByHand: true });
    void this.#schedule.wake();
  }

  /** Updates all external playlists in the background; returns the task. Failures are reported by the playlist's name. */
  updateAllExternal(): number {
    return this.tasks.start(
      "update_all_external_playlists",
      async (progress) => {
        const lists = await this.#playlists.get();
        progress.total = lists.length;
        await forEachLimited(lists, UPDATED_AT_ONCE, async ({ id, name }) => {
          if (progress.signal.aborted) return;
          try {
            await this.#updater.update(id, {
              isByHand: true,
              report: (error) => progress.report({ ...error, message: `${name}: ${error.message}` }),
            });
          } catch (error) {
            const message = error instanceof MillraceError ? error.message : "internal error";
            progress.report({ line: 0, message: `${name}: ${message}` });
          }
          progress.done++;
        });
        void this.#schedule.wake();
      },
      undefined,
      "elsewhere",
    );
  }

  /** See `exportM3u`. */
  export(request: ExportRequest): AsyncGenerator<string> {
    return exportM3u(this.#parts.store, request);
  }

  /** See `searchItems`. */
  search(request: SearchRequest): Promise<SearchPage> {
    return searchItems(this.#parts.store, request);
  }

  /** Programme guides that lists name or callers gave, in the order of their addresses. */
  async guides(): Promise<string[]> {
    const db = await this.#parts.store.read();
    const rows = await db.selectFrom("guides").select("url")
      .union(db.selectFrom("guide_sources").select("url").where("is_given", "=", 1)).orderBy("url").execute();
    return rows.map(({ url }) => url);
  }

  /** See `itemsToAnalyze` in `learn.ts`. */
  itemsToAnalyze(ids: readonly number[], useMediaGroups: boolean, limit: number): ReturnType<typeof itemsToAnalyze> {
    return itemsToAnalyze(this.#parts.store, ids, useMediaGroups, limit);
  }

  /** See `learn` in `learn.ts`. */
  learn(id: number, facts: ItemFacts): Promise<void> {
    return learn(this.#parts.store, this.#parts.clock, id, facts);
  }

  /**
   * The programme guides that the list at `url` names, read no further than needed; null when it is not a list.
   *
   * @throws `invalid_argument`, `denied`, `not_found`, `too_large`, `timeout`, `protocol_violation`,
   * `connection_failed`, or the signal's reason: as `guardedOpen`; `not_found` for 404 and 410, `connection_failed` for
   * other failures
   */
  async guidesAt(url: string, allowPrivate: boolean, signal: AbortSignal): Promise<string[] | null> {
    const { clock, open } = this.#parts;
    const late = deadline(clock, GUIDES_TIMEOUT_MS, signal);
    try {
      const options = { timeoutMs: GUIDES_TIMEOUT_MS, maxBytes: MAX_IMPORT_BYTES, allowPrivate };
      const { body, isUnpacked = false } = await opened(open, url, options, late.signal);
      const limits = {
        signal: late.signal,
        isUnpacked,
        maxBytes: MAX_GUIDES_BYTES,
        maxUnpackedBytes: MAX_GUIDES_BYTES,
      };
      for await (const event of readM3u(body, limits)) {
        if (event.kind === "header") return guidesOf(event.header);
        if (event.kind === "entry") return [];
      }
      return null;
    } catch (error) {
      // The address works but holds something else.
      if (hasCode(error, "invalid_argument") && /^invalid playlist/.test(error.message)) return null;
      throw error;
    } finally {
      late.cancel();
    }
  }

  /** Ends tasks, updates and the schedule. */
  async close(): Promise<void> {
    await Promise.all([this.#schedule.close(), this.#updater.close(), this.tasks.close()]);
  }
}

/** Opens an address; rejects unless the status is 2xx and the body whole: `not_found` for 404 and 410, else `connection_failed`. */
async function opened(open: OpenUrl, ...args: Parameters<OpenUrl>): ReturnType<OpenUrl> {
  const answer = await open(...args);
  if (isWhole(answer.status)) return answer;
  await answer.body.cancel();
  const code = answer.status === 404 || answer.status === 410 ? "not_found" : "connection_failed";
  throw new MillraceError(code, `the server answered ${answer.status}`);
}
