/** A bounded queue between data that arrives unasked and its reader. */
import { withSignal } from "../bytes/deadline.ts";

/** First in, first out; drops the newest when full. */
export class BoundedQueue<T> {
  readonly #limitBytes: number;
  readonly #sizeOf: (item: T) => number;
  #items: T[] = [];
  #bytes = 0;
  #waiting: Promise<void> | null = null;
  #wake = () => {};

  /** Holds at most `limitBytes` as `sizeOf` counts. */
  constructor(limitBytes: number, sizeOf: (item: T) => number) {
    this.#limitBytes = limitBytes;
    this.#sizeOf = sizeOf;
  }

  /** False when there is no room: the item is dropped. */
  push(item: T): boolean {
    const size = this.#sizeOf(item);
    if (this.#bytes + size > this.#limitBytes) return false;
    this.#bytes += size;
    this.#items.push(item);
    this.#wake();
    this.#waiting = null;
    return true;
  }

  /** Takes all items; empty when there are none. */
  takeAll(): T[] {
    const items = this.#items;
    this.#items = [];
    this.#bytes = 0;
    return items;
  }

  /** Resolves when there is an item; rejects when `signal` fires. */
  filled(signal: AbortSignal): Promise<void> {
    if (this.#items.length > 0) return Promise.resolve();
    this.#waiting ??= new Promise((resolve) => this.#wake = resolve);
    return withSignal(this.#waiting, signal);
  }
}
