/** Connections that come back: a source is read again and again until it has ended for good. */
import { MillraceError } from "../errors.ts";
import type { LiveInputEvent } from "../live/broadcast/input.ts";
import type { Clock } from "../ports.ts";
import { sleep } from "../bytes/deadline.ts";
import { reasonOf, within } from "./input.ts";

/**
 * A source that sends nothing for this long counts as lost, ms: transport streams have packets every few milliseconds,
 * and viewers who start 2 s behind the edge have waited long by then.
 */
export const SILENT_AFTER_MS = 5000;

/** First pause between tries, ms; each is twice as long as the one before. */
export const RETRY_FIRST_MS = 500;
/** Longest pause, ms: a server that is down is not flooded, and one that is back is found soon. */
export const RETRY_MOST_MS = 10_000;

/** A connection that delivered for this long was a good one, ms: the next pause is the first again. */
const GOOD_AFTER_MS = 10_000;

/** A failure that no later try can mend. */
export class FatalSourceError extends MillraceError {}

/** How `retrying` goes about it. */
export interface RetryOptions {
  /** An end in order is the end for good. */
  readonly once: boolean;
  /** Patience for the first bytes of a connection, ms. Default `SILENT_AFTER_MS`. */
  readonly firstMs?: number;
  /** Longest pause between tries, ms. Default `RETRY_MOST_MS`. */
  readonly mostPauseMs?: number;
  readonly signal: AbortSignal;
}

/**
 * Reads what `connect` opens and opens it again when it ends, fails or falls silent. A `FatalSourceError` is passed on.
 * `connect` is given a signal of its own, which fires when its stream is left.
 */
export async function* retrying(
  clock: Clock,
  connect: (signal: AbortSignal) => AsyncIterable<Uint8Array>,
  options: RetryOptions,
): AsyncGenerator<LiveInputEvent, void> {
  const { once, signal, mostPauseMs = RETRY_MOST_MS } = options;
  let pauseMs = RETRY_FIRST_MS;
  for (;;) {
    const startMs = clock.monotonic();
    let reason = "the source ended the stream";
    try {
      for await (const bytes of untilSilent(clock, connect, options)) yield { kind: "data", bytes };
      if (once) return;
    } catch (error) {
      if (signal.aborted || error instanceof FatalSourceError) throw error;
      reason = reasonOf(error);
    }
    yield { kind: "lost", reason };
    if (clock.monotonic() - startMs >= GOOD_AFTER_MS) pauseMs = RETRY_FIRST_MS;
    await sleep(clock, pauseMs, signal);
    pauseMs = Math.min(2 * pauseMs, mostPauseMs);
  }
}

async function* untilSilent(
  clock: Clock,
  connect: (signal: AbortSignal) => AsyncIterable<Uint8Array>,
  { firstMs = SILENT_AFTER_MS, signal }: RetryOptions,
): AsyncGenerator<Uint8Array, void> {
  let patienceMs = firstMs;
  const own = new AbortController();
  const chunks = connect(AbortSignal.any([signal, own.signal]))[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await within(clock, patienceMs, chunks.next(), signal);
      if (next === null) throw new MillraceError("timeout", `nothing came for ${patienceMs / 1000} s`);
      if (next.done) return;
      patienceMs = SILENT_AFTER_MS;
      yield next.value;
    }
  } finally {
    own.abort(new MillraceError("closed", "the connection is no longer read"));
    // Not awaited: a stream that hangs must not hold up the next try.
    void chunks.return?.()?.catch(() => {});
  }
}
