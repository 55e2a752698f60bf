/** Bounded places for work that may hang, shared fairly. */
import { abortError, MillraceError } from "../../src/errors.ts";

/** How many may have a place. */
export interface PlaceLimits {
  /** In all. */
  readonly total: number;
  /** Of all that name a holder, so that some places stay for work that names none. */
  readonly held: number;
  /** Of one holder. */
  readonly perHolder: number;
  /** How many may wait. */
  readonly waiting: number;
}

interface Waiter {
  readonly holder: string | null;
  enter(): void;
}

/** Places that work takes and gives back. */
export class Places {
  readonly #limits: PlaceLimits;
  readonly #taken = new Map<string | null, number>();
  #total = 0;
  /** In the order in which they came. */
  readonly #waiting = new Set<Waiter>();

  constructor(limits: PlaceLimits) {
    this.#limits = limits;
  }

  /**
   * Runs `work` once there is a place for `holder` (null: none). Rejects with `too_busy` when too many wait, with the signal's
   * reason while it waits, and as `work` does. The place is free again when `work` has ended.
   */
  async run<T>(holder: string | null, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await this.#enter(holder, signal);
    try {
      return await work();
    } finally {
      this.#leave(holder);
    }
  }

  #enter(holder: string | null, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(abortError(signal));
    if (this.#hasPlace(holder)) return Promise.resolve(this.#take(holder));
    if (this.#waiting.size >= this.#limits.waiting) {
      return Promise.reject(new MillraceError("too_busy", "too many names are being looked up"));
    }
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.#waiting.delete(waiter);
        reject(abortError(signal));
      };
      const waiter: Waiter = {
        holder,
        enter: () => {
          signal.removeEventListener("abort", abort);
          this.#waiting.delete(waiter);
          this.#take(holder);
          resolve();
        },
      };
      this.#waiting.add(waiter);
      signal.addEventListener("abort", abort, { once: true });
    });
  }

  #hasPlace(holder: string | null): boolean {
    const { total, held, perHolder } = this.#limits;
    if (this.#total >= total) return false;
    if (holder === null) return true;
    return (this.#taken.get(holder) ?? 0) < perHolder && this.#total - (this.#taken.get(null) ?? 0) < held;
  }

  #take(holder: string | null): void {
    this.#total++;
    this.#taken.set(holder, (this.#taken.get(holder) ?? 0) + 1);
  }

  #leave(holder: string | null): void {
    this.#total--;
    const left = this.#taken.get(holder)! - 1;
    if (left > 0) this.#taken.set(holder, left);
    else this.#taken.delete(holder);
    for (const waiter of this.#waiting) if (this.#hasPlace(waiter.holder)) return waiter.enter();
  }
}
