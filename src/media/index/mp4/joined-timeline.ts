/** Joins two timelines of one file, one after the other in time. */
import type { StreamedRun, StreamedTimeline } from "../../model/timeline.ts";

/** The runs of `opening` and then those of `rest`. The last run of `opening` ends where `rest` begins. */
export function joinTimelines(opening: StreamedTimeline, rest: StreamedTimeline): StreamedTimeline {
  const count = opening.runs.length;
  const next90k = rest.runs[0]?.startPts90k ?? 0;
  const runs = [
    ...opening.runs.map((run, i): StreamedRun =>
      i + 1 < count ? run : { ...run, durationPts90k: Math.max(0, next90k - run.startPts90k) }
    ),
    ...rest.runs.map((run): StreamedRun => ({ ...run, index: run.index + count })),
  ];
  return {
    kind: "streamed",
    runs,
    ...(rest.faults === undefined ? {} : { faults: rest.faults }),
    readRun: (run, ...from) => run < count ? opening.readRun(run, ...from) : rest.readRun(run - count, ...from),
  };
}
