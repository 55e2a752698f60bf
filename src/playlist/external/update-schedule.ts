/** Updates external playlists, or guides, when they are due. */
import type { Store } from "../../database/store.ts";
import type { Clock, Logger, Timer } from "../../ports.ts";
import { latestUpdateAt } from "../refresh-time.ts";

/** Longest time between two checks of the table, ms: the clock may be set, and other engines may share the database. */
const LONGEST_WAIT_MS = 3_600_000;
/** If an engine that began an update has died, others take it over after this time, seconds. */
const CLAIM_S = 900;

/** Dependencies of `UpdateSchedule`. */
export interface ScheduleParts {
  readonly store: Store;
  /** The table of what is updated. */
  readonly table: "external_playlists" | "guide_sources";
  /** Updates one row and stores when it is due next. */
  readonly updater: { update(id: number, options: { readonly isByHand: false }): Promise<unknown> };
  /**
   * Updates run at once, and how many of them may be of rows whose last update failed: slow servers keep none of the others
   * waiting.
   */
  readonly lanes: { readonly all: number; readonly failed: number };
  /** Runs before each look at the table, at `now` in Unix seconds. */
  readonly tidy: (now: number) => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Runs the updates that are due. One timer, set for the row that is due next. */
export class UpdateSchedule {
  readonly #parts: ScheduleParts;
  /** Updates under way by row; `isFailed`: the last one failed. */
  readonly #running = new Map<number, { readonly isFailed: boolean; readonly over: Promise<void> }>();
  #timer: Timer | null = null;
  #looking: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(parts: ScheduleParts) {
    this.#parts = parts;
  }

  /** Looks at the table now, and again when a row is due; call it after every change. Resolves when updates have begun. */
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
    const { clock, log, table } = this.#parts;
    let waitMs = LONGEST_WAIT_MS;
    try {
      const now = Math.floor(clock.now() / 1000);
      await this.#parts.tidy(now);
      waitMs = await this.#begin(now);
    } catch (error) {
      if (!this.#isClosed) log.log("error", "a schedule of updates failed", { table, error });
    }
    if (this.#isClosed) return;
    this.#timer = clock.setTimeout(() => void this.wake(), waitMs);
  }

  /** Begins the updates that are due while lanes are free; returns when to look again, ms. Each end looks again, too. */
  async #begin(now: number): Promise<number> {
    const db = await this.#parts.store.open();
    // Both tables have these columns; their types would make each query a union.
    const table = this.#parts.table as "external_playlists";
    const rows = await db.selectFrom(table).select(["id", "next_update", "update_interval", "failures"])
      .where("next_update", ">", 0).orderBy("next_update").execute();
    let next = Infinity;
    for (const { id, next_update: at, update_interval: interval, failures } of rows) {
      // A time beyond the interval was stored by a clock that was ahead.
      const isBelieved = at <= Math.max(now + CLAIM_S, latestUpdateAt(now, interval, failures));
      if (at > now && isBelieved) {
        next = Math.min(next, at);
        continue;
      }
      const isFailed = failures > 0;
      if (this.#isClosed || this.#running.has(id) || !this.#hasLane(isFailed)) continue;
      // When several engines share the database, the first one to get here does the update.
      const claimed = await db.updateTable(table).set({ next_update: now + CLAIM_S })
        .where("id", "=", id).where("next_update", "=", at).returning("id").execute();
      if (claimed.length > 0) this.#update(id, isFailed);
    }
    return Math.min(LONGEST_WAIT_MS, Math.max(1000, next * 1000 - this.#parts.clock.now()));
  }

  #hasLane(isFailed: boolean): boolean {
    const { all, failed } = this.#parts.lanes;
    if (this.#running.size >= all) return false;
    return !isFailed || [...this.#running.values()].filter((one) => one.isFailed).length < failed;
  }

  #update(id: number, isFailed: boolean): void {
    const over = this.#parts.updater.update(id, { isByHand: false }).catch(() => {}).then(() => {
      this.#running.delete(id);
      void this.wake();
    });
    this.#running.set(id, { isFailed, over });
  }
}
