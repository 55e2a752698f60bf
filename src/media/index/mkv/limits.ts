/** How many access units a run can hold, so that its slot in the TS layout is large enough. */
import { leastSamples } from "./codecs.ts";
import type { MatroskaTrack } from "./tracks.ts";

/**
 * How far apart audio and video of the same time may lie in the file, ms: a run's bytes hold the audio of its own time
 * give or take this. Muxers interleave within a cluster, of at most 5 s but rarely over 1 s apart.
 */
const INTERLEAVE_SLACK_MS = 1500;
/** Frame rates up to this are foreseen whatever DefaultDuration claims: variable rates state their average. */
const LEAST_FRAME_RATE = 60;
/** Frame rate foreseen where DefaultDuration is missing. */
const UNKNOWN_FRAME_RATE = 120;
const SPARE_FRAMES = 16;

/** Most access units of `track` in `durationMs` that are foreseen. What exceeds it is dropped when the run is read. */
export function maxAccessUnits(track: MatroskaTrack, durationMs: number): number {
  const { kind, codec, codecId, sampleRate } = track.track;
  if (codec === "other" || (kind !== "video" && kind !== "audio")) return 0;
  const statedRate = track.defaultDurationNs === null ? null : 1e9 / track.defaultDurationNs;
  if (kind === "video") {
    const rate = statedRate === null ? UNKNOWN_FRAME_RATE : Math.max(statedRate * 1.2, LEAST_FRAME_RATE);
    return Math.ceil(rate * durationMs / 1000) + SPARE_FRAMES;
  }
  const hertz = sampleRate ?? 48000;
  const codecRate = hertz / leastSamples(codec, codecId, hertz);
  // Where both are known the file's own figure is taken for E-AC-3, whose frames have 1, 2, 3 or 6 blocks.
  const rate = codec === "eac3" && statedRate !== null ? statedRate : Math.max(codecRate, statedRate ?? 0);
  return Math.ceil(rate * 1.05 * (durationMs + INTERLEAVE_SLACK_MS) / 1000) + SPARE_FRAMES;
}
