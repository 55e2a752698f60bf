/** Cues as WebVTT in HLS (RFC 8216, section 3.5). */
import type { Cue } from "../model/types.ts";

/** Time stamps of MPEG TS wrap after this many ticks of 90 kHz. */
const WRAP_90K = 2 ** 33;

/**
 * The text of a segment. Its times are those of the time stamps in the segments of pictures, and the map says so: hls.js, VLC
 * and ffmpeg agree about no other form. `zeroPts90k` is the time stamp of the beginning from which `cues` count; null if it is
 * unknown: then both begin with 0. An empty line ends it, because some players join segments.
 */
export function renderWebVtt(cues: readonly Cue[], zeroPts90k: number | null): string {
  const zeroMs = (((zeroPts90k ?? 0) % WRAP_90K) + WRAP_90K) % WRAP_90K / 90;
  const blocks = cues.map(({ startMs, endMs, settings, text }) =>
    `${timeText(zeroMs + startMs)} --> ${timeText(zeroMs + endMs)}${settings === "" ? "" : ` ${settings}`}\n${text}\n`
  );
  return ["WEBVTT", "X-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000", "", ...blocks, ""].join("\n");
}

function timeText(time: number): string {
  const ms = Math.round(time);
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  const rest = String(ms % 1000).padStart(3, "0");
  return `${two(ms / 3_600_000)}:${two(ms / 60_000 % 60)}:${two(ms / 1000 % 60)}.${rest}`;
}
