/**
 * The most access units in a run, so that its slot in the TS layout is large enough. Slot sizes assume that each unit
 * begins a packet of its own and wastes nearly all of its last, where half is usual. That leaves room for about twice
 * these numbers, so they follow what files really hold, not the worst conceivable.
 */
import { usualSamples } from "./codecs.ts";
import type { MatroskaTrack } from "./tracks.ts";

/**
 * How far apart audio and video of the same time may lie in the file, ms: a run's bytes hold the audio of its own time,
 * plus or minus this. Muxers interleave within a cluster, of at most 5 s but rarely over 1 s apart.
 */
const INTERLEAVE_SLACK_MS = 1000;
/**
 * Slots allow for frame rates up to this whatever DefaultDuration claims: files with variable rates state their average.
 */
const LEAST_FRAME_RATE = 25;
/** Frame rate assumed if neither DefaultDuration nor the start of the media shows it. */
const UNKNOWN_FRAME_RATE = 60;
const SPARE_FRAMES = 4;
/** How much denser than stated a run may be. */
const DENSITY_SLACK = 1.05;
/** The same if no rate is stated and it was measured at the start of the media. */
const MEASURED_SLACK = 1.2;
/** Claims beyond these are damage: pictures per second, and sound frames relative to the codec's usual rate. */
const MAX_FRAME_RATE = 300;
const MAX_DENSITY = 8;

/** Blocks of subtitles per second where the Cues name none: those that show something, and those that take it away. */
const SUBTITLES_PER_S = 1;
/** What unpacking adds to a subtitle, bytes: a line of text in full HD has 60 KB, and half of the blocks show nothing. */
const UNPACKED_SUBTITLE_BYTES = 32 * 1024;

/** Whether MPEG TS carries the subtitles of `track`. */
export function isPictureSubtitle({ track: { kind, codec } }: MatroskaTrack): boolean {
  return kind === "subtitle" && (codec === "pgs" || codec === "dvbsub");
}

/** Blocks of subtitles of a track without Cues in `durationMs`. */
export function unknownSubtitles(durationMs: number): number {
  return Math.ceil(SUBTITLES_PER_S * durationMs / 1000) + 1;
}

/** Bytes that unpacking may add to `units` of each track. */
export function unpackedBytes(tracks: readonly MatroskaTrack[], units: readonly number[]): number {
  return tracks.reduce(
    (sum, track, i) => isPictureSubtitle(track) && track.isDeflated ? sum + units[i]! * UNPACKED_SUBTITLE_BYTES : sum,
    0,
  );
}

/** Most access units of `track` expected in `durationMs`. */
export function maxAccessUnits(track: MatroskaTrack, durationMs: number): number {
  const { kind, codec, codecId, sampleRate } = track.track;
  if (codec === "other" || (kind !== "video" && kind !== "audio")) return 0;
  const statedRate = track.defaultDurationNs === null ? null : 1e9 / track.defaultDurationNs;
  if (kind === "video") {
    const { measuredDurationNs } = track;
    const measuredRate = measuredDurationNs === undefined ? null : 1e9 / measuredDurationNs * MEASURED_SLACK;
    const likelyRate = statedRate === null ? measuredRate : statedRate * DENSITY_SLACK;
    const rate = likelyRate === null
      ? UNKNOWN_FRAME_RATE
      : Math.min(MAX_FRAME_RATE, Math.max(likelyRate, LEAST_FRAME_RATE));
    return Math.ceil(rate * durationMs / 1000) + SPARE_FRAMES;
  }
  const hertz = sampleRate ?? 48000;
  const codecRate = hertz / usualSamples(codec, codecId, hertz);
  // E-AC-3 has 1, 2, 3 or 6 blocks in a frame: assume 3 if the file does not say.
  const rate = codec === "eac3" ? statedRate ?? 2 * codecRate : Math.max(codecRate, statedRate ?? 0);
  return Math.ceil(
    Math.min(rate, MAX_DENSITY * codecRate) * DENSITY_SLACK * (durationMs + INTERLEAVE_SLACK_MS) / 1000,
  ) +
    SPARE_FRAMES;
}
