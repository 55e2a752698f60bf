/** Timers whose failures belong to somebody. */
import type { Clock } from "../ports.ts";

/**
 * `clock` for one owner: an exception in one of its timers is handed to `failed` instead of ending the process, and with
 * it what everybody else is watching.
 */
export function guardedClock(clock: Clock, failed: (error: unknown) => void): Clock {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    setTimeout: (fn, delayMs) =>
      clock.setTimeout(() => {
        try {
          fn();
        } catch (error) {
          failed(error);
        }
      }, delayMs),
  };
}
