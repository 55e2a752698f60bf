/** The HLS plan of a layout. */
import { MillraceError } from "../../errors.ts";
import { segmentDurations, targetDurationS } from "./segment-plan.ts";
import type { Layout } from "./tabled-layout.ts";
import type { FragmentedForm, HlsPlan } from "../model/types.ts";

/** The plan of `layout`, whose film begins at the time stamp `zeroPts90k`; `fragmented`: it is of fragmented MP4. */
export function planOfLayout(layout: Layout, zeroPts90k: number, fragmented?: FragmentedForm): HlsPlan {
  const { starts90k, segmentStarts } = layout;
  const durationsMs = segmentDurations(starts90k, layout.end90k).map((ticks) => ticks / 90);
  const segments = starts90k.map((start, index) => ({
    index,
    startMs: (start - starts90k[0]!) / 90,
    durationMs: durationsMs[index]!,
  }));
  const check = (n: number) => {
    if (!Number.isInteger(n) || n < 0 || n >= segments.length) throw new MillraceError("not_found", `no segment ${n}`);
  };
  return {
    segments,
    targetDurationS: targetDurationS(durationsMs),
    zeroPts90k,
    ...(fragmented === undefined ? {} : { fragmented }),
    readSegment(n, ...from) {
      check(n);
      return layout.readSegment(n, ...from);
    },
    segmentBytes(n) {
      check(n);
      return segmentStarts === null ? null : segmentStarts[n + 1]! - segmentStarts[n]!;
    },
  };
}
