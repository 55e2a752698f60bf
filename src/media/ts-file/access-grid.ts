/**
 * Predicts where a segment of a large transport stream begins. Searching its random access point means fetching all bytes
 * up to it: after a seek in a swarm, a group of pictures takes as long as it plays. Encoders for streaming repeat the same
 * distance, so once a few points were met while segments were read, a search begins just before the point that is expected
 * nearest to the planned cut.
 *
 * Where a search begins is decided once per segment and never changes, so that each segment ends where the next one begins.
 */
import { stepBetween } from "../../bytes/ts/stamps.ts";
import type { CutPlan } from "./cut-plan.ts";
import type { TimedPes } from "./time-scan.ts";

/** Distances between points that must have been alike. */
const MIN_STEPS = 2;
/** Distances that differ by more than this are not alike, 90 kHz (a picture at 25 per second). */
const TOLERANCE_90K = 3600;
/** The least distance that is worth a prediction, 90 kHz (half a second): a search across a shorter one is short anyway. */
const MIN_SPACING_90K = 45_000;
/** The search begins this share of the distance before the predicted place. */
const MARGIN = 1 / 16;
/** Most of that distance by which points may come before the place that the mean bit rate gives. */
const MAX_EARLY = 1 / 4;
/** A segment must be this many times as long as the distance: then no prediction reaches into the segment before. */
const MIN_GROUPS = 2;

/** The evenly spread random access points at the beginning of one stream. */
export class AccessGrid {
  readonly #plan: CutPlan;
  readonly #packetCount: number;
  /** When each segment begins according to the plan, ms. */
  readonly #startsMs: readonly number[];
  /** Where the search for a segment's start begins, packets: those decided so far. */
  readonly #decided = new Map<number, number>();
  #steps = 0;
  #least90k = Number.POSITIVE_INFINITY;
  #most90k = 0;
  /** Time of a point since the beginning, ms. */
  #pointMs = 0;
  /** How far points came before the place that the mean bit rate gives, ms of media; at most. */
  #earlyMs = 0;

  constructor(plan: CutPlan, packetCount: number) {
    this.#plan = plan;
    this.#packetCount = packetCount;
    let startMs = 0;
    this.#startsMs = plan.cuts.map(({ durationMs }) => (startMs += durationMs) - durationMs);
  }

  /** A function to be called with the random access points of segment `n` in order, none left out. */
  follow(n: number): (point: TimedPes) => void {
    let last: TimedPes | null = null;
    return (point) => {
      if (last !== null) this.#note(n, last, point);
      last = point;
    };
  }

  #note(n: number, last: TimedPes, { packet, pts90k }: TimedPes): void {
    const { startPts90k, cuts } = this.#plan;
    const step90k = stepBetween(last.pts90k, pts90k);
    if (step90k <= 0 || startPts90k === null) return;
    this.#steps++;
    this.#least90k = Math.min(this.#least90k, step90k);
    this.#most90k = Math.max(this.#most90k, step90k);
    this.#pointMs = stepBetween(startPts90k, pts90k) / 90;
    const placeMs = this.#startsMs[n]! + (packet - cuts[n]!.searchFrom) / this.#packetsPerMs(n);
    this.#earlyMs = Math.max(this.#earlyMs, this.#pointMs - placeMs);
  }

  #packetsPerMs(n: number): number {
    const { cuts } = this.#plan;
    return ((cuts[n + 1]?.searchFrom ?? this.#packetCount) - cuts[n]!.searchFrom) / cuts[n]!.durationMs;
  }

  /** The packet from which to search for the start of segment `n`; always the same one. */
  searchFrom(n: number): number {
    const cut = this.#plan.cuts[n];
    if (cut === undefined) return this.#packetCount;
    const known = this.#decided.get(n);
    if (known !== undefined) return known;
    const from = n === 0 ? 0 : this.#predict(n) ?? cut.searchFrom;
    this.#decided.set(n, from);
    return from;
  }

  #predict(n: number): number | null {
    const { cuts, rule } = this.#plan;
    if (rule === "any" || this.#steps < MIN_STEPS || this.#most90k - this.#least90k > TOLERANCE_90K) return null;
    const spacingMs = this.#least90k / 90;
    const leastMs = Math.min(cuts[n]!.durationMs, cuts[n - 1]!.durationMs);
    if (this.#least90k < MIN_SPACING_90K || leastMs < MIN_GROUPS * spacingMs) return null;
    if (cuts.some(({ discontinuity }) => discontinuity)) return null;
    const plannedMs = this.#startsMs[n]!;
    const pointMs = this.#pointMs + Math.round((plannedMs - this.#pointMs) / spacingMs) * spacingMs;
    const earlyMs = Math.min(this.#earlyMs, spacingMs * MAX_EARLY) + spacingMs * MARGIN;
    return Math.max(0, Math.floor(cuts[n]!.searchFrom + (pointMs - earlyMs - plannedMs) * this.#packetsPerMs(n)));
  }
}
