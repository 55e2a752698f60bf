/** Updates external playlists when they are due, and moves items that vanished from them to the trash. */
import type { Store } from "../../database/store.ts";
import type { Clock, Logger, Timer } from "../../ports.ts";
import { latestUpdateAt } from "../refresh-time.ts";
import { sweepVanished } from "./apply.ts";
import type { ExternalUpdater } from "./updater.ts";
import { believedTime } from "./vanished-time.ts";

/** Updates that the schedule runs at once: they mostly wait for servers. */
const LANES = 8;
/** How many of them may be of lists whose last update failed: slow servers keep none of the others waiting. */
const LANES_OF_FAILED = 4;
/** Longest time between two checks of the table, ms: the clock may be set, and other engines may share the database. */
const LONGEST_WAIT_MS = 3_600_000;
/** If an engine that began an update has died, others take it over after this time, seconds. */
const CLAIM_S = 900;
/** How long an item that vanished from its list stays out of the trash, seconds. */
const VANISHED_S = 7 * 86_400;

/** Dependencies of `ExternalSchedule`. */
export interface ScheduleParts {
  readonly store: Store;
  readonly updater: ExternalUpdater;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Runs the updates that are due. One timer, set for the list that is due next. */
export class ExternalSchedule {
  readonly #parts: ScheduleParts;
  /** Updates under way by list; `isFailed`: the last one failed. */
  readonly #running = new Map<number, { readonly isFailed: boolean; readonly over: Promise<void> }>();
  #timer: Timer | null = null;
  #looking: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(parts: ScheduleParts) {
    this.#parts = parts;
  }

  /** Looks at the table now, and again when a list is due; call it after every change. Resolves when updates have begun. */
  wake(): Promise<void> {
    return this.#looking = this.#looking.then(() => this.#look());
  }

  /** Ends the timer; the updater ends the updates. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#looking;
    await Promise.all([...this.#running.values()].map(({ over }) => over));
  }

  async #look(): Promise<void> {
    if (this.#isClosed) return;
    this.#timer?.cancel();
    const { clock, log, store } = this.#parts;
    let waitMs = LONGEST_WAIT_MS;
    try {
      const now = Math.floor(clock.now() / 1000);
      if (await believedTime(store, now, VANISHED_S)) await sweepVanished(store, now - VANISHED_S, now);
      waitMs = await this.#begin(now);
    } catch (error) {
      log.log("error", "the schedule of external playlists failed", { error });
    }
    if (this.#isClosed) return;
    this.#timer = clock.setTimeout(() => void this.wake(), waitMs);
  }

  /** Begins the updates that are due, as far as lanes are free; returns when to look again, ms. Each end looks again, too. */
  async #begin(now: number): Promise<number> {
    const db = await this.#parts.store.open();
    const lists = await db.selectFrom("external_playlists").select(["id", "next_update", "update_interval", "failures"])
      .where("next_update", ">", 0).orderBy("next_update").execute();
    let next = Infinity;
    for (const { id, next_update: at, update_interval: interval, failures } of lists) {
      // A time beyond the interval was stored by a clock that was ahead.
      const isBelieved = at <= Math.max(now + CLAIM_S, latestUpdateAt(now, interval, failures));
      if (at > now && isBelieved) {
        next = Math.min(next, at);
        continue;
      }
      const isFailed = failures > 0;
      if (this.#isClosed || this.#running.has(id) || !this.#hasLane(isFailed)) continue;
      // When several engines share the database, the first one to get here does the update.
      const claimed = await db.updateTable("external_playlists").set({ next_update: now + CLAIM_S })
        .where("id", "=", id).where("next_update", "=", at).returning("id").execute();
      if (claimed.length > 0) this.#update(id, isFailed);
    }
    return Math.min(LONGEST_WAIT_MS, Math.max(1000, next * 1000 - this.#parts.clock.now()));
  }

  #hasLane(isFailed: boolean): boolean {
    if (this.#running.size >= LANES) return false;
    return !isFailed || [...this.#running.values()].filter((one) => one.isFailed).length < LANES_OF_FAILED;
  }

  #update(id: number, isFailed: boolean): void {
    const over = this.#parts.updater.update(id, { isByHand: false }).catch(() => {}).then(() => {
      this.#running.delete(id);
      void this.wake();
    });
    this.#running.set(id, { isFailed, over });
  }
}
