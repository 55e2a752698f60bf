/** How many of the subtitle blocks that the Cues name each run has: mkvmerge and ffmpeg name them all. */
import type { MatroskaCue } from "./head.ts";
import { isPictureSubtitle, unknownSubtitles } from "./limits.ts";
import type { PlannedRun } from "./plan-cues.ts";
import type { MatroskaTrack } from "./tracks.ts";

/** A block may stand in the run beside that of its time by this much, ns. */
const INTERLEAVE_NS = 1e9;

/** Blocks on top of those that are named: of Cues close together one is kept. */
const SPARE = 1;

/** For each run of `plan` the blocks of each of `tracks`; 0 for tracks that are no picture subtitles. */
export function cuedSubtitles(
  plan: readonly PlannedRun[],
  tracks: readonly MatroskaTrack[],
  cues: readonly MatroskaCue[],
): readonly (readonly number[])[] {
  const own = new Map(tracks.flatMap((track, i) => isPictureSubtitle(track) ? [[track.track.id, i] as const] : []));
  const units = plan.map(() => tracks.map(() => 0));
  if (own.size === 0) return units;
  const cued = new Set<number>();
  for (const { timeNs, trackNumber } of cues) {
    const track = own.get(trackNumber);
    if (track === undefined) continue;
    cued.add(track);
    const first = runAt(plan, timeNs - INTERLEAVE_NS);
    const last = runAt(plan, timeNs + INTERLEAVE_NS);
    for (let run = first; run <= last; run++) units[run]![track] = (units[run]![track] || SPARE) + 1;
  }
  for (const track of own.values()) {
    if (cued.has(track)) continue;
    for (const [run, { durationNs }] of plan.entries()) units[run]![track] = unknownSubtitles(durationNs / 1e6);
  }
  return units;
}

/** The last run that begins at `timeNs` or earlier; the first one, if none does. */
function runAt(plan: readonly PlannedRun[], timeNs: number): number {
  let low = 0;
  let high = plan.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (plan[middle]!.timeNs <= timeNs) low = middle;
    else high = middle - 1;
  }
  return low;
}
