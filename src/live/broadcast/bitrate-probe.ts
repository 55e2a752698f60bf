/** Finds the bitrate of a source when the user states none, before its transport file can be made. */
import { withSignal } from "../../bytes/deadline.ts";
import { MillraceError } from "../../errors.ts";
import type { Clock } from "../../ports.ts";
import { MAX_LIVE_BYTES_PER_S } from "../../metainfo/live.ts";
import type { LiveInputEvent } from "./input.ts";
import { PcrRate } from "../../bytes/ts/pcr-rate.ts";

/**
 * Length of stream that is measured, ms: more than the interval between keyframes, so that their bursts do not distort
 * the result.
 */
const PROBE_MS = 3000;
/** Shortest stretch of a stream that is measured, ms. The result is part of the id for good. */
const LEAST_STREAM_MS = 1000;
/** A stream without a usable clock counts as standing still when nothing has come for longer than this, ms. */
const STANDSTILL_MS = 500;
/** Most bytes kept while measuring: 3 s at 45 Mb/s, 1.3 s of the fastest broadcast. All of it is cut and sent at once. */
const MAX_PROBE_BYTES = 16 * 1024 * 1024;

/** What a source gave, and when: monotonic ms. */
export interface TimedEvent {
  readonly event: LiveInputEvent;
  readonly atMs: number;
}

/** The result. */
export interface MeasuredBitrate {
  /** Rounded up to whole KiB: a restart would not measure exactly the same number anyway. */
  readonly bytesPerS: number;
  /** What was read and is still to be sent. */
  readonly events: readonly TimedEvent[];
}

/**
 * Reads the first seconds of `input`, and continues until it has seen a second of stream. Rejects with `bad_media` when
 * the input ends before that, and as `signal` and `input` do.
 */
export async function probeBitrate(
  input: AsyncIterator<LiveInputEvent>,
  clock: Clock,
  signal: AbortSignal,
): Promise<MeasuredBitrate> {
  const events: TimedEvent[] = [];
  let bytes = 0;
  let startMs: number | null = null;
  let lastMs = 0;
  let firstBytes = 0;
  /** Time in which the stream arrived, without the time in which it stood still. */
  let flowedMs = 0;
  const byClock = new PcrRate();
  for (;;) {
    const { done, value } = await withSignal(input.next(), signal);
    if (done === true) {
      if (byClock.spanMs >= LEAST_STREAM_MS) break;
      throw new MillraceError("bad_media", "the source ended before there was a second of it: name its bitrate");
    }
    const nowMs = clock.monotonic();
    events.push({ event: value, atMs: nowMs });
    if (value.kind !== "data") {
      byClock.cut();
      continue;
    }
    byClock.push(value.bytes);
    bytes += value.bytes.length;
    // The first chunk took no measurable time to arrive.
    if (startMs === null) [startMs, firstBytes] = [nowMs, value.bytes.length];
    else flowedMs += Math.min(STANDSTILL_MS, nowMs - lastMs);
    lastMs = nowMs;
    if (byClock.spanMs >= PROBE_MS || bytes >= MAX_PROBE_BYTES) break;
    // A clock that has not advanced a second by then is useless; the time of arrival stands in for it.
    const isFlowing = flowedMs >= PROBE_MS || (byClock.spanMs === 0 && flowedMs >= LEAST_STREAM_MS);
    if (nowMs - startMs >= PROBE_MS && (byClock.spanMs >= LEAST_STREAM_MS || isFlowing)) break;
  }
  const byTime = flowedMs === 0 ? bytes : (bytes - firstBytes) / flowedMs * 1000;
  const rate = byClock.spanMs >= LEAST_STREAM_MS ? byClock.bytesPerS : byTime;
  return { bytesPerS: Math.min(MAX_LIVE_BYTES_PER_S, Math.max(1, Math.ceil(rate / 1024)) * 1024), events };
}
