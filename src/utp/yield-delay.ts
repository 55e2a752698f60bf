/**
 * How long our packets wait in queues on their way: what LEDBAT (RFC 6817) yields by. The other end measures the one-way delay,
 * between two clocks that agree on nothing, so only its growth over the least of late counts.
 */

/** Delay that a yielding sender allows itself to add, ms. RFC 6817 has at most 100: too much for lines with short queues. */
const TARGET_MS = 25;
/** The least of this many samples counts: a busy receiver takes some packets late. */
const SAMPLES = 8;
/**
 * How long the path's own delay is remembered, ms: this and the last of these periods. Clocks drift apart by up to 50 ppm, 6 ms in
 * two minutes, and routes change.
 */
const PERIOD_MS = 60_000;

/** The delay of one direction. Times in µs have 32 bits and wrap. */
export class YieldDelay {
  readonly #samples: number[] = [];
  #next = 0;
  /** Least delay of this period and of the last one. */
  #leastUs = 0;
  #lastLeastUs = 0;
  #periodEndMs: number | null = null;

  /** Takes a measurement. True when a period is over: the path's own delay has to show itself again. */
  sample(oneWayUs: number, nowMs: number): boolean {
    this.#samples[this.#next] = oneWayUs;
    this.#next = (this.#next + 1) % SAMPLES;
    if (this.#periodEndMs === null) {
      this.#leastUs = this.#lastLeastUs = oneWayUs;
      this.#periodEndMs = nowMs + PERIOD_MS;
      return false;
    }
    this.#leastUs = least(this.#leastUs, oneWayUs);
    if (nowMs < this.#periodEndMs) return false;
    this.#lastLeastUs = this.#leastUs;
    this.#leastUs = oneWayUs;
    this.#periodEndMs = nowMs + PERIOD_MS;
    return true;
  }

  /** How much of the allowed delay is left, as a share of it: 1 with empty queues, 0 at the target, negative beyond. */
  get room(): number {
    if (this.#samples.length === 0) return 1;
    const nowUs = this.#samples.reduce(least);
    const ownUs = least(this.#leastUs, this.#lastLeastUs);
    return 1 - Math.max(0, (nowUs - ownUs) | 0) / 1000 / TARGET_MS;
  }
}

function least(a: number, b: number): number {
  return ((a - b) | 0) < 0 ? a : b;
}
