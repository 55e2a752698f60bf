/** Runs from the Cues. */
import { type Anchor, CUE_SEARCH_BYTES } from "./anchors.ts";
import { MAX_HEADER_BYTES } from "./ebml.ts";
import type { Cue, MatroskaHead } from "./head.ts";
import type { Track } from "../../types.ts";

/** A run before it gets its bounds. Times in ns, as the file has them. */
export interface PlannedRun {
  readonly anchor: Anchor;
  readonly timeNs: number;
  readonly durationNs: number;
  readonly sourceEnd: number;
  /** Bytes that its blocks can take in the file; null when the end is an estimate. */
  readonly maxBytes: number | null;
}

/**
 * Entries of the Cues closer than this are merged, ns. Each run costs tables, clock and rounding, 30 KB or so; but a read
 * from the middle of a slot fetches the run from its start.
 */
const LEAST_RUN_NS = 2e9;
/** Most runs of a file: 55 h of 2-second runs. What follows belongs to the last. */
export const MAX_RUNS = 100_000;
/** Cues sparser than one in this many ns on average are no index worth the name. */
const SPARSEST_NS = 60e9;
/** The last run may be longer than the Duration says, ns. */
const LAST_RUN_SPARE_NS = 2e9;

function chooseCues(head: MatroskaHead, main: Track): Cue[] {
  const own = head.cues.filter((cue) => cue.trackNumber === main.id);
  // Cues of other tracks tell where clusters are; the keyframe is then searched in them.
  const list = own.length > 0 ? own : head.cues.map((cue) => ({ ...cue, blockAt: null }));
  list.sort((a, b) => a.clusterAt - b.clusterAt || (a.blockAt ?? 0) - (b.blockAt ?? 0));
  const chosen: Cue[] = [];
  let lastNs = 0;
  let lastCluster = head.firstClusterAt;
  for (const cue of list) {
    if (cue.timeNs - lastNs < LEAST_RUN_NS || (cue.clusterAt === lastCluster && cue.blockAt === null)) continue;
    if (chosen.length >= MAX_RUNS - 1) break;
    chosen.push(cue);
    lastNs = cue.timeNs;
    lastCluster = cue.clusterAt;
  }
  return chosen;
}

/** End of the clusters: the first known element behind the last one, or the end of the file. */
function clustersEnd(head: MatroskaHead, lastCluster: number, sizeBytes: number): number {
  return Math.min(sizeBytes, ...head.elementsAt.filter((at) => at > lastCluster));
}

/** How much lower than the mean the bitrate of a last run of unknown length may be: credits are. */
const LAST_RUN_FACTOR = 3;

/** The runs of a file with Cues; null when these are missing or too sparse. */
export function planFromCues(head: MatroskaHead, main: Track, sizeBytes: number): PlannedRun[] | null {
  if (head.cues.length === 0) return null;
  const cues = chooseCues(head, main);
  const lastCue = head.cues.reduce((last, cue) => Math.max(last, cue.timeNs), 0);
  if ((cues.length + 1) * SPARSEST_NS < Math.max(lastCue, head.durationNs ?? 0)) return null;
  const first: Anchor = { position: head.firstClusterAt, blockAt: null, searchBytes: 0 };
  const anchors = [first];
  for (const [i, cue] of cues.entries()) {
    const room = (cues[i + 1]?.clusterAt ?? sizeBytes) - cue.clusterAt;
    const credible = cue.blockAt !== null && (cue.blockAt <= room || room === 0);
    anchors.push({
      position: cue.clusterAt,
      blockAt: credible ? cue.blockAt : null,
      searchBytes: CUE_SEARCH_BYTES,
    });
  }
  // The first run has the time of the first cluster's cue: files need not start at 0.
  const firstNs = head.cues.find((cue) => cue.clusterAt === head.firstClusterAt)?.timeNs ?? 0;
  const times = [Math.min(firstNs, cues[0]?.timeNs ?? firstNs), ...cues.map((cue) => cue.timeNs)];
  const bytesEnd = clustersEnd(head, anchors.at(-1)!.position, sizeBytes);
  return anchors.map((anchor, i) => {
    const next = anchors[i + 1];
    const timeNs = times[i]!;
    const reach = next === undefined
      ? bytesEnd
      : Math.min(sizeBytes, next.position + MAX_HEADER_BYTES + (next.blockAt ?? next.searchBytes));
    const maxBytes = Math.max(0, reach - anchor.position);
    let durationNs = (times[i + 1] ?? head.durationNs ?? 0) - timeNs;
    if (next === undefined && (durationNs <= 0 || head.durationNs === null)) {
      // Without a Duration the last run is as long as its bytes take at the mean rate so far.
      const rate = timeNs > 0 ? (anchor.position - head.firstClusterAt) / timeNs : 125_000 / 1e9;
      durationNs = Math.ceil(LAST_RUN_FACTOR * maxBytes / Math.max(rate, 1e-9));
    }
    return { anchor, timeNs, durationNs, sourceEnd: reach, maxBytes };
  });
}

/** Duration for which a run's access units are counted, ms: generous for the last, whose end is not in the Cues. */
export function countedMs(run: PlannedRun, last: boolean): number {
  return (last ? run.durationNs + LAST_RUN_SPARE_NS : run.durationNs) / 1e6;
}
