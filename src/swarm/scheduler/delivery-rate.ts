/**
 * How fast a peer delivers. Only time counts in which the peer owed something and had begun to deliver, so idle spells and
 * the first round trip don't spoil the rate.
 */
import type { Tuning } from "./tuning.ts";

/** A faded span of delivery, ms, after which a rate counts that is based on less than a block: 1.4 s of one second's memory. */
const SLOW_SPAN_MS = 750;

/** The rate of one peer, with a fading memory of `Tuning.rateWindowMs`. */
export class DeliveryRate {
  readonly #blockBytes: number;
  readonly #tuning: Tuning;
  #markMs = 0;
  #paused = true;
  #bytes = 0;
  #spanMs = 0;
  #counted = 0;

  constructor(blockBytes: number, tuning: Tuning) {
    this.#blockBytes = blockBytes;
    this.#tuning = tuning;
  }

  /** The peer owed nothing: the time until the next bytes does not count. */
  pause(): void {
    this.#paused = true;
  }

  /** Bytes came. */
  add(bytes: number, nowMs: number): void {
    if (this.#paused) {
      this.#paused = false;
      this.#markMs = nowMs;
      return;
    }
    const dt = nowMs - this.#markMs;
    if (dt > 0) {
      const keep = Math.exp(-dt / this.#tuning.rateWindowMs);
      this.#bytes *= keep;
      this.#spanMs = this.#spanMs * keep + this.#tuning.rateWindowMs * (1 - keep);
      this.#markMs = nowMs;
    }
    this.#bytes += bytes;
    if (this.#counted < 1 << 30) this.#counted += bytes;
  }

  /** Bytes that counted so far. */
  get countedBytes(): number {
    return this.#counted;
  }

  /** Whether enough came for a rate, or little for so long that it is a low one. */
  get measured(): boolean {
    return (this.#counted >= (3 * this.#blockBytes) / 4 && this.#spanMs > 0) || this.#spanMs >= SLOW_SPAN_MS;
  }

  /** The rate, at least 1. */
  get bytesPerSecond(): number {
    // Bytes held up in a buffer on the way arrive all at once: such a burst says nothing about the link.
    const spanMs = Math.max(this.#spanMs, this.#tuning.rateSpanMinMs);
    return Math.max((this.#bytes * 1000) / spanMs, 1);
  }
}
