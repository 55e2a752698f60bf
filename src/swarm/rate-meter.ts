/** Byte rates as the mean over a sliding window, cheap enough to feed with every block. */

/** Length of the window, ms: what `SwarmStatus` promises. */
const RATE_WINDOW_MS = 2000;

/** Width of a slot, ms: the window moves in these steps, so a rate is at most one slot stale. */
const SLOT_MS = 250;
const SLOTS = RATE_WINDOW_MS / SLOT_MS;

/** Counts bytes and returns their mean rate over the last two seconds. Times are monotonic ms. */
export class RateMeter {
  /** Bytes counted since the start. */
  totalBytes = 0;
  readonly #slots = new Float64Array(SLOTS);
  #slot = 0;
  #windowBytes = 0;
  readonly #startedMs: number;

  constructor(nowMs: number) {
    this.#startedMs = nowMs;
    this.#slot = Math.floor(nowMs / SLOT_MS);
  }

  add(bytes: number, nowMs: number): void {
    this.#advance(nowMs);
    this.#slots[this.#slot % SLOTS]! += bytes;
    this.#windowBytes += bytes;
    this.totalBytes += bytes;
  }

  /** Bytes per second. A meter younger than the window divides by its age (at least one slot). */
  rate(nowMs: number): number {
    this.#advance(nowMs);
    const age = Math.min(RATE_WINDOW_MS, Math.max(SLOT_MS, nowMs - this.#startedMs));
    return (this.#windowBytes * 1000) / age;
  }

  #advance(nowMs: number): void {
    const slot = Math.floor(nowMs / SLOT_MS);
    if (slot - this.#slot >= SLOTS) {
      this.#slots.fill(0);
      this.#windowBytes = 0;
      this.#slot = slot;
    }
    while (this.#slot < slot) {
      this.#slot++;
      const index = this.#slot % SLOTS;
      this.#windowBytes -= this.#slots[index]!;
      this.#slots[index] = 0;
    }
  }
}
