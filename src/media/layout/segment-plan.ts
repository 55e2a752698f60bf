/** Where to cut HLS segments, and the plan made of the cuts. */

/** Target length of a segment unless told otherwise, ms. */
export const DEFAULT_SEGMENT_TARGET_MS = 5000;

/**
 * Target length of the first segment of a film, 90 kHz (2 s): browsers show nothing before they have all of it. A player
 * that begins to play then has to get the next one within this time.
 */
const FIRST_TARGET_90K = 180_000;
/**
 * How much longer each segment may be per length of the film before it. At 1.3 times the bitrate a segment of 0.3 times
 * that length, plus the first one's, arrives just when the ones before have been played.
 */
const GROWTH = 0.25;
/** Those of a film of a year grow over 34 segments, and two may be as short as one. */
const GROWING_SEGMENTS = 80;

/**
 * Most segments of a playlist, which then has 2.6 MB: 13 hours and 53 minutes of 5 s each, at the least. Longer films
 * get longer segments. A file of a few megabytes can name millions of moments, and a playlist of them was 400 MB.
 */
export const MAX_SEGMENTS = 20_000;

/** Target length of the first segment where the others have `target90k`. Those of sound are small anyway. */
export function firstTarget90k(target90k: number, isVideo: boolean): number {
  return isVideo ? Math.min(target90k, FIRST_TARGET_90K) : target90k;
}

/**
 * Length of a segment, in the unit of `duration`: `target`, or as much more as `MAX_SEGMENTS` needs. One segment may be
 * much shorter than its target, but two in a row are together at least as long; hence the factor.
 */
export function segmentTarget(target: number, duration: number): number {
  return Math.max(target, 2 * duration / (MAX_SEGMENTS - GROWING_SEGMENTS - 1));
}

/** Chooses cuts one candidate at a time, for callers that get the candidates in pieces. */
export class CutPlanner {
  /** Indexes of the candidates chosen. */
  readonly cuts: number[] = [];
  readonly #target: number;
  readonly #firstTarget: number;
  #first = 0;
  #start = 0;
  #candidate = 0;
  #index = -1;

  /** `target` in the unit of the candidates' times; segments grow to it from `firstTarget` on. */
  constructor(target: number, firstTarget = target) {
    this.#target = target;
    this.#firstTarget = firstTarget;
  }

  /** Takes the next candidate. Times ascend; one that does not counts as the one before. */
  push(candidate: number): void {
    const time = this.#index < 0 ? candidate : Math.max(candidate, this.#candidate);
    this.#decide(time);
    this.#candidate = time;
    if (++this.#index === 0) {
      this.cuts.push(0);
      this.#first = this.#start = time;
    }
  }

  /** The candidates end; the last segment ends at `end`. */
  finish(end: number): readonly number[] {
    this.#decide(end);
    return this.cuts;
  }

  #decide(next: number): void {
    if (this.#index <= 0) return;
    const time = this.#candidate;
    const wanted = this.#start +
      Math.min(this.#target, this.#firstTarget + GROWTH * (this.#start - this.#first));
    // Pictures that are all taken for random access points are not in the order of their times: the last of equals counts.
    if (time > this.#start && next > time && Math.abs(time - wanted) <= Math.abs(next - wanted)) {
      this.cuts.push(this.#index);
      this.#start = time;
    }
  }
}

/**
 * Chooses cuts among `times` (ascending; the first is always one), so that each segment ends at the time nearest its
 * start plus `target`, all in one unit; `end` is where the last one ends. They grow to `target` from `firstTarget` on. Cutting at the next candidate beyond the target
 * instead would make segments longer than wanted whenever random access points are sparse. There are at most `MAX_SEGMENTS`.
 * Returns indexes into `times`.
 */
export function planCuts(
  times: ArrayLike<number>,
  target: number,
  end: number,
  firstTarget = target,
): readonly number[] {
  const last = times.length === 0 ? end : Math.max(end, times[times.length - 1]!);
  const planner = new CutPlanner(segmentTarget(target, last - (times[0] ?? last)), firstTarget);
  for (let i = 0; i < times.length; i++) planner.push(times[i]!);
  return planner.finish(end);
}

/** Durations of segments that start at `starts` and end at `end`, and the target duration (RFC 8216, 4.3.3.1). */
export function segmentDurations(starts: readonly number[], end: number): readonly number[] {
  return starts.map((start, i) => Math.max(0, (starts[i + 1] ?? Math.max(end, start)) - start));
}

/** EXT-X-TARGETDURATION: each EXTINF rounded to the nearest second must not exceed it; ours never does unrounded. */
export function targetDurationS(durationsMs: readonly number[]): number {
  return Math.max(1, Math.ceil(durationsMs.reduce((longest, ms) => Math.max(longest, ms), 0) / 1000));
}
