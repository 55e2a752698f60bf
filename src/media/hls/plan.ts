/** Where to cut HLS segments, and the plan made of the cuts. */

/** Target length of a segment unless told otherwise, ms. */
export const DEFAULT_SEGMENT_TARGET_MS = 5000;

/**
 * Chooses cuts among `times` (ascending; the first is always one), so that each segment ends at the time nearest its
 * start plus `target`, all in one unit; `end` is where the last one ends. Cutting at the next candidate beyond the target
 * instead would make segments longer than wanted whenever random access points are sparse. Answers indexes into `times`.
 */
export function planCuts(times: ArrayLike<number>, target: number, end: number): number[] {
  if (times.length === 0) return [];
  const cuts = [0];
  let start = times[0]!;
  for (let i = 1; i < times.length; i++) {
    const time = times[i]!;
    const next = i + 1 < times.length ? times[i + 1]! : end;
    const wanted = start + target;
    if (time > start && Math.abs(time - wanted) <= Math.abs(next - wanted)) {
      cuts.push(i);
      start = time;
    }
  }
  return cuts;
}

/** Durations of segments that start at `starts` and end at `end`, and the target duration (RFC 8216, 4.3.3.1). */
export function segmentDurations(starts: readonly number[], end: number): readonly number[] {
  return starts.map((start, i) => Math.max(0, (starts[i + 1] ?? Math.max(end, start)) - start));
}

/** EXT-X-TARGETDURATION: each EXTINF rounded to the nearest second must not exceed it; ours never does unrounded. */
export function targetDurationS(durationsMs: readonly number[]): number {
  return Math.max(1, Math.ceil(durationsMs.reduce((longest, ms) => Math.max(longest, ms), 0) / 1000));
}
