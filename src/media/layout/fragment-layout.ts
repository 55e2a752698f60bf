/** The layout of segments of fragmented MP4 over the runs of a file. */
import { MillraceError } from "../../errors.ts";
import { firstTarget90k, planCuts } from "./segment-plan.ts";
import type { Layout } from "./tabled-layout.ts";
import { bytesOfTracks, type StreamedTimeline } from "../model/timeline.ts";
import type { FragmentedForm, Track } from "../model/types.ts";
import { cmafFormat } from "../mux/cmaf/formats.ts";
import { type CmafStream, initSegment } from "../mux/cmaf/init-segment.ts";
import { CmafMuxer } from "../mux/cmaf/muxer.ts";

/** A layout, and what players need besides its segments. */
export interface CmafLayout extends Layout {
  readonly form: FragmentedForm;
}

/** How much later than in the index all tracks `indexes` are presented, so that none begins before 0, 90 kHz. */
export function fragmentOffset90k(tracks: readonly Track[], indexes: readonly number[]): number {
  return Math.max(0, ...indexes.map((i) => cmafFormat(tracks[i]!)?.early90k ?? 0));
}

/** What a layout over the runs of a file has. */
export interface RunsLayoutOptions {
  /** Length of a segment, as near as runs allow. */
  readonly target90k: number;
  /** As of `fragmentOffset90k`. */
  readonly offset90k: number;
  /** There are pictures, in it or beside it: the first segments are short. */
  readonly isVideo: boolean;
}

/** Lays out the tracks `indexes` of `tracks`, which fragmented MP4 must carry, over the runs of `timeline`. */
export function layOutFragments(
  tracks: readonly Track[],
  timeline: StreamedTimeline,
  indexes: readonly number[],
  { target90k, offset90k, isVideo }: RunsLayoutOptions,
): CmafLayout {
  const streams = indexes.map((trackIndex, i): CmafStream => {
    const track = tracks[trackIndex]!;
    return { ...cmafFormat(track)!, track, trackIndex, id: i + 1 };
  });
  const muxer = new CmafMuxer(streams, timeline, offset90k, bytesOfTracks(tracks, indexes));
  const { firstBytes } = muxer;
  const { runs } = timeline;
  const starts90k = runs.map(({ startPts90k }) => startPts90k);
  const last = runs.at(-1);
  const end90k = last === undefined ? 0 : last.startPts90k + last.durationPts90k;
  const cuts = planCuts(starts90k, target90k, end90k, firstTarget90k(target90k, isVideo));
  const runsOf = (n: number): readonly [number, number] => [cuts[n]!, cuts[n + 1] ?? runs.length];
  return {
    form: { init: initSegment(streams), codecs: streams.map(({ codecs }) => codecs) },
    sizeBytes: null,
    starts90k: cuts.map((cut) => starts90k[cut]!),
    end90k,
    segmentStarts: firstBytes === null ? null : [...cuts, runs.length].map((run) => firstBytes[run]!),
    runsOf,
    faults: muxer.faults,
    read: () => {
      throw new MillraceError("unsupported_media", "this film is carried in HLS alone");
    },
    readSegment: (n, ...from) => muxer.readRuns(...runsOf(n), ...from),
  };
}
