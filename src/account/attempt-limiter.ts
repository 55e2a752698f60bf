/**
 * Limits how often sign-in may be tried, per key (an address, an account): a few attempts at once, then one per
 * interval. The table is bounded; filling it with other keys, so that one is forgotten, costs an attempt per key, each
 * half a second of hashing.
 */
import type { Clock } from "../ports.ts";

/** One kind of limit. */
export interface AttemptLimit {
  /** Failed attempts allowed in a row. */
  readonly burst: number;
  /** After those, one more attempt is allowed per this time, ms. */
  readonly refillMs: number;
}

/** Keys remembered, each some 100 bytes. */
const MAX_KEYS = 4096;

/** Counts attempts per key and says how long the next one must wait. */
export class AttemptLimiter {
  readonly #limit: AttemptLimit;
  readonly #clock: Clock;
  readonly #maxKeys: number;
  /** When each key has its full burst again, monotonic ms. Least recently used first. */
  readonly #fullAtMs = new Map<string, number>();

  constructor(clock: Clock, limit: AttemptLimit, maxKeys: number = MAX_KEYS) {
    this.#clock = clock;
    this.#limit = limit;
    this.#maxKeys = maxKeys;
  }

  /** Keys remembered now. */
  get size(): number {
    return this.#fullAtMs.size;
  }

  /** How long `key` must wait before its next attempt, ms; 0: it may try now. */
  waitMs(key: string): number {
    const { burst, refillMs } = this.#limit;
    const now = this.#clock.monotonic();
    const spentMs = (this.#fullAtMs.get(key) ?? now) - now;
    return Math.max(0, spentMs - (burst - 1) * refillMs);
  }

  /** Counts an attempt of `key` before it is made, so that many concurrent ones cannot pass. */
  take(key: string): void {
    const now = this.#clock.monotonic();
    const fullAtMs = Math.max(this.#fullAtMs.get(key) ?? now, now) + this.#limit.refillMs;
    this.#fullAtMs.delete(key);
    this.#fullAtMs.set(key, fullAtMs);
    if (this.#fullAtMs.size <= this.#maxKeys) return;
    for (const oldest of this.#fullAtMs.keys()) {
      this.#fullAtMs.delete(oldest);
      break;
    }
  }

  /**
   * Takes back one attempt of `key`, which succeeded. Earlier failures still count, or one success would buy more
   * guesses.
   */
  giveBack(key: string): void {
    const fullAtMs = this.#fullAtMs.get(key);
    if (fullAtMs !== undefined) this.#fullAtMs.set(key, fullAtMs - this.#limit.refillMs);
  }
}
