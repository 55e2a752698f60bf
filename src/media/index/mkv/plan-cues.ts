/** Runs from the Cues. */
import { type Anchor, CUE_SEARCH_BYTES } from "./anchors.ts";
import { MAX_HEADER_BYTES } from "./ebml.ts";
import type { MatroskaCue, MatroskaHead } from "./head.ts";
import type { Track } from "../../model/types.ts";

/** A run before it gets its bounds. Times in ns, on the file's clock. */
export interface PlannedRun {
  readonly anchor: Anchor;
  readonly timeNs: number;
  readonly durationNs: number;
  readonly sourceEnd: number;
  /** Most bytes of its blocks in the file; null when the end is an estimate. */
  readonly maxBytes: number | null;
  /** How much longer the run may last, ns. Default 0. */
  readonly spareNs?: number;
}

/**
 * Runs are no shorter than this, ns: tables, clock and rounding cost each about 12 KB; but a read from the middle of a
 * slot fetches the run from its start.
 */
const LEAST_RUN_NS = 2e9;
/** Runs with fewer bytes than this are longer, as those 12 KB would be more than a few hundredths of them; they end where an HLS segment may. */
const LIGHT_RUN_BYTES = 192 * 1024;
/** Bytes of the file per run and carried track: a layout must not be many times its file. */
const LEAST_RUN_BYTES = 4096;
/** Runs allowed on top of that, and the most runs of any file: 11 h of 2-second ones. Longer files have longer runs. */
const FREE_RUNS = 32;
const MAX_RUNS = 20_000;
/** Cues sparser than one in this many ns on average are not used. */
const SPARSEST_NS = 60e9;
/** How much longer the last run may be than the Duration says, ns. */
const LAST_RUN_SPARE_NS = 1e9;

/** Most runs of a file with these tracks whose clusters take `mediaBytes`. */
export function maxRuns(tracks: readonly Track[], mediaBytes: number): number {
  const carried = tracks.filter(({ kind, codec }) => (kind === "video" || kind === "audio") && codec !== "other");
  const fitting = Math.floor(mediaBytes / (LEAST_RUN_BYTES * Math.max(1, carried.length)));
  return Math.min(MAX_RUNS, FREE_RUNS + fitting);
}

/** Parts of recordings keep the clock of the whole: a file that begins later than this does so on purpose, ns (10 s). */
const LATE_START_NS = 10e9;

/** The time that counts as the beginning of a file whose media begins at `firstNs`: 0, unless it begins late on its clock. */
export function zeroOf(firstNs: number): number {
  return firstNs > LATE_START_NS ? firstNs : 0;
}

/** A place in the file where a run may begin. */
interface Place {
  readonly timeNs: number;
  readonly clusterAt: number;
  readonly blockAt: number | null;
  /** No block of the run comes before it. */
  readonly at: number;
}

/**
 * The entries in the order of the file. A block position beyond the next cluster is false: then only the cluster is
 * trusted.
 */
function placesOf(list: readonly MatroskaCue[], sizeBytes: number): Place[] {
  const sorted = [...list].sort((a, b) => a.clusterAt - b.clusterAt || (a.blockAt ?? 0) - (b.blockAt ?? 0));
  let clusterEnd = sizeBytes;
  let clusterAt = -1;
  const places: Place[] = new Array(sorted.length);
  for (let i = sorted.length - 1; i >= 0; i--) {
    const cue = sorted[i]!;
    if (clusterAt >= 0 && cue.clusterAt < clusterAt) clusterEnd = clusterAt;
    clusterAt = cue.clusterAt;
    const blockAt = cue.blockAt !== null && clusterAt + cue.blockAt < clusterEnd ? cue.blockAt : null;
    places[i] = { timeNs: cue.timeNs, clusterAt, blockAt, at: clusterAt + (blockAt ?? 0) };
  }
  return places;
}

