/** How often a swarm that lacks peers asks its trackers and the DHT for more. */

/** Usual time between two requests, ms. */
const NORMAL_MS = 15_000;
/** The same at first while nobody can connect to us and we have no peer: somebody waits for the start. */
const URGENT_MS = 2_500;

/** What is due. */
export type SearchNeed = "none" | "normal" | "urgent";

/** How the time between two requests of a lonely swarm grows. */
export interface LonelyPace {
  /** In shares of the time for which it has been lonely. */
  readonly share: number;
  /** Up to this, ms. */
  readonly mostMs: number;
}

/** Somebody who opened a magnet waits: seven requests in the first minute, then the usual pace. */
const OPENED: LonelyPace = { share: 0.5, mostMs: NORMAL_MS };
/**
 * A broadcast waits for viewers for hours, and each of them starts when it is found: 2.5 s for some minutes, then up to
 * 10 s.
 */
export const BROADCAST: LonelyPace = { share: 1 / 60, mostMs: 10_000 };

/** The pace of one swarm. Times are monotonic ms. */
export class SearchPace {
  readonly #lonely: LonelyPace;
  #askedMs = -Infinity;
  #lonelyMs: number | null = null;

  constructor(lonely: LonelyPace = OPENED) {
    this.#lonely = lonely;
  }

  /**
   * What is due now; call it about every second. `isShort`: more peers are wanted; `isLonely`: and only asking brings
   * them.
   */
  due(nowMs: number, isShort: boolean, isLonely: boolean): SearchNeed {
    if (!isLonely) this.#lonelyMs = null;
    else this.#lonelyMs ??= nowMs;
    if (!isShort && !isLonely) return "none";
    if (nowMs - this.#askedMs < this.#intervalMs(nowMs)) return "none";
    this.#askedMs = nowMs;
    return isLonely ? "urgent" : "normal";
  }

  #intervalMs(nowMs: number): number {
    if (this.#lonelyMs === null) return NORMAL_MS;
    const { share, mostMs } = this.#lonely;
    return Math.min(mostMs, Math.max(URGENT_MS, share * (nowMs - this.#lonelyMs)));
  }
}
