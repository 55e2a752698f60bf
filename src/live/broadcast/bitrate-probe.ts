/** Finds the bitrate of a source that nobody named, before its transport file can be made. */
import { withSignal } from "../../bytes/deadline.ts";
import type { Clock } from "../../ports.ts";
import { MAX_LIVE_BYTES_PER_S } from "../../transport/live.ts";
import type { LiveInputEvent } from "./input.ts";
import { PcrRate } from "./pcr-rate.ts";

/** Stream that is looked at, ms: more than the distance of keyframes, whose bursts would sway it. */
const PROBE_MS = 3000;
/** A stretch of the stream's own clock that is believed rather than the time in which it came, ms. */
const ENOUGH_CLOCK_MS = 1000;
/** Kept meanwhile at most: what the fastest broadcast sends in that time. */
const MAX_PROBE_BYTES = MAX_LIVE_BYTES_PER_S * PROBE_MS / 1000;

/** What was found. */
export interface Probe {
  /** Rounded up to whole KiB, which no restart may hit by chance anyway. */
  readonly bytesPerS: number;
  /** What was read, still to be sent. */
  readonly events: readonly LiveInputEvent[];
}

/** Reads the first seconds of `input`. Rejects as `signal` and `input` do. */
export async function probeBitrate(
  input: AsyncIterator<LiveInputEvent>,
  clock: Clock,
  signal: AbortSignal,
): Promise<Probe> {
  const events: LiveInputEvent[] = [];
  let bytes = 0;
  let startMs: number | null = null;
  let firstBytes = 0;
  const byClock = new PcrRate();
  for (;;) {
    const { done, value } = await withSignal(input.next(), signal);
    if (done === true) break;
    events.push(value);
    if (value.kind !== "data") {
      byClock.cut();
      continue;
    }
    byClock.push(value.bytes);
    bytes += value.bytes.length;
    const nowMs = clock.monotonic();
    // The first chunk came in no time that was seen.
    if (startMs === null) [startMs, firstBytes] = [nowMs, value.bytes.length];
    if (byClock.spanMs >= PROBE_MS || nowMs - startMs >= PROBE_MS || bytes >= MAX_PROBE_BYTES) break;
  }
  const seconds = startMs === null ? 0 : (clock.monotonic() - startMs) / 1000;
  const byTime = seconds < 0.1 ? bytes : (bytes - firstBytes) / seconds;
  const rate = byClock.spanMs >= ENOUGH_CLOCK_MS ? byClock.bytesPerS : byTime;
  return { bytesPerS: Math.min(MAX_LIVE_BYTES_PER_S, Math.max(1, Math.ceil(rate / 1024)) * 1024), events };
}
