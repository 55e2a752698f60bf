/** Cues as WebVTT in HLS (RFC 8216, section 3.5). */
import type { Cue } from "./cues.ts";

/** Time stamps of MPEG TS wrap after this many ticks of 90 kHz. */
const WRAP_90K = 2 ** 33;

/**
 * The text of a segment. `zeroPts90k` is the time stamp of the film's beginning in the segments of MPEG TS, so that
 * players show both together; null if it is unknown: then both begin with 0.
 */
export function renderWebVtt(cues: readonly Cue[], zeroPts90k: number | null): string {
  const ticks = zeroPts90k === null ? 0 : ((Math.round(zeroPts90k) % WRAP_90K) + WRAP_90K) % WRAP_90K;
  const blocks = cues.map(({ startMs, endMs, settings, text }) =>
    `${timeText(startMs)} --> ${timeText(endMs)}${settings === "" ? "" : ` ${settings}`}\n${text}\n`
  );
  return ["WEBVTT", `X-TIMESTAMP-MAP=MPEGTS:${ticks},LOCAL:00:00:00.000`, "", ...blocks].join("\n");
}

function timeText(ms: number): string {
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  const rest = String(Math.floor(ms % 1000)).padStart(3, "0");
  return `${two(ms / 3_600_000)}:${two(ms / 60_000 % 60)}:${two(ms / 1000 % 60)}.${rest}`;
}
