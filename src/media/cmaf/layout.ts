/** The layout of segments of fragmented MP4 over the runs of a file. */
import { MillraceError } from "../../errors.ts";
import { firstTarget90k, planCuts } from "../hls/plan.ts";
import type { IndexWork } from "../index/work.ts";
import type { Layout } from "../tabled-layout.ts";
import type { MediaIndex } from "../timeline.ts";
import { runsOfTables } from "../transcode/tabled-runs.ts";
import type { FragmentedForm } from "../types.ts";
import { cmafFormat } from "./formats.ts";
import { type CmafStream, initSegment } from "./init-segment.ts";
import { CmafMuxer } from "./muxer.ts";

/** A layout, and what players need besides its segments. */
export interface CmafLayout extends Layout {
  readonly form: FragmentedForm;
  /** Added to the times of the index, 90 kHz. */
  readonly offset90k: number;
}

/** Lays out the tracks `indexes` of `index`, which fragmented MP4 must carry, in segments of about `target90k`. */
export async function layOutFragments(
  index: MediaIndex,
  indexes: readonly number[],
  target90k: number,
  work: Pick<IndexWork, "spend">,
): Promise<CmafLayout> {
  const { tracks } = index;
  const timeline = index.timeline.kind === "streamed"
    ? index.timeline
    : await runsOfTables(tracks, index.timeline, index.sourceBytes, work);
  const streams = indexes.map((trackIndex, i): CmafStream => {
    const track = tracks[trackIndex]!;
    return { ...cmafFormat(track)!, track, trackIndex, id: i + 1 };
  });
  const muxer = new CmafMuxer(streams, timeline);
  const { firstBytes } = muxer;
  const { runs } = timeline;
  const starts90k = runs.map(({ startPts90k }) => startPts90k);
  const last = runs.at(-1);
  const end90k = last === undefined ? 0 : last.startPts90k + last.durationPts90k;
  const isVideo = streams[0]!.track.kind === "video";
  const cuts = planCuts(starts90k, target90k, end90k, firstTarget90k(target90k, isVideo));
  const runsOf = (n: number): readonly [number, number] => [cuts[n]!, cuts[n + 1] ?? runs.length];
  return {
    form: { init: initSegment(streams), codecs: streams.map(({ codecs }) => codecs) },
    offset90k: muxer.offset90k,
    sizeBytes: null,
    starts90k: cuts.map((cut) => starts90k[cut]!),
    end90k,
    segmentStarts: firstBytes === null ? null : [...cuts, runs.length].map((run) => firstBytes[run]!),
    ...(index.timeline.kind === "streamed" ? { runsOf } : {}),
    faults: muxer.faults,
    read: () => {
      throw new MillraceError("unsupported_media", "this film is carried in HLS alone");
    },
    readSegment: (n, ...from) => muxer.readRuns(...runsOf(n), ...from),
  };
}
