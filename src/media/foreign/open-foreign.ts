/**
 * Opens files in containers that only ffmpeg reads: AVI, FLV, MPEG PS, ASF, and many sound-only ones. ffmpeg reads the file
 * through a door (`file-door.ts`) and copies the streams that MPEG TS carries; it converts other sound to AAC or AC-3 if that
 * is wanted. Its output is access units with times, which our own muxer lays out.
 */
import type { ByteSource } from "../../bytes/source.ts";
import type { ForeignContainer } from "../../bytes/foreign-container.ts";
import { MillraceError } from "../../errors.ts";
import { DEFAULT_SEGMENT_TARGET_MS, MAX_SEGMENTS } from "../layout/segment-plan.ts";
import { elementaryFormat } from "../mux/ts/elementary/carry.ts";
import { IndexWork } from "../source/work.ts";
import { longestS } from "../model/plausible.ts";
import type { MediaIndex, MediaOpenOptions, StreamedRun } from "../model/timeline.ts";
import type { Track } from "../model/types.ts";
import { chooseMade, madeChannels, madeTrack } from "../transcode/choice.ts";
import { foreseenBytes, frameTicks } from "../transcode/frame-job.ts";
import type { CopiedStream } from "./copy-job.ts";
import { type ForeignFacts, foreignTimeline, UnitStream } from "./foreign-timeline.ts";
import { type ForeignFile, probeForeign } from "./probe.ts";

/** Least length of copied runs, in distances of random access points at the beginning of the file, so that no run is empty. */
const SPACING_FACTOR = 1.5;
/** How much of the beginning is copied to measure that: random access points, bytes or time, whichever comes first. */
const HEAD_POINTS = 4;
const HEAD_BYTES = 2 * 1024 * 1024;
const HEAD_90K = 30 * 90_000;
/** Most output of a program, in file sizes: copies add headers, and converted sound ends with its run. */
const COPY_FACTOR = 3;
const SPARE_BYTES = 64 * 1024 * 1024;
/** The timeline's origin is a multiple of this, 90 kHz: there, both AAC and AC-3 frames begin. */
const GRID_90K = 5760;
/** Frames by which sound may be longer than the file says: those that a decoder still holds. */
const SPARE_FRAMES = 16;
/** Containers that store only the decoding time of a picture. */
const WITHOUT_TIMES: ReadonlySet<string> = new Set(["avi", "asf"]);
/** Bit rate assumed when the file does not state its duration, bytes/s. */
const UNKNOWN_RATE = 500_000;

/** Opens `source`. Rejects with `unsupported_media` when ffmpeg is missing, `bad_media`, or as the source does. */
export async function openForeign(
  { name, demuxer }: ForeignContainer,
  source: ByteSource,
  options: MediaOpenOptions,
): Promise<MediaIndex> {
  const { foreignReader: reader, signal, transcode, audioTarget = "aac" } = options;
  const work = IndexWork.on(source, signal);
  if (!reader || !await work.idle(() => reader.isAvailable(signal))) {
    const message = `the container is ${name}, which only ffmpeg reads: install ffmpeg and ffprobe`;
    throw new MillraceError("unsupported_media", message);
  }
  const file = await work.idle(() => probeForeign(reader, demuxer, source, signal));
  const told = file.streams.map(({ track }) => track).map((track) =>
    // ffmpeg copies and decodes nothing of such sound, and would refuse the whole file.
    isKnown(track) ? track : { ...track, codec: "other" as const, codecId: `${track.codecId} of unknown rate` }
  );
  const chosen = new Set(transcode ? chooseMade(told, transcode, (i) => isKnown(told[i]!), () => true) : []);
  const tracks = told.map((track, i) => chosen.has(i) ? { ...madeTrack(track, audioTarget), isFramed: true } : track);
  const base = {
    container: "other",
    tracks,
    durationMs: file.durationS === null ? null : file.durationS * 1000,
    sourceBytes: source.sizeBytes,
    warnings: [] as string[],
    hasMadeSound: true,
  } as const;
  const trackOf = tracks.flatMap((track, i) => elementaryFormat(track) === null ? [] : [i]);
  // Nothing to play; the choice of tracks has the reason.
  if (trackOf.length === 0) return { ...base, timeline: { kind: "streamed", runs: [], readRun: nothing } };
  const streams = trackOf.map((track): CopiedStream => ({
    index: file.streams[track]!.index,
    codecId: told[track]!.codecId,
    kind: told[track]!.kind as "video" | "audio",
    isInOrder: WITHOUT_TIMES.has(demuxer) && told[track]!.kind === "video" && file.streams[track]!.reorderFrames === 0,
    made: chosen.has(track) ? { target: audioTarget, channels: madeChannels(told[track]!) } : null,
  }));
  const common = {
    reader,
    demuxer,
    streams,
    startS: file.startS,
    limitBytes: COPY_FACTOR * source.sizeBytes + SPARE_BYTES,
  };
  const video = streams.findIndex(({ kind }) => kind === "video");
  const main = Math.max(0, video);
  if (streams.every(({ made }) => made !== null)) {
    const origin90k = Math.floor(file.startS * 90_000 / GRID_90K) * GRID_90K;
    const runs = madeRuns(file, streams, tracks.length, trackOf, source, options);
    return {
      ...base,
      zero90k: zeroOf(file, origin90k),
      timeline: foreignTimeline({ ...common, trackOf, main, origin90k }, runs),
    };
  }
  const { origin90k, spacing90k, isUntimed } = await work.idle(() => measure(common, main, source, signal));
  const warnings = [`${name} is read by way of ffmpeg: its length in MPEG TS is unknown and seeking is approximate`];
  if (
    WITHOUT_TIMES.has(demuxer) &&
    streams.some(({ kind, codecId, isInOrder }) => kind === "video" && codecId === "h264" && !isInOrder)
  ) {
    warnings.push(`${name} does not say when pictures of H.264 are shown that are not in order: they may judder`);
  }
  if (isUntimed) warnings.push(`${name} does not say when some pictures are shown: they may judder`);
  const runs = copiedRuns(file, spacing90k, tracks.length, source, options);
  const timeline = foreignTimeline({ ...common, trackOf, main, origin90k }, runs);
  return { ...base, warnings, zero90k: zeroOf(file, origin90k), timeline };
}

