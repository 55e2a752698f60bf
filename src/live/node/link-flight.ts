/** The payload under way on one connection, and its round trip: its part of a `Flight`. */

/** The least round trip is taken over this time and measured again in each half of it, ms: routes change. */
const BASE_MS = 120_000;

/** A PING without a response. */
export interface Mark {
  readonly nonce: bigint;
  /** Payload between the PING before it and this one. */
  bytes: number;
  /** As in `Arrival`. */
  readonly aheadBytes: number;
  readonly sentMs: number;
}

/** The payload under way on one connection. */
export class LinkFlight {
  readonly marks: Mark[] = [];
  unmarkedBytes = 0;
  /** Payload handed over and not known to have arrived. */
  unackedBytes = 0;
  /** Monotonic ms at which payload arrived last, or began to be under way. */
  movedMs = -Infinity;
  markedMs = -Infinity;
  /** The connection is set aside: nothing arrives on it, so its payload does not count. */
  isAside = false;
  #baseMs: number | null = null;
  #nextBaseMs: number | null = null;
  #baseFromMs = 0;

  /** Least round trip of the last minutes, ms; null before the first. */
  get rttMs(): number | null {
    return this.#baseMs;
  }

  measured(rttMs: number, nowMs: number): void {
    if (nowMs - this.#baseFromMs > BASE_MS / 2) {
      this.#baseMs = this.#nextBaseMs;
      this.#nextBaseMs = null;
      this.#baseFromMs = nowMs;
    }
    this.#nextBaseMs = Math.min(this.#nextBaseMs ?? Infinity, rttMs);
    this.#baseMs = Math.min(this.#baseMs ?? Infinity, rttMs);
  }
}
