/** The real clock, on web-standard globals and each runtime's way to unreference a timer. */
import type { Clock } from "../../src/ports.ts";

/** Longest delay that timers support, ms; a longer one would fire at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;
/** How often the clock is read at least, ms. */
const BEAT_MS = 1_000;
/**
 * Between two readings further apart than this, ms, the process stood still: it was stopped, or its machine or container
 * was. Nothing else keeps the event loop from a timer for this long.
 */
const STANDSTILL_MS = 5_000;
/** A timer that is due within this is run, ms: runtimes may be early by a fraction. */
const EARLY_MS = 10;

/** What a clock is made of. */
export interface Machine {
  /** Unix ms. */
  now(): number;
  /** Monotonic ms that go on while the process stands still, or do not: systems differ. */
  monotonic(): number;
  /** Runs `fn` once after `delayMs`, up to `MAX_DELAY_MS`, without keeping the process alive; returns what cancels it. */
  setTimeout(fn: () => void, delayMs: number): () => void;
}

/** The machine's clock, and how many of its timers wait. `unref` stops a timer from keeping the process alive. */
export function createClock(unref: (timer: unknown) => void): { readonly clock: Clock; pendingTimers(): number } {
  const clock = clockOf({
    now: () => Date.now(),
    monotonic: () => performance.now(),
    setTimeout(fn, delayMs) {
      const timer = setTimeout(fn, delayMs);
      unref(timer);
      return () => clearTimeout(timer);
    },
  });
  let pending = 0;
  const counted = (fn: () => void, delayMs: number) => {
    let waits = true;
    const leave = () => {
      if (waits) pending--;
      waits = false;
    };
    pending++;
    const timer = clock.setTimeout(() => {
      leave();
      fn();
    }, delayMs);
    return {
      cancel() {
        leave();
        timer.cancel();
      },
    };
  };
  return { clock: { ...clock, setTimeout: counted }, pendingTimers: () => pending };
}

/** A clock on `machine`: time in which the process stood still is not in its `monotonic`, nor in the delays of its timers. */
export function clockOf(machine: Machine): Clock {
  let seenMs = machine.monotonic();
  let stoodStillMs = 0;
  const monotonic = () => {
    const nowMs = machine.monotonic();
    if (nowMs - seenMs > STANDSTILL_MS) stoodStillMs += nowMs - seenMs;
    seenMs = nowMs;
    return nowMs - stoodStillMs;
  };
  const beat = () => {
    monotonic();
    machine.setTimeout(beat, BEAT_MS);
  };
  beat();
  return {
    now: machine.now,
    monotonic,
    setTimeout(fn, delayMs) {
      const dueMs = monotonic() + Math.max(0, delayMs);
      let cancel = () => {};
      const arm = (leftMs: number) => {
        cancel = machine.setTimeout(() => {
          const restMs = dueMs - monotonic();
          if (restMs > EARLY_MS) arm(restMs);
          else fn();
        }, Math.min(leftMs, MAX_DELAY_MS));
      };
      arm(Math.max(0, delayMs));
      return { cancel: () => cancel() };
    },
  };
}
