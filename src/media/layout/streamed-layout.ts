/** The MPEG TS layout of a streamed timeline: segments of whole runs. */
import { PACKET_BYTES } from "../../bytes/ts/packet.ts";
import { firstTarget90k, planCuts } from "./segment-plan.ts";
import type { Program } from "../mux/ts/program.ts";
import { StreamedMuxer } from "../mux/ts/streamed.ts";
import type { Layout } from "./tabled-layout.ts";
import type { RunBytes, StreamedTimeline } from "../model/timeline.ts";

/**
 * Lays out the streams of `program` over the runs of `timeline`, in segments of `target90k` as far as these allow.
 * `isVideo`: there are pictures, in it or beside it, so that the first segments are short.
 */
export function layOutRuns(
  program: Program,
  timeline: StreamedTimeline,
  target90k: number,
  isVideo: boolean,
  bytesOf?: RunBytes,
): Layout {
  const { runs } = timeline;
  const muxer = new StreamedMuxer(program, timeline, bytesOf);
  const last = runs[runs.length - 1];
  const end90k = last === undefined ? 0 : last.startPts90k + last.durationPts90k;
  const starts90k = runs.map((run) => run.startPts90k);
  const cuts = planCuts(starts90k, target90k, end90k, firstTarget90k(target90k, isVideo));
  const runsOf = (n: number): readonly [number, number] => [cuts[n]!, cuts[n + 1] ?? runs.length];
  const { firstPackets } = muxer;
  const segmentStarts = firstPackets === null
    ? null
    : [...cuts, runs.length].map((run) => firstPackets[run]! * PACKET_BYTES);
  return {
    sizeBytes: firstPackets === null ? null : firstPackets[runs.length]! * PACKET_BYTES,
    starts90k: cuts.map((cut) => starts90k[cut]!),
    end90k,
    segmentStarts,
    runsOf,
    faults: muxer.faults,
    read: (...range) => muxer.read(...range),
    readSegment: (n, ...from) => muxer.readRuns(...runsOf(n), ...from),
  };
}
