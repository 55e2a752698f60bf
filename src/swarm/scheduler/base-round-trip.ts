/** The round trip to a peer without what waits in queues on the way. */

/** The base is measured again this often, so that a changed route is noticed. */
const WINDOW_MS = 10_000;

/** The round trip of one peer. */
export class BaseRoundTrip {
  readonly #unknownMs: number;
  #ms: number;
  #windowMinMs = Number.POSITIVE_INFINITY;
  #windowStartMs = 0;

  /** `ms`: as the host measured it, null when it did not; `unknownMs` is assumed then. */
  constructor(ms: number | null, unknownMs: number) {
    this.#ms = ms ?? Number.POSITIVE_INFINITY;
    this.#unknownMs = unknownMs;
  }

  /** Smallest time from request to block, or the host's round trip. */
  get ms(): number {
    return this.#ms === Number.POSITIVE_INFINITY ? this.#unknownMs : this.#ms;
  }

  /** The host has measured it. */
  set(ms: number): void {
    this.#ms = ms;
  }

  /** A block came `latencyMs` after its request. */
  add(latencyMs: number, nowMs: number): void {
    if (latencyMs < this.#ms) this.#ms = latencyMs;
    if (latencyMs < this.#windowMinMs) this.#windowMinMs = latencyMs;
    if (nowMs - this.#windowStartMs <= WINDOW_MS) return;
    // Half of the recent minimum: low enough that our own queue does not raise it, high enough to follow a longer route.
    if (this.#windowStartMs > 0) this.#ms = Math.max(this.#ms, this.#windowMinMs / 2);
    this.#windowStartMs = nowMs;
    this.#windowMinMs = Number.POSITIVE_INFINITY;
  }
}
