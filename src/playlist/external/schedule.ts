/** Updates external playlists when they are due, and moves items that vanished from them to the trash. */
import type { Store } from "../../database/store.ts";
import type { Clock, Logger, Timer } from "../../ports.ts";
import { sweepVanished } from "./apply.ts";
import type { ExternalUpdater } from "./updater.ts";

/** Updates that the schedule runs at once. */
const PARALLEL = 2;
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
  #timer: Timer | null = null;
  #looking: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(parts: ScheduleParts) {
    this.#parts = parts;
  }

  /** Looks at the table now, and again when a list is due; call it after every change. Resolves when due lists have been updated. */
  wake(): Promise<void> {
    return this.#looking = this.#looking.then(() => this.#look());
  }

  /** Ends the timer; the updater ends the updates. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#looking;
  }

  async #look(): Promise<void> {
    if (this.#isClosed) return;
    this.#timer?.cancel();
    const { clock, log } = this.#parts;
    let waitMs = LONGEST_WAIT_MS;
    try {
      const now = Math.floor(clock.now() / 1000);
      await sweepVanished(this.#parts.store, now - VANISHED_S, now);
      await this.#updateDue(now);
      waitMs = await this.#waitMs();
    } catch (error) {
      log.log("error", "the schedule of external playlists failed", { error });
    }
    if (this.#isClosed) return;
    this.#timer = clock.setTimeout(() => void this.wake(), waitMs);
  }

  async #updateDue(now: number): Promise<void> {
    const db = await this.#parts.store.open();
    const due = await db.selectFrom("external_playlists").select(["id", "next_update"])
      .where("next_update", ">", 0).where("next_update", "<=", now).orderBy("next_update").execute();
    const lane = async () => {
      for (let list = due.shift(); list !== undefined && !this.#isClosed; list = due.shift()) {
        // When several engines share the database, the first one to get here does the update.
        const claimed = await db.updateTable("external_playlists").set({ next_update: now + CLAIM_S })
          .where("id", "=", list.id).where("next_update", "=", list.next_update).returning("id").execute();
        if (claimed.length > 0) await this.#parts.updater.update(list.id, { isByHand: false }).catch(() => {});
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, lane));
  }

  async #waitMs(): Promise<number> {
    const db = await this.#parts.store.open();
    const next = await db.selectFrom("external_playlists").select("next_update").where("next_update", ">", 0)
      .orderBy("next_update").limit(1).executeTakeFirst();
    if (next === undefined) return LONGEST_WAIT_MS;
    return Math.min(LONGEST_WAIT_MS, Math.max(1000, next.next_update * 1000 - this.#parts.clock.now()));
  }
}
