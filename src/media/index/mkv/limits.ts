/**
 * How many access units a run holds at most, so that its slot in the TS layout is large enough. Slots are reckoned as if
 * each began a packet of its own and wasted nearly all of its last, where half is usual: what exceeds these numbers still
 * has room for about twice as many, so they follow what files hold and not what is conceivable.
 */
import { usualSamples } from "./codecs.ts";
import type { MatroskaTrack } from "./tracks.ts";

/**
 * How far apart audio and video of the same time may lie in the file, ms: a run's bytes hold the audio of its own time
 * give or take this. Muxers interleave within a cluster, of at most 5 s but rarely over 1 s apart.
 */
const INTERLEAVE_SLACK_MS = 1000;
/** Frame rates up to this are foreseen whatever DefaultDuration claims: variable rates state their average. */
const LEAST_FRAME_RATE = 30;
/** Frame rate foreseen where DefaultDuration is missing. */
const UNKNOWN_FRAME_RATE = 60;
const SPARE_FRAMES = 8;
/** What files claim beyond this is damage: pictures a second, and frames of sound per frame that the codec would have. */
const MAX_FRAME_RATE = 300;
const MAX_DENSITY = 8;

/** Most access units of `track` in `durationMs` that are foreseen. */
export function maxAccessUnits(track: MatroskaTrack, durationMs: number): number {
  const { kind, codec, codecId, sampleRate } = track.track;
  if (codec === "other" || (kind !== "video" && kind !== "audio")) return 0;
  const statedRate = track.defaultDurationNs === null ? null : 1e9 / track.defaultDurationNs;
  if (kind === "video") {
    const rate = statedRate === null
      ? UNKNOWN_FRAME_RATE
      : Math.min(MAX_FRAME_RATE, Math.max(statedRate * 1.2, LEAST_FRAME_RATE));
    return Math.ceil(rate * durationMs / 1000) + SPARE_FRAMES;
  }
  const hertz = sampleRate ?? 48000;
  const codecRate = hertz / usualSamples(codec, codecId, hertz);
  // E-AC-3 has 1, 2, 3 or 6 blocks in a frame: 3 are foreseen where the file does not tell.
  const rate = codec === "eac3" ? statedRate ?? 2 * codecRate : Math.max(codecRate, statedRate ?? 0);
  return Math.ceil(Math.min(rate, MAX_DENSITY * codecRate) * 1.05 * (durationMs + INTERLEAVE_SLACK_MS) / 1000) +
    SPARE_FRAMES;
}
