/** Timers whose failures belong to somebody. */
import type { Clock } from "../ports.ts";

/** What the log says of an exception that is a fault of the engine. */
export function faultFields(error: unknown): Record<string, unknown> {
  return { code: "internal", error: String(error), stack: error instanceof Error ? error.stack : undefined };
}

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
