/** Writes the segments of a broadcast or channel into a file as they come. */
import { sleep } from "../bytes/deadline.ts";
import { readBounded } from "../bytes/read-bounded.ts";
import { abortError, hasCode, MillraceError } from "../errors.ts";
import type { LiveSession } from "../playback/live/live-session.ts";
import type { AnySession } from "../playback/sessions.ts";
import type { Clock } from "../ports.ts";
import type { RecordingFile } from "./recording-file.ts";

/** Largest segment, bytes: ten seconds at 50 Mb/s. */
const MAX_SEGMENT_BYTES = 64 * 1024 * 1024;
/** Pause before a stream that ended or failed is started again, ms. */
const RETRY_MS = 5000;

/** What a recorder needs. */
export interface RecorderParts {
  readonly clock: Clock;
  readonly file: RecordingFile;
  /** Starts an HLS session of what is recorded. */
  readonly start: (signal: AbortSignal) => Promise<AnySession>;
  /** Called before `bytes` are written; throws when there is no room for them. */
  readonly makeRoom: (bytes: number) => void;
  /** Why it does not record now; null: it does. */
  readonly told: (trouble: unknown) => void;
}

/**
 * Records until `signal` fires or the broadcast ends for good. A stream that fails is started again. Rejects when the
 * first start fails, and with what writing rejects with.
 */
export async function record(parts: RecorderParts, signal: AbortSignal): Promise<void> {
  const { clock, file, start, told } = parts;
  while (!signal.aborted) {
    let session: AnySession;
    try {
      session = await start(signal);
    } catch (error) {
      if (signal.aborted) return;
      if (file.segments.length === 0) throw error;
      told(error);
      await sleep(clock, RETRY_MS, signal).catch(() => {});
      continue;
    }
    if (session.kind !== "live") {
      session.stop("it cannot be recorded");
      throw new MillraceError(
        "unsupported_media",
        "only broadcasts and channels are recorded: a film can be downloaded",
      );
    }
    told(null);
    try {
      if (await follow(parts, session, signal)) return;
    } catch (error) {
      if (signal.aborted) return;
      if (hasCode(error, "disk_full") || hasCode(error, "io") || hasCode(error, "too_large")) throw error;
      told(error);
    } finally {
      session.stop("the recording needs it no longer");
    }
    await sleep(clock, RETRY_MS, signal).catch(() => {});
  }
}

/** Writes what comes from now on; returns whether the broadcast has ended. */
async function follow({ file, makeRoom }: RecorderParts, session: LiveSession, signal: AbortSignal): Promise<boolean> {
  const { stream } = session;
  let next: number | null = null;
  let isCut = file.segments.length > 0;
  for (;;) {
    if (signal.aborted) throw abortError(signal);
    if (session.stopped) return false;
    session.touch();
    // From now on: the newest segment is what was sent a moment ago.
    next ??= stream.segments.at(-1)?.n ?? null;
    for (const segment of stream.segments.filter(({ n }) => next !== null && n >= next)) {
      const tooLarge = () => new MillraceError("too_large", "a segment of the broadcast is too large to record");
      const bytes = await readBounded(stream.readSegment(segment, null, signal), MAX_SEGMENT_BYTES, tooLarge);
      makeRoom(bytes.length);
      const { durationMs, startMs } = segment;
      const discontinuity = isCut || segment.n !== next || (segment.discontinuity && file.segments.length > 0);
      await file.append(bytes, { durationMs, startMs, discontinuity });
      isCut = false;
      next = segment.n + 1;
    }
    if (stream.ended) return true;
    await stream.grown(signal);
  }
}
