/**
 * The times with which pieces are stamped. Receivers drop pieces whose time does not grow, play at the speed at which
 * it grows, and skip when it jumps. A wall clock may be set to any time at any moment, and starts at 1970 on a machine
 * without a battery. So capture times run with the monotonic clock and only drift towards the wall clock.
 */
import type { Clock } from "../../ports.ts";

/** Drift towards the wall clock, as a share of the time that has passed, as `adjtime` does it. */
const SLEW_SHARE = 0.01;
/**
 * How far stamps may run ahead of the saved state, ms: a broadcaster that was killed and finds its clock set back
 * continues from there.
 */
export const UNSAVED_MS = 10_000;

/** Capture times of one broadcast. */
export class CaptureClock {
  readonly #clock: Pick<Clock, "now" | "monotonic">;
  #timeMs: number;
  #atMs: number;

  /**
   * `savedMs`: a capture time of the last start, at most `UNSAVED_MS` before its last one; 0 at the first start. `startMs`:
   * monotonic ms of the first capture.
   */
  constructor(clock: Pick<Clock, "now" | "monotonic">, savedMs: number, startMs: number = clock.monotonic()) {
    this.#clock = clock;
    this.#atMs = startMs;
    const wallMs = this.#wallMs(startMs);
    // A wall clock later than the saved time is right, as far as we can know.
    this.#timeMs = wallMs > savedMs ? wallMs : savedMs + UNSAVED_MS;
  }

  /** The time of what is captured now: see `at`. */
  now(): number {
    return this.at(this.#clock.monotonic());
  }

  /** Unix ms at the monotonic time `atMs`, as far as the wall clock was right; never less than before. */
  at(atMs: number): number {
    const passedMs = Math.max(0, atMs - this.#atMs);
    this.#atMs = Math.max(this.#atMs, atMs);
    const offMs = this.#wallMs(atMs) - (this.#timeMs + passedMs);
    const mostMs = SLEW_SHARE * passedMs;
    this.#timeMs += passedMs + Math.max(-mostMs, Math.min(mostMs, offMs));
    return Math.floor(this.#timeMs);
  }

  #wallMs(atMs: number): number {
    return this.#clock.now() - (this.#clock.monotonic() - atMs);
  }
}