function choosePlaces(
  head: MatroskaHead,
  main: Track,
  sizeBytes: number,
  segmentNs: number,
  zeroNs: number,
): Place[] {
  const own = head.cues.filter((cue) => cue.trackNumber === main.id);
  // Cues of other tracks say where clusters are; the keyframe is then searched in them.
  const places = placesOf(own.length > 0 ? own : head.cues.map((cue) => ({ ...cue, blockAt: null })), sizeBytes);
  const most = maxRuns(head.tracks.map(({ track }) => track), sizeBytes - head.firstClusterAt);
  const lengthNs = places.reduce((last, { timeNs }) => Math.max(last, timeNs), zeroNs) - zeroNs;
  const leastNs = Math.max(LEAST_RUN_NS, lengthNs / most);
  const chosen: Place[] = [];
  let lastNs = zeroNs;
  let lastAt = head.firstClusterAt;
  let lastCluster = head.firstClusterAt;
  for (const place of places) {
    const ns = place.timeNs - lastNs;
    if (ns < leastNs || (ns < segmentNs && place.at - lastAt < LIGHT_RUN_BYTES)) continue;
    if (place.clusterAt === lastCluster && place.blockAt === null) continue;
    chosen.push(place);
    if (chosen.length >= most) break;
    lastNs = place.timeNs;
    lastAt = place.at;
    lastCluster = place.clusterAt;
  }
  return chosen;
}

/** End of the clusters: the first known element behind the last one, or the end of the file. */
function clustersEnd(head: MatroskaHead, lastCluster: number, sizeBytes: number): number {
  return Math.min(sizeBytes, ...head.elementsAt.filter((at) => at > lastCluster));
}

/** How much lower than the mean the bitrate of a last run of unknown length may be, as credits need little. */
const LAST_RUN_FACTOR = 3;

/**
 * The runs of a file with Cues; null when the Cues are missing or too sparse. `segmentNs` is how long an HLS segment
 * should be.
 */
export function planFromCues(
  head: MatroskaHead,
  main: Track,
  sizeBytes: number,
  segmentNs: number,
): PlannedRun[] | null {
  if (head.cues.length === 0) return null;
  // The first run has the time of the first cluster's cue: files need not start at 0.
  const firstNs = head.cues.find((cue) => cue.clusterAt === head.firstClusterAt)?.timeNs ?? 0;
  const zeroNs = zeroOf(firstNs);
  const places = choosePlaces(head, main, sizeBytes, segmentNs, zeroNs);
  const lastCue = head.cues.reduce((last, cue) => Math.max(last, cue.timeNs), 0);
  // Some muxers count the Duration of a late file from its first picture, others from 0.
  const isFromFirst = head.durationNs !== null && head.durationNs < lastCue;
  const endNs = head.durationNs === null ? null : head.durationNs + (isFromFirst ? firstNs : 0);
  if ((places.length + 1) * SPARSEST_NS < Math.max(lastCue, endNs ?? 0) - zeroNs) return null;
  const first: Place = {
    timeNs: Math.min(firstNs, places[0]?.timeNs ?? firstNs),
    clusterAt: head.firstClusterAt,
    blockAt: null,
    at: head.firstClusterAt,
  };
  const all = [first, ...places];
  const bytesEnd = clustersEnd(head, all.at(-1)!.clusterAt, sizeBytes);
  return all.map((place, i) => {
    const { clusterAt, blockAt, at, timeNs } = place;
    const next = all[i + 1];
    const reach = next === undefined
      ? bytesEnd
      : Math.min(sizeBytes, next.clusterAt + MAX_HEADER_BYTES + (next.blockAt ?? CUE_SEARCH_BYTES));
    const maxBytes = Math.max(0, reach - at);
    let durationNs = (next?.timeNs ?? endNs ?? 0) - timeNs;
    if (next === undefined && (durationNs <= 0 || endNs === null)) {
      // Without a Duration the last run is as long as its bytes take at the mean rate so far.
      const rate = at > head.firstClusterAt && timeNs > zeroNs
        ? (at - head.firstClusterAt) / (timeNs - zeroNs)
        : 125_000 / 1e9;
      durationNs = Math.ceil(LAST_RUN_FACTOR * maxBytes / Math.max(rate, 1e-9));
    }
    const anchor = { position: clusterAt, blockAt, searchBytes: i === 0 ? 0 : CUE_SEARCH_BYTES };
    // A Duration that is no less than the last cue may still be counted from the first picture.
    return { anchor, timeNs, durationNs, sourceEnd: reach, maxBytes, spareNs: isFromFirst ? 0 : firstNs - zeroNs };
  });
}

/** Duration for which a run's access units are counted, ms: generous for the last, whose end is not in the Cues. */
export function countedMs(run: PlannedRun, last: boolean): number {
  return (last ? run.durationNs + LAST_RUN_SPARE_NS + (run.spareNs ?? 0) : run.durationNs) / 1e6;
}
