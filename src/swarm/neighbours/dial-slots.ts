/** Connections being opened, over all swarms: home routers choke on more than a few dozen at once. */

/** Half-open connections at once. */
const MAX_HALF_OPEN = 30;

/** A counted set of slots; swarms that found none free are served in turn. */
export class DialSlots {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(limit: number = MAX_HALF_OPEN) {
    this.#free = limit;
  }

  tryTake(): boolean {
    if (this.#free === 0) return false;
    this.#free--;
    return true;
  }

  /** Returns a slot and calls the longest waiter. */
  release(): void {
    this.#free++;
    const next = this.#waiting.values().next().value;
    if (next === undefined) return;
    this.#waiting.delete(next);
    next();
  }

  /** Calls `fn` once when a slot may be free. The same `fn` waits once. */
  wait(fn: () => void): void {
    this.#waiting.add(fn);
  }

  forget(fn: () => void): void {
    this.#waiting.delete(fn);
  }
}
