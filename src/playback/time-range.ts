/** Which bytes of a session's MPEG TS are played in a range of times. */
import type { PlaybackSession } from "./session.ts";

/** A part of the MPEG TS: bytes `[start, end)` of `sizeBytes`, and the times at which they are played, ms from the beginning. */
export interface TimeRange {
  readonly start: number;
  readonly end: number;
  readonly sizeBytes: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly durationMs: number;
}

/**
 * The whole segments that hold `[fromMs, untilMs)`; `untilMs` null: to the end. They begin with a random access point.
 * Null if the stream has no length or nothing of it is played then. Rejects as `Presentation.planHls`.
 */
export async function timeRange(
  session: PlaybackSession,
  fromMs: number,
  untilMs: number | null,
  signal: AbortSignal,
): Promise<TimeRange | null> {
  const sizeBytes = session.presentation?.ts.sizeBytes ?? null;
  const segments = await session.segments(signal);
  const last = segments.at(-1);
  if (sizeBytes === null || last === undefined) return null;
  const durationMs = last.startMs + last.durationMs;
  if (fromMs >= durationMs || (untilMs !== null && untilMs <= fromMs)) return null;
  const startOf = async (index: number) => {
    const segment = segments[index];
    if (segment === undefined) return sizeBytes;
    // Its middle lies in no other segment, however times are rounded.
    const left = (await session.tsFrom(segment.startMs + segment.durationMs / 2, signal))?.sizeBytes ?? null;
    return left === null ? null : sizeBytes - left;
  };
  const first = Math.max(0, segments.findLastIndex(({ startMs }) => startMs <= fromMs));
  const beyond = untilMs === null ? -1 : segments.findIndex(({ startMs }) => startMs >= untilMs);
  const end = beyond < 0 ? segments.length : beyond;
  const [startByte, endByte] = [await startOf(first), await startOf(end)];
  if (startByte === null || endByte === null || endByte <= startByte) return null;
  const endMs = segments[end]?.startMs ?? durationMs;
  return { start: startByte, end: endByte, sizeBytes, startMs: segments[first]!.startMs, endMs, durationMs };
}
