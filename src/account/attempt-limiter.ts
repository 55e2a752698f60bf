/**
 * How often sign-in may be tried, by key (an address, an account): a few at once, then one in a while. The table is
 * bounded; who fills it with other keys to be forgotten spends an attempt, half a second of hashing, on each.
 */
import type { Clock } from "../ports.ts";

/** One kind of limit. */
export interface AttemptLimit {
  /** Attempts that may fail in a row. */
  readonly burst: number;
  /** Then one more is allowed each time this has passed, ms. */
  readonly refillMs: number;
}

/** Keys remembered, each some 100 bytes. */
const MAX_KEYS = 4096;

/** Counts attempts by key and says how long the next one has to wait. */
export class AttemptLimiter {
  private readonly limit: AttemptLimit;
  private readonly clock: Clock;
  private readonly maxKeys: number;
  /** When each key is as good as new, monotonic ms. The longest unused come first. */
  private readonly fullAtMs = new Map<string, number>();

  constructor(clock: Clock, limit: AttemptLimit, maxKeys: number = MAX_KEYS) {
    this.clock = clock;
    this.limit = limit;
    this.maxKeys = maxKeys;
  }

  /** Keys remembered now. */
  get size(): number {
    return this.fullAtMs.size;
  }

  /** How long `key` has to wait before it may try, ms; 0 = it may now. */
  waitMs(key: string): number {
    const { burst, refillMs } = this.limit;
    const now = this.clock.monotonic();
    const spentMs = (this.fullAtMs.get(key) ?? now) - now;
    return Math.max(0, spentMs - (burst - 1) * refillMs);
  }

  /** Counts an attempt of `key` before it is made, so that many at once do not pass. */
  take(key: string): void {
    const now = this.clock.monotonic();
    const fullAtMs = Math.max(this.fullAtMs.get(key) ?? now, now) + this.limit.refillMs;
    this.fullAtMs.delete(key);
    this.fullAtMs.set(key, fullAtMs);
    if (this.fullAtMs.size <= this.maxKeys) return;
    for (const oldest of this.fullAtMs.keys()) {
      this.fullAtMs.delete(oldest);
      break;
    }
  }

  /** Takes back one attempt of `key`: it was right. Failures before it still count, else one right answer would buy more. */
  giveBack(key: string): void {
    const fullAtMs = this.fullAtMs.get(key);
    if (fullAtMs !== undefined) this.fullAtMs.set(key, fullAtMs - this.limit.refillMs);
  }
}
