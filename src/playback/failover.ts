/**
 * One broadcast from several sources. When one does not start or falls silent, the next continues in the same MPEG TS,
 * at a random access point, with counters that continue and a mark where the clock does not.
 */
import { deadline, withSignal } from "../bytes/deadline.ts";
import { abortError, MillraceError } from "../errors.ts";
import { TsSplicer } from "../bytes/ts/splice.ts";
import type { Clock, Logger, Timer } from "../ports.ts";
import type { LiveSession } from "./live/live-session.ts";
import { LONGEST_PAUSE_MS, pausedForTooLong } from "./session-base.ts";
import type { AnySession } from "./sessions.ts";

/**
 * A source that delivers nothing for this long is replaced by the next, ms: longer than the gaps that the window of a
 * broadcast bridges by itself, and about as long as players wait.
 */
const SILENCE_MS = 8000;
/** A start may take this part of the whole start timeout while there are others to try. */
const START_SHARE = 1 / 4;

/** One of the sources. */
export interface Source {
  /** Starts a session of it, or joins the existing one. */
  start(signal: AbortSignal): Promise<AnySession>;
  /** Its first bytes are out. */
  played(): void;
}

/** A source that has started. */
export interface StartedSource {
  /** Place among the sources. */
  readonly index: number;
  readonly session: AnySession;
}

/** What failover needs. */
export interface FailoverParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly startTimeoutMs: number;
}

/**
 * Starts the first of `sources` that starts, in their order from `from` on, each once. Rejects with the error of the first
 * one when none does, and with the signal's reason.
 */
export async function startOne(
  { clock, log, startTimeoutMs }: FailoverParts,
  sources: readonly Source[],
  signal: AbortSignal,
  from = 0,
): Promise<StartedSource> {
  let first: unknown = null;
  for (let i = 0; i < sources.length; i++) {
    const index = (from + i) % sources.length;
    const isLast = i === sources.length - 1;
    const late = deadline(clock, isLast ? startTimeoutMs : startTimeoutMs * START_SHARE, signal, () => {
      return new MillraceError("start_timeout", "start timeout: another source of the channel is tried");
    });
    try {
      return { index, session: await sources[index]!.start(late.signal) };
    } catch (error) {
      if (signal.aborted) throw abortError(signal);
      log.log("debug", "a source of a channel did not start", { error });
      first ??= error;
    } finally {
      late.cancel();
    }
  }
  throw first ?? new MillraceError("not_found", "the channel has nothing to play");
}

/**
 * The MPEG TS of a channel that began with `started`, a broadcast. It ends when a broadcast ends and no source is left
 * to continue, and breaks off when none of them plays any more or its client pauses for `LONGEST_PAUSE_MS`.
 */
export function channelStream(
  parts: FailoverParts,
  sources: readonly Source[],
  started: { readonly index: number; readonly session: LiveSession },
): ReadableStream<Uint8Array> {
  const leaving = new AbortController();
  const chunks = read(parts, sources, started, leaving.signal);
  let pause: Timer | null = null;
  const leave = async (reason: MillraceError) => {
    pause?.cancel();
    leaving.abort(reason);
    await chunks.return(undefined).catch(() => {});
  };
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      pause?.cancel();
      const { done, value } = await chunks.next();
      if (done) return controller.close();
      controller.enqueue(value);
      pause = parts.clock.setTimeout(() => {
        // Otherwise another source would continue where the session of this one was cut.
        const reason = pausedForTooLong();
        controller.error(reason);
        void leave(reason);
      }, LONGEST_PAUSE_MS);
    },
    cancel: () => leave(new MillraceError("aborted", "the client left")),
  }, { highWaterMark: 0 });
}

async function* read(
  parts: FailoverParts,
  sources: readonly Source[],
  started: { readonly index: number; readonly session: LiveSession },
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const splicer = new TsSplicer();
  let { index, session } = started;
  /** Sources that have delivered nothing since the last byte. */
  let failures = 0;
  for (;;) {
    let trouble: unknown = null;
    try {
      let isFirst = true;
      for await (const chunk of patiently(parts, session.openStream(splicer), sources.length > 1, signal)) {
        if (isFirst) sources[index]!.played();
        isFirst = false;
        failures = 0;
        yield chunk;
      }
    } catch (error) {
      if (signal.aborted) throw abortError(signal);
      trouble = error;
    }
    failures++;
    const next = failures > sources.length ? null : await another(parts, sources, index, signal);
    if (next === null && trouble === null) return;
    if (next === null) throw trouble;
    parts.log.log("info", "another source of the channel continues", { after: trouble ?? "the broadcast ended" });
    ({ index, session } = next);
    splicer.changeSource();
  }
}

/** The next broadcast that starts, the present one last; null when none does. */
async function another(
  parts: FailoverParts,
  sources: readonly Source[],
  index: number,
  signal: AbortSignal,
): Promise<{ readonly index: number; readonly session: LiveSession } | null> {
  if (sources.length < 2) return null;
  try {
    const { index: next, session } = await startOne(parts, sources, signal, index + 1);
    return session.kind === "live" ? { index: next, session } : null;
  } catch {
    if (signal.aborted) throw abortError(signal);
    return null;
  }
}

/** The chunks of `stream`. If another source could continue, only as long as they come in time. */
async function* patiently(
  { clock }: FailoverParts,
  stream: ReadableStream<Uint8Array>,
  hasOthers: boolean,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const late = hasOthers
        ? deadline(clock, SILENCE_MS, signal, () => new MillraceError("timeout", `no data for ${SILENCE_MS} ms`))
        : null;
      try {
        const { done, value } = await withSignal(reader.read(), late?.signal ?? signal);
        if (done) return;
        yield value;
      } finally {
        late?.cancel();
      }
    }
  } finally {
    void reader.cancel().catch(() => {});
  }
}
