/** The pauses of a peer that answers on a timer, as Transmission does every 500 ms, then with all that was asked for. */
import type { BaseRoundTrip } from "./base-round-trip.ts";

/** Shorter silences are jitter, ms. */
const MIN_PAUSE_MS = 100;
/** Longest pause between bursts that the depth compensates for, ms: bounds what a seek waits for. */
const MAX_PAUSE_MS = 1000;
/** After this long without recurring, a pause is forgotten, or replaced by a shorter one that did recur, ms. */
const PAUSE_MEMORY_MS = 15_000;

/** What is known of one peer's pauses. */
export class AnswerPauses {
  readonly #route: BaseRoundTrip;
  readonly #slackMs: number;
  #pauseMs = 0;
  #setMs = 0;
  #seenMs = 0;
  /** Start of the present burst (data without a longer silence since then), and the number of its blocks. */
  #burstMs = Number.POSITIVE_INFINITY;
  #burstBlocks = 0;

  /** `slackMs`: a silence no longer than the base round trip and this is no pause. */
  constructor(route: BaseRoundTrip, slackMs: number) {
    this.#route = route;
    this.#slackMs = slackMs;
  }

  /** Longest recent silence of a peer that answers in bursts; 0 for others. */
  get pauseMs(): number {
    return this.#pauseMs;
  }

  /** A block of the present burst is whole. */
  block(): void {
    this.#burstBlocks++;
  }

  /**
   * Data came, the first since `lastDataMs`. Had the far end run dry in between? Yes, if the burst before was shorter than
   * the silence and served everything requested before it; a link that is merely slow always owes something older.
   * `busySinceMs`: since when it has owed something; `oldestSentMs`: when the oldest of that was requested, null when it
   * owes nothing. Returns whether it had.
   */
  notice(nowMs: number, lastDataMs: number, busySinceMs: number, oldestSentMs: number | null): boolean {
    if (this.#pauseMs > 0 && nowMs - this.#seenMs > PAUSE_MEMORY_MS) this.#pauseMs = 0;
    const silenceMs = nowMs - lastDataMs;
    if (silenceMs < Math.max(MIN_PAUSE_MS, this.#route.ms + this.#slackMs)) return false;
    const burstMs = this.#burstMs;
    const burstBlocks = this.#burstBlocks;
    this.#burstMs = nowMs;
    this.#burstBlocks = 0;
    // It was idle in between, or cut off for long: no evidence.
    if (oldestSentMs === null || busySinceMs > lastDataMs || silenceMs > 2 * MAX_PAUSE_MS) return false;
    if (burstBlocks < 2 || lastDataMs - burstMs > silenceMs || oldestSentMs < burstMs - this.#route.ms) return false;
    const pauseMs = Math.min(silenceMs, MAX_PAUSE_MS);
    this.#seenMs = nowMs;
    if (pauseMs > this.#pauseMs || nowMs - this.#setMs > PAUSE_MEMORY_MS) {
      this.#pauseMs = pauseMs;
      this.#setMs = nowMs;
    }
    return true;
  }
}
