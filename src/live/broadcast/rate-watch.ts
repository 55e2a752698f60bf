/** Compares what a broadcast sends with the bitrate that its transport file announces. */

/** Share by which the two may differ; a stream of variable bitrate differs by as much from scene to scene. */
const OFF_SHARE = 0.25;
/** The rates must come this near again before the announced one counts as right. */
const RIGHT_SHARE = 0.15;
/**
 * They must differ for this long before it counts as wrong, ms: the bytes that were read to find the bitrate come in
 * one burst.
 */
const OFF_MS = 10_000;

/** Reports when the announced bitrate is wrong. */
export class RateWatch {
  readonly #toldBytesPerS: number;
  readonly #warn: (message: string) => void;
  #trouble: string | null = null;
  #hasWarned = false;
  #offSinceMs: number | null = null;

  /** `warn` is called once at most: the announced bitrate is part of the id, so nothing can be done while it runs. */
  constructor(toldBytesPerS: number, warn: (message: string) => void) {
    this.#toldBytesPerS = toldBytesPerS;
    this.#warn = warn;
  }

  /** The current warning; null when the two agree. */
  get trouble(): string | null {
    return this.#trouble;
  }

  /** The stream's recent rate was `bytesPerS` (null: not known yet) at `nowMs`, monotonic. */
  look(bytesPerS: number | null, nowMs: number): void {
    if (bytesPerS === null) return;
    const off = Math.abs(bytesPerS / this.#toldBytesPerS - 1);
    if (off < RIGHT_SHARE) this.#trouble = null;
    if (off <= OFF_SHARE) {
      this.#offSinceMs = null;
      return;
    }
    this.#offSinceMs ??= nowMs;
    if (nowMs - this.#offSinceMs < OFF_MS) return;
    this.#trouble =
      `the stream has ${kilobits(bytesPerS)}, but ${kilobits(this.#toldBytesPerS)} are announced for good: ` +
      "viewers go by what they get; for those who join, begin another broadcast that announces the true bitrate";
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.#warn(this.#trouble);
  }
}

function kilobits(bytesPerS: number): string {
  return `${Math.round(bytesPerS * 8 / 1000)} kbit/s`;
}
