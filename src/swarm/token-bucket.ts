/** Rate limits shared by all peers of an engine. */
import type { Clock, Timer } from "../ports.ts";

/** How long a bucket saves up, ms: bursts stay short enough for a router's queue, long enough for a 20 ms timer. */
const BURST_MS = 250;

/** A burst is never smaller than this, bytes: one block and its header must fit whatever the limit. */
const MIN_BURST_BYTES = 32 * 1024;

/**
 * A token bucket that may run into debt. The bytes of an arrived block are counted whether or not there were tokens,
 * and everybody waits until the debt is paid. Limit 0 means unlimited.
 */
export class TokenBucket {
  readonly #clock: Clock;
  #limit: number;
  #tokens: number;
  #updatedMs: number;
  #timer: Timer | null = null;
  readonly #waiting = new Set<() => void>();

  /** `bytesPerSecond` ≥ 0; 0 = unlimited. */
  constructor(clock: Clock, bytesPerSecond: number) {
    this.#clock = clock;
    this.#limit = bytesPerSecond;
    this.#tokens = this.#burst();
    this.#updatedMs = clock.monotonic();
  }

  /** Bytes per second, 0 = unlimited. */
  get bytesPerSecond(): number {
    return this.#limit;
  }

  /** Changes the limit; waiters are served by the new one. */
  setLimit(bytesPerSecond: number): void {
    this.#refill();
    this.#limit = bytesPerSecond;
    this.#tokens = Math.min(this.#tokens, this.#burst());
    this.#timer?.cancel();
    this.#timer = null;
    this.#wake();
  }

  /** Counts bytes that have passed. */
  spend(bytes: number): void {
    if (this.#limit === 0) return;
    this.#refill();
    this.#tokens -= bytes;
  }

  /** True when bytes may pass now. */
  get open(): boolean {
    if (this.#limit === 0) return true;
    this.#refill();
    return this.#tokens > 0;
  }

  /** Calls `fn` once as soon as the bucket is open (in a later turn if it is open now). The same `fn` waits once. */
  whenOpen(fn: () => void): void {
    this.#waiting.add(fn);
    this.#arm();
  }

  /** Forgets a waiter. */
  forget(fn: () => void): void {
    this.#waiting.delete(fn);
  }

  /** Drops all waiters and the timer. */
  close(): void {
    this.#waiting.clear();
    this.#timer?.cancel();
    this.#timer = null;
  }

  #burst(): number {
    return Math.max(MIN_BURST_BYTES, (this.#limit * BURST_MS) / 1000);
  }

  #refill(): void {
    const now = this.#clock.monotonic();
    this.#tokens = Math.min(this.#burst(), this.#tokens + ((now - this.#updatedMs) * this.#limit) / 1000);
    this.#updatedMs = now;
  }

  #arm(): void {
    if (this.#timer !== null || this.#waiting.size === 0) return;
    const waitMs = this.open ? 0 : (1 - this.#tokens) * 1000 / this.#limit;
    this.#timer = this.#clock.setTimeout(() => {
      this.#timer = null;
      this.#wake();
    }, Math.max(1, Math.ceil(waitMs)));
  }

  /** Serves waiters while the bucket is open. The remaining ones wait for the next turn, first in, first out. */
  #wake(): void {
    try {
      for (const fn of [...this.#waiting]) {
        if (!this.open) break;
        this.#waiting.delete(fn);
        fn();
      }
    } finally {
      // Those after one that threw belong to other swarms, and must not wait forever.
      this.#arm();
    }
  }
}
