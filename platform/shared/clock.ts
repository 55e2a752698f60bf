/** The real clock, on web-standard globals and each runtime's way to unreference a timer. */
import type { Clock } from "../../src/ports.ts";

/** Longest delay that timers support, ms; a longer one would fire at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** The machine's clock. `unref` stops a timer from keeping the process alive. */
export function createClock(unref: (timer: unknown) => void): Clock {
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    setTimeout(fn, delayMs) {
      const timer = setTimeout(fn, Math.min(Math.max(0, delayMs), MAX_DELAY_MS));
      unref(timer);
      return { cancel: () => clearTimeout(timer) };
    },
  };
}
