/** A clock that stands still until the test moves it. */
import type { Clock, Timer } from "../../src/ports.ts";

interface PendingTimer {
  readonly atMs: number;
  /** Order of creation: timers due at the same instant run first come, first served. */
  readonly sequence: number;
  readonly fn: () => void;
}

/** Default wall clock of a new `FakeClock`: 2026-01-01T00:00:00Z, Unix milliseconds. */
export const FAKE_EPOCH_MS = 1_767_225_600_000;

/**
 * `Clock` on virtual time. `advance` runs due timers in order of their time, each seeing its own instant as "now"; timers
 * set by a running timer run in the same call when they fall due.
 */
export class FakeClock implements Clock {
  #elapsedMs = 0;
  #stoodStillMs = 0;
  #sequence = 0;
  readonly #timers = new Set<PendingTimer>();
  readonly #epochMs: number;

  constructor(epochMs: number = FAKE_EPOCH_MS) {
    this.#epochMs = epochMs;
  }

  now(): number {
    return Math.floor(this.#epochMs + this.#elapsedMs + this.#stoodStillMs);
  }

  monotonic(): number {
    return this.#elapsedMs;
  }

  setTimeout(fn: () => void, delayMs: number): Timer {
    const timer = { atMs: this.#elapsedMs + Math.max(0, delayMs), sequence: this.#sequence++, fn };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  /** Timers not yet run or cancelled: zero after a clean close. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Milliseconds until the next timer is due; null when none is set. */
  get nextTimerMs(): number | null {
    const next = this.#earliest();
    return next === null ? null : Math.max(0, next.atMs - this.#elapsedMs);
  }

  /** The process stands still for `ms`: only the wall clock moves on. */
  standStill(ms: number): void {
    this.#stoodStillMs += ms;
  }

  /** Moves time on by `ms` (≥ 0), running what falls due. Promise reactions do not run in between: see `advanceAsync`. */
  advance(ms: number): void {
    const target = this.#elapsedMs + ms;
    while (this.#runNext(target));
    this.#elapsedMs = target;
  }

  /** As `advance`, and lets promise reactions settle before, between and after the timers. */
  async advanceAsync(ms: number): Promise<void> {
    const target = this.#elapsedMs + ms;
    await settle();
    while (this.#runNext(target)) await settle();
    this.#elapsedMs = target;
    await settle();
  }

  #runNext(targetMs: number): boolean {
    const next = this.#earliest();
    if (next === null || next.atMs > targetMs) return false;
    this.#timers.delete(next);
    this.#elapsedMs = Math.max(this.#elapsedMs, next.atMs);
    next.fn();
    return true;
  }

  #earliest(): PendingTimer | null {
    let best: PendingTimer | null = null;
    for (const timer of this.#timers) {
      if (best === null || timer.atMs < best.atMs || (timer.atMs === best.atMs && timer.sequence < best.sequence)) {
        best = timer;
      }
    }
    return best;
  }
}

/** Lets everything that only waits for resolved promises go on: one turn of the event loop. */
export function settle(): Promise<void> {
  return new Promise((resolve) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      channel.port1.close();
      resolve();
    };
    channel.port2.postMessage(null);
  });
}