/** Whether ffprobe found what ffmpeg needs to copy or convert a track. */
function isKnown({ kind, sampleRate }: Track): boolean {
  return kind !== "audio" || sampleRate !== null;
}

/** Time on the timeline at which the file begins, 90 kHz. */
function zeroOf({ startS }: ForeignFile, origin90k: number): number {
  return Math.round(startS * 90_000) - origin90k;
}

async function* nothing(): AsyncGenerator<never> {}

/** Length of the file, 90 kHz. */
function length90k({ durationS }: ForeignFile, { sizeBytes }: ByteSource): number {
  return Math.round(Math.min(durationS ?? sizeBytes / UNKNOWN_RATE, longestS(sizeBytes)) * 90_000);
}

/** Runs of files whose tracks are all converted sound: each has a whole number of frames and a bounded size. */
function madeRuns(
  file: ForeignFile,
  streams: readonly CopiedStream[],
  tracks: number,
  trackOf: readonly number[],
  source: ByteSource,
  { segmentTargetMs = DEFAULT_SEGMENT_TARGET_MS }: MediaOpenOptions,
): StreamedRun[] {
  const { target } = streams[0]!.made!;
  const frame90k = frameTicks(target);
  const end90k = Math.max(frame90k, length90k(file, source));
  const frames = Math.max(1, Math.round(segmentTargetMs * 90 / frame90k), Math.ceil(end90k / frame90k / MAX_SEGMENTS));
  return Array.from({ length: Math.ceil(end90k / (frames * frame90k)) }, (_, index): StreamedRun => {
    const startPts90k = index * frames * frame90k;
    // The last one may be a little longer than the file says.
    const own = Math.min(frames, Math.ceil((end90k - startPts90k) / frame90k) + SPARE_FRAMES);
    return {
      index,
      startPts90k,
      startDts90k: startPts90k,
      durationPts90k: Math.min(end90k - startPts90k, frames * frame90k),
      sourceStart: 0,
      sourceEnd: source.sizeBytes,
      maxPayloadBytes: streams.reduce((sum, { made }) => sum + foreseenBytes(own, target, made!.channels), 0),
      maxAccessUnits: Array.from({ length: tracks }, (_, i) => trackOf.includes(i) ? own + 1 : 0),
    };
  });
}

/** Runs with copied streams, of unknown size. */
function copiedRuns(
  file: ForeignFile,
  spacing90k: number,
  tracks: number,
  source: ByteSource,
  { segmentTargetMs = DEFAULT_SEGMENT_TARGET_MS }: MediaOpenOptions,
): StreamedRun[] {
  const end90k = length90k(file, source);
  const run90k = Math.max(segmentTargetMs * 90, spacing90k * SPACING_FACTOR);
  const count = Math.min(MAX_SEGMENTS, Math.max(1, Math.floor(end90k / run90k)));
  return Array.from({ length: count }, (_, index): StreamedRun => ({
    index,
    startPts90k: Math.round(end90k * index / count),
    startDts90k: Math.round(end90k * index / count),
    durationPts90k: Math.round(end90k / count),
    sourceStart: 0,
    sourceEnd: source.sizeBytes,
    maxPayloadBytes: null,
    maxAccessUnits: new Array(tracks).fill(0),
  }));
}

/** Copies the beginning, to see where the clock begins and how far apart random access points are. */
async function measure(
  facts: Omit<ForeignFacts, "trackOf" | "main" | "origin90k">,
  main: number,
  source: ByteSource,
  signal: AbortSignal,
): Promise<{ readonly origin90k: number; readonly spacing90k: number; readonly isUntimed: boolean }> {
  const stream = await UnitStream.open(facts, null, source, signal);
  try {
    let first90k = Infinity;
    let last90k = -Infinity;
    let bytes = 0;
    const points: number[] = [];
    const isEnough = () => points.length >= HEAD_POINTS || bytes >= HEAD_BYTES || last90k - first90k >= HEAD_90K;
    while (!isEnough()) {
      const units = await stream.next(signal);
      if (units === null) break;
      for (const { stream, dts90k, pts90k, keyframe, data } of units) {
        first90k = Math.min(first90k, dts90k);
        last90k = Math.max(last90k, dts90k);
        bytes += data.length;
        if (stream === main && keyframe) points.push(pts90k);
      }
    }
    if (first90k === Infinity) throw new MillraceError("bad_media", "ffmpeg finds nothing playable in the file");
    // If the part read ends within a group, count that group as far as it was seen.
    let spacing90k = points.length > 0 ? last90k - points.at(-1)! : 0;
    for (let i = 1; i < points.length; i++) spacing90k = Math.max(spacing90k, points[i]! - points[i - 1]!);
    return { origin90k: Math.floor(first90k / GRID_90K) * GRID_90K, spacing90k, isUntimed: stream.untimed > 0 };
  } finally {
    stream.close();
  }
}
