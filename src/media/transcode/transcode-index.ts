/** Replaces audio tracks of an index by AAC or AC-3 that is made while the file is read. */
import { elementaryFormat } from "../mux/ts/elementary/carry.ts";
import type { IndexWork } from "../index/work.ts";
import type { MediaIndex, OpenOptions, RunSample, StreamedRun, StreamedTimeline } from "../timeline.ts";
import type { Track } from "../types.ts";
import { chooseMade, madeChannels, madeTrack } from "./choice.ts";
import { matroskaAudio } from "./matroska-audio.ts";
import { foreseenBytes, frameTicks, MAX_RUN_FRAMES } from "./frame-job.ts";
import { RunAudio } from "./run-audio.ts";
import { runsOfTables } from "./tabled-runs.ts";
import type { AudioEncoder, AudioTarget } from "./types.ts";

const NAMES: Readonly<Record<AudioTarget, string>> = { aac: "AAC", ac3: "AC-3" };
/** The sound in a run's bytes may lie outside the run's time by this much: containers interleave within a second. */
const INTERLEAVE_90K = 90_000;
/** Sound-only runs begin this much earlier, because each run's frames end before its last packet does. */
const AUDIO_LEAD_90K = 18_000;

/**
 * `index` with AAC or AC-3 in place of the sound that `options.transcode` asks for; `index` itself, with a warning, if
 * ffmpeg is missing.
 */
export async function transcodeIndex(
  index: MediaIndex,
  options: OpenOptions,
  work: Pick<IndexWork, "spend">,
): Promise<MediaIndex> {
  const { transcode, audioEncoder, audioTarget = "aac" } = options;
  if (!transcode || index.hasMadeSound) return index;
  const hasData = (i: number) =>
    index.timeline.kind === "streamed" ? !index.timeline.empty?.has(i) : (index.timeline.tables[i]?.count ?? 0) > 0;
  const isReadable = (track: Track) => matroskaAudio(track, index.container) !== null;
  const chosen = chooseMade(index.tracks, transcode, hasData, isReadable);
  if (chosen.length === 0) return index;
  if (!audioEncoder || !await audioEncoder.isAvailable(options.signal)) {
    const names = [...new Set(chosen.map((i) => index.tracks[i]!.codec))].join(", ");
    return {
      ...index,
      warnings: [`ffmpeg was not found: ${names} is not converted to ${NAMES[audioTarget]}`, ...index.warnings],
    };
  }
  const timeline = index.timeline.kind === "streamed"
    ? index.timeline
    : await runsOfTables(index.tracks, index.timeline, index.sourceBytes, work);
  const tracks = index.tracks.map((track, i) => chosen.includes(i) ? madeTrack(track, audioTarget) : track);
  const hasVideo = tracks.some((track) => track.kind === "video" && elementaryFormat(track) !== null);
  return {
    ...index,
    tracks,
    timeline: withSound(index, timeline, chosen, {
      isSoundOnly: !hasVideo,
      encoder: audioEncoder,
      target: audioTarget,
    }),
  };
}

function maxFrames(run: StreamedRun, target: AudioTarget): number {
  return Math.min(MAX_RUN_FRAMES, Math.ceil((run.durationPts90k + 2 * INTERLEAVE_90K) / frameTicks(target)) + 16);
}

interface Making {
  readonly isSoundOnly: boolean;
  readonly encoder: AudioEncoder;
  readonly target: AudioTarget;
}

function withSound(
  index: MediaIndex,
  timeline: StreamedTimeline,
  chosen: readonly number[],
  { isSoundOnly, encoder, target }: Making,
): StreamedTimeline {
  const makers = new Map(chosen.map((track) => {
    const audio = matroskaAudio(index.tracks[track]!, index.container)!;
    const channels = madeChannels(index.tracks[track]!);
    const frames = (run: number) => maxFrames(timeline.runs[run]!, target);
    return [track, new RunAudio({ track, audio, target, channels, timeline, encoder, maxFrames: frames })];
  }));
  const runs = timeline.runs.map((run): StreamedRun => {
    const frames = maxFrames(run, target);
    const made = chosen.reduce(
      (sum, track) => sum + foreseenBytes(frames, target, madeChannels(index.tracks[track]!)),
      0,
    );
    return {
      ...run,
      startDts90k: isSoundOnly ? Math.max(0, run.startDts90k - AUDIO_LEAD_90K) : run.startDts90k,
      maxPayloadBytes: run.maxPayloadBytes === null ? null : run.maxPayloadBytes + made,
      maxAccessUnits: run.maxAccessUnits.map((units, track) => makers.has(track) ? frames : units),
    };
  });
  return {
    ...timeline,
    runs,
    async *readRun(run, wanted, source, signal) {
      const made: RunSample[] = [];
      for (const [track, maker] of makers) {
        if (!wanted.has(track)) continue;
        for (const { pts90k, data } of await maker.framesOf(run, source, signal)) {
          made.push({ track, pts90k, dts90k: pts90k, keyframe: true, data });
        }
      }
      made.sort((a, b) => a.dts90k - b.dts90k || a.track - b.track);
      let next = 0;
      const copied = new Set([...wanted].filter((track) => !makers.has(track)));
      if (copied.size > 0) {
        // This reads the run again: only its sound is held in memory.
        for await (const batch of timeline.readRun(run, copied, source, signal)) {
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
