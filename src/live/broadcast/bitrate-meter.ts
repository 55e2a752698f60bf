/** Measures the bitrate of a source. */

/**
 * Span of the average, ms. It is longer than the interval between keyframes, so that their bursts do not move the
 * average.
 */
const SPAN_MS = 10_000;
/** Shortest span that shows a rate, ms. */
const MIN_SPAN_MS = 2_000;
const BUCKET_MS = 500;

/** Average over the last ten seconds. Holds at most 21 numbers. */
export class BitrateMeter {
  readonly #buckets: { atMs: number; bytes: number }[] = [];
  #startMs: number | null = null;

  /** `bytes` arrived at `nowMs` (monotonic). */
  add(bytes: number, nowMs: number): void {
    this.#startMs ??= nowMs;
    const last = this.#buckets[this.#buckets.length - 1];
    if (last !== undefined && nowMs - last.atMs < BUCKET_MS) last.bytes += bytes;
    else this.#buckets.push({ atMs: nowMs, bytes });
    this.#drop(nowMs);
  }

  /** Bytes per second; null while too little was seen. */
  bytesPerS(nowMs: number): number | null {
    this.#drop(nowMs);
    if (this.#startMs === null || nowMs - this.#startMs < MIN_SPAN_MS) return null;
    const spanMs = Math.min(SPAN_MS, nowMs - this.#startMs);
    return this.#buckets.reduce((sum, bucket) => sum + bucket.bytes, 0) / (spanMs / 1000);
  }

  #drop(nowMs: number): void {
    while (this.#buckets.length > 0 && nowMs - this.#buckets[0]!.atMs > SPAN_MS) this.#buckets.shift();
  }
}
