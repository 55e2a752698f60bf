/** Deadlines on the injected clock. */
import { abortError, MillraceError } from "../errors.ts";
import type { Clock } from "../ports.ts";

/** A signal that fires with `parent` or when the time is over. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** Releases the timer and the link to the parent. Call it in a `finally`. */
  cancel(): void;
}

/** A deadline of `timeoutMs` from now; its reason is `reason()` (default: code `timeout`) or the parent's. */
export function deadline(
  clock: Clock,
  timeoutMs: number,
  parent?: AbortSignal,
  reason: () => MillraceError = () => new MillraceError("timeout", "the deadline passed"),
): Deadline {
  const controller = new AbortController();
  const timer = clock.setTimeout(() => controller.abort(reason()), timeoutMs);
  const follow = () => controller.abort(parent === undefined ? undefined : abortError(parent));
  if (parent?.aborted) follow();
  else parent?.addEventListener("abort", follow, { once: true });
  return {
    signal: controller.signal,
    cancel() {
      timer.cancel();
      parent?.removeEventListener("abort", follow);
    },
  };
}

/** `promise`, or a rejection with the signal's reason as soon as it fires; the promise itself continues unobserved. */
export function withSignal<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    promise.catch(() => {});
    return Promise.reject(abortError(signal));
  }
  return new Promise<T>((resolve, reject) => {
    const abort = () => reject(abortError(signal));
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** Waits on the clock; rejects with the signal's reason when it fires. */
export function sleep(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(abortError(signal));
    const abort = () => {
      timer.cancel();
      reject(abortError(signal));
    };
    const timer = clock.setTimeout(() => {
      signal.removeEventListener("abort", abort);
      resolve();
    }, delayMs);
    signal.addEventListener("abort", abort, { once: true });
  });
}
