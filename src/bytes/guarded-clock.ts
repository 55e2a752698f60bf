/** Callbacks whose failures belong to somebody. */
import { MillraceError } from "../errors.ts";
import type { Clock, Logger, LogLevel } from "../ports.ts";

/** What the log says of an exception that is a fault of the engine. */
export function faultFields(error: unknown): Record<string, unknown> {
  return { code: "internal", error: String(error), stack: error instanceof Error ? error.stack : undefined };
}

/** Logs why something ended: at `level`, or as an error with its stack when it is a fault of the engine. */
export function logFailure(
  log: Logger,
  level: LogLevel,
  message: string,
  error: unknown,
  fields: Readonly<Record<string, unknown>> = {},
): void {
  if (error instanceof MillraceError) log.log(level, message, { ...fields, error });
  else log.log("error", message, { ...fields, ...faultFields(error) });
}

/** `fn` for one owner: what it throws, and what the promise that it returns rejects with, is handed to `failed`. */
export function guarded<Args extends unknown[]>(
  fn: (...args: Args) => unknown,
  failed: (error: unknown) => void,
): (...args: Args) => void {
  return (...args) => {
    try {
      const result = fn(...args);
      if (result instanceof Promise) result.catch(failed);
    } catch (error) {
      failed(error);
    }
  };
}

/**
 * `clock` for one owner: an exception in one of its timers, or in the promise that a timer returns, is handed to `failed`
 * instead of ending the process, and with it what everybody else is watching.
 */
export function guardedClock(clock: Clock, failed: (error: unknown) => void): Clock {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    setTimeout: (fn, delayMs) => clock.setTimeout(guarded(fn, failed), delayMs),
  };
}

/** Hands what `promise` rejects with to the owner of `clock`, as if one of its timers had thrown it. */
export function leadTo(clock: Clock, promise: Promise<unknown>): void {
  promise.catch((error) =>
    clock.setTimeout(() => {
      throw error;
    }, 0)
  );
}
