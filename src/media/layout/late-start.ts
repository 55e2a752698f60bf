/** The MPEG TS of a file from a later time on: a layout of its own, cut from the whole one. */
import { MillraceError } from "../../errors.ts";
import type { HlsPlan, TsLayout } from "../model/types.ts";

/** Segment of `plan` in which `ms` lies; the last one for later times. */
export function segmentAt({ segments }: HlsPlan, ms: number): number {
  let found = 0;
  for (const { index, startMs } of segments) if (startMs <= ms) found = index;
  return found;
}

/** The part of `layout`, whose size is known, from byte `from` on. */
export function layoutFrom(layout: TsLayout, from: number): TsLayout {
  if (from === 0) return layout;
  const { sizeBytes, copiedFrom, watch, fingerprint } = layout;
  return {
    sizeBytes: sizeBytes! - from,
    ...(copiedFrom === undefined ? {} : { copiedFrom: copiedFrom + from, watch }),
    fingerprint: `${fingerprint}-from-${from}`,
    read: (start, end, ...rest) => layout.read(start + from, end === null ? null : end + from, ...rest),
  };
}

/** The segments of `plan` from `first` on, one after the other, as a layout of unknown size. */
export function layoutOfSegments(layout: TsLayout, plan: HlsPlan, first: number): TsLayout {
  if (first === 0) return layout;
  return {
    sizeBytes: null,
    fingerprint: `${layout.fingerprint}-of-${first}`,
    async *read(start, end, ...rest) {
      // Without a size nobody can ask for a part.
      if (start !== 0 || end !== null) {
        throw new MillraceError("invalid_argument", "the size of this stream is unknown");
      }
      for (let n = first; n < plan.segments.length; n++) yield* plan.readSegment(n, ...rest);
    },
  };
}
