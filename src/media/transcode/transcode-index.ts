/** Replaces audio tracks of an index by AAC or AC-3 that is made while the file is read. */
import { hasData, pictureCarrierOf } from "../mux/carrier.ts";
import type { IndexWork } from "../source/work.ts";
import type { MediaIndex, MediaOpenOptions, RunSample, StreamedRun, StreamedTimeline } from "../model/timeline.ts";
import type { Track } from "../model/types.ts";
import { chooseMade, madeChannels, madeTrack } from "./choice.ts";
import { matroskaAudio } from "./matroska-audio.ts";
import { foreseenBytes, frameTicks, MAX_RUN_FRAMES } from "./frame-job.ts";
import { RunAudio } from "./run-audio.ts";
import { runsOfTables } from "./tabled-runs.ts";
import type { AudioEncoder, AudioTarget } from "../model/audio-target.ts";

const NAMES: Readonly<Record<AudioTarget, string>> = { aac: "AAC", ac3: "AC-3" };
/** The sound in a run's bytes may lie outside the run's time by this much: containers interleave within a second. */
const INTERLEAVE_90K = 90_000;
/** Runs from whose sound a trial learns whether ffmpeg decodes a rare codec: the beginning alone may be damaged. */
const TRIAL_RUNS = 3;
/** Sound-only runs begin this much earlier, because each run's frames end before its last packet does. */
const AUDIO_LEAD_90K = 18_000;

/**
 * `index` with AAC or AC-3 in place of the sound that `options.transcode` asks for; `index` itself, with a warning, if
 * ffmpeg is missing.
 */
export async function transcodeIndex(
  index: MediaIndex,
  options: MediaOpenOptions,
  work: IndexWork,
): Promise<MediaIndex> {
  const { transcode, audioEncoder, audioTarget = "aac" } = options;
  if (!transcode || index.hasMadeSound) return index;
  const carrier = pictureCarrierOf(index, options);
  const isReadable = (track: Track) => matroskaAudio(track, index.container) !== null;
  const chosen = chooseMade(index.tracks, transcode, (i) => hasData(index, i), isReadable, carrier);
  if (chosen.length === 0) return index;
  if (!audioEncoder || !await work.idle(() => audioEncoder.isAvailable(options.signal))) {
    const names = [...new Set(chosen.map((i) => index.tracks[i]!.codec))].join(", ");
    return {
      ...index,
      warnings: [`ffmpeg was not found: ${names} is not converted to ${NAMES[audioTarget]}`, ...index.warnings],
    };
  }
  const timeline = index.timeline.kind === "streamed"
    ? index.timeline
    : await runsOfTables(index.tracks, index.timeline, index.sourceBytes, work);
  const makers = makersOf(index, timeline, chosen, audioEncoder, audioTarget);
  const warnings = [...index.warnings];
  for (const [i, maker] of makers) {
    const { id, codecId } = index.tracks[i]!;
    if (isFamiliar(index.tracks[i]!) || await work.idle(() => maker.isDecodable(TRIAL_RUNS, work, options.signal))) {
      continue;
    }
    makers.delete(i);
    warnings.push(`audio track ${id} is not converted to ${NAMES[audioTarget]}: ffmpeg cannot decode ${codecId}`);
  }
  if (makers.size === 0) return { ...index, warnings };
  const tracks = index.tracks.map((track, i) => makers.has(i) ? madeTrack(track, audioTarget) : track);
  const hasVideo = tracks.some((track) => track.kind === "video" && carrier.carries(track));
  return {
    ...index,
    warnings,
    tracks,
    timeline: withSound(index, timeline, makers, { isSoundOnly: !hasVideo, target: audioTarget }),
  };
}

/** Whether every ffmpeg decodes the codec of `track`, so that no trial is needed. */
function isFamiliar({ codec, matroskaId }: Track): boolean {
  return codec !== "other" || matroskaId != null;
}

function maxFrames(run: StreamedRun, target: AudioTarget): number {
  return Math.min(MAX_RUN_FRAMES, Math.ceil((run.durationPts90k + 2 * INTERLEAVE_90K) / frameTicks(target)) + 16);
}

/** What makes the sound of each of the `chosen` tracks. */
function makersOf(
  index: MediaIndex,
  timeline: StreamedTimeline,
  chosen: readonly number[],
  encoder: AudioEncoder,
  target: AudioTarget,
): Map<number, RunAudio> {
  return new Map(chosen.map((track) => {
    const audio = matroskaAudio(index.tracks[track]!, index.container, index.durationMs)!;
    const channels = madeChannels(index.tracks[track]!);
    const frames = (run: number) => maxFrames(timeline.runs[run]!, target);
    return [track, new RunAudio({ track, audio, target, channels, timeline, encoder, maxFrames: frames })];
  }));
}

interface Making {
  readonly isSoundOnly: boolean;
  readonly target: AudioTarget;
}

function withSound(
  index: MediaIndex,
  timeline: StreamedTimeline,
  makers: ReadonlyMap<number, RunAudio>,
  { isSoundOnly, target }: Making,
): StreamedTimeline {
  const runs = timeline.runs.map((run): StreamedRun => {
    const frames = maxFrames(run, target);
    const bytesOf = (track: number) => foreseenBytes(frames, target, madeChannels(index.tracks[track]!));
    const made = [...makers.keys()].reduce((sum, track) => sum + bytesOf(track), 0);
    return {
      ...run,
      startDts90k: isSoundOnly ? Math.max(0, run.startDts90k - AUDIO_LEAD_90K) : run.startDts90k,
      maxPayloadBytes: run.maxPayloadBytes === null ? null : run.maxPayloadBytes + made,
      ...run.trackBytes === undefined
        ? {}
        : { trackBytes: run.trackBytes.map((bytes, track) => makers.has(track) ? bytesOf(track) : bytes) },
      maxAccessUnits: run.maxAccessUnits.map((units, track) => makers.has(track) ? frames : units),
    };
  });
  return {
    ...timeline,
    runs,
    async *readRun(run, wanted, source, signal, _lender, held) {
      const made: RunSample[] = [];
      for (const [track, maker] of makers) {
        if (!wanted.has(track)) continue;
        for (const frame of await maker.framesOf(run, source, signal)) {
          made.push({ track, dts90k: frame.pts90k, keyframe: true, ...frame });
        }
      }
      made.sort((a, b) => a.dts90k - b.dts90k || a.track - b.track);
      let next = 0;
      const copied = new Set([...wanted].filter((track) => !makers.has(track)));
      if (copied.size > 0) {
        // This reads the run again: only its sound is held in memory.
        for await (const batch of timeline.readRun(run, copied, source, signal, undefined, held)) {
          const samples: RunSample[] = [];
          for (const sample of batch) {
            while (next < made.length && made[next]!.dts90k <= sample.dts90k) samples.push(made[next++]!);
            samples.push(sample);
          }
          yield samples;
        }
      }
      if (next < made.length) yield made.slice(next);
    },
  };
}
