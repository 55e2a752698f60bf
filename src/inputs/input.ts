/** What all sources share: how they end, how they wait. */
import { withSignal } from "../bytes/deadline.ts";
import { MillraceError } from "../errors.ts";
import type { LiveInput, LiveInputEvent } from "../live/broadcast/input.ts";
import type { Clock } from "../ports.ts";

/**
 * A `LiveInput` of a generator. `return()` fires the signal, so that a wait under way ends too; two losses in a row
 * become one.
 */
export function liveInput(run: (signal: AbortSignal) => AsyncGenerator<LiveInputEvent, void>): LiveInput {
  return {
    [Symbol.asyncIterator]() {
      const controller = new AbortController();
      const { signal } = controller;
      const events = run(signal);
      const over = { done: true, value: undefined } as const;
      let wasLost = false;
      return {
        async next() {
          try {
            for (;;) {
              const next = await events.next();
              if (next.done) return over;
              const isLost = next.value.kind === "lost";
              if (isLost && wasLost) continue;
              wasLost = isLost;
              return next;
            }
          } catch (error) {
            if (signal.aborted) return over;
            throw error;
          }
        },
        async return() {
          controller.abort(new MillraceError("closed", "the source is no longer read"));
          await events.return().catch(() => {});
          return over;
        },
      };
    },
  };
}

/** `promise`, or null after `timeoutMs`: the promise itself continues. Rejects with the signal's reason when it fires. */
export async function within<T>(
  clock: Clock,
  timeoutMs: number,
  promise: Promise<T>,
  signal: AbortSignal,
): Promise<T | null> {
  let expire = () => {};
  const expired = new Promise<null>((resolve) => expire = () => resolve(null));
  const timer = clock.setTimeout(expire, timeoutMs);
  try {
    return await withSignal(Promise.race([promise, expired]), signal);
  } finally {
    timer.cancel();
  }
}

/** One line of what went wrong, for `lost`. */
export function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replaceAll(/\s+/g, " ").slice(0, 300);
}
