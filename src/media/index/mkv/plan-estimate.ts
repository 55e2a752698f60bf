/**
 * Runs of a file without usable Cues. Walking all clusters would fetch the whole file from a swarm (every header lies in
 * another piece), and a VOD playlist must list all segments at once. So the byte range is divided evenly by time as if
 * the bitrate were constant, and each run begins at the first keyframe after its byte position. Places are exact and
 * never change; only the times in the plan are estimates, while the timestamps in the media stay exact. It costs a read
 * of the media's head, and of its tail if the file doesn't give its duration.
 */
import type { ByteSource } from "../../../bytes/source.ts";
import type { Track } from "../../model/types.ts";
import { isPlausible, type MatroskaHead } from "./head.ts";
import { maxRuns, type PlannedRun, zeroOf } from "./plan-cues.ts";
import { walkBlocks } from "./walk-blocks.ts";

/** Length of a run, ns, if keyframes are dense enough. */
const RUN_NS = 5e9;
/** Runs are at least this many times the distance of keyframe clusters seen at the start, so that none stays empty. */
const KEYFRAME_FACTOR = 2;
/** How much of the media's start to read for that distance, bytes. */
const HEAD_BYTES = 1024 * 1024;
/** Most keyframe clusters to read. */
const HEAD_CLUSTERS = 6;
/** How much of the end to search for the last cluster, bytes: first little, then more. */
const TAIL_BYTES = [256 * 1024, 4 * 1024 * 1024];
/** Bitrate assumed if the duration is unknown, bytes per second. */
const UNKNOWN_RATE = 500_000;

interface Probe {
  /** Longest distance of consecutive clusters with keyframes, ns. */
  readonly spacingNs: number;
  /** Time of the first block, ns. */
  readonly firstNs: number;
}

async function probeHead(source: ByteSource, head: MatroskaHead, main: Track, signal: AbortSignal): Promise<Probe> {
  const limit = Math.min(source.sizeBytes, head.firstClusterAt + HEAD_BYTES);
  const starts: { clusterAt: number; timeNs: number }[] = [];
  let firstNs = -1;
  let lastNs = 0;
  await walkBlocks(source, head.firstClusterAt, signal, (block) => {
    const timeNs = block.time * head.timestampScaleNs;
    if (firstNs < 0) firstNs = timeNs;
    if (block.track === main.id) lastNs = Math.max(lastNs, timeNs);
    if (block.track === main.id && block.keyframe && block.clusterAt !== starts.at(-1)?.clusterAt) {
      starts.push({ clusterAt: block.clusterAt, timeNs });
    }
    return starts.length < HEAD_CLUSTERS && block.clusterAt < limit;
  });
  // If the part read ends within a group, count that group as far as it was seen.
  let spacingNs = starts.length > 0 ? lastNs - starts.at(-1)!.timeNs : 0;
  for (let i = 1; i < starts.length; i++) spacingNs = Math.max(spacingNs, starts[i]!.timeNs - starts[i - 1]!.timeNs);
  return { spacingNs, firstNs: Math.max(0, firstNs) };
}

async function probeTail(source: ByteSource, head: MatroskaHead, signal: AbortSignal): Promise<number | null> {
  for (const bytes of TAIL_BYTES) {
    let lastNs = -1;
    const from = Math.max(head.firstClusterAt, source.sizeBytes - bytes);
    await walkBlocks(source, from, signal, (block) => {
      lastNs = Math.max(lastNs, block.time * head.timestampScaleNs);
      return true;
    });
    if (lastNs > 0) return isPlausible(lastNs, source.sizeBytes) ? lastNs : null;
    if (from === head.firstClusterAt) break;
  }
  return null;
}

/** Plans the runs; also returns the duration found, which is that of the media for a file that begins late on its clock. */
export async function planByEstimate(
  source: ByteSource,
  head: MatroskaHead,
  main: Track,
  signal: AbortSignal,
): Promise<{ runs: PlannedRun[]; durationNs: number }> {
  const { spacingNs, firstNs } = await probeHead(source, head, main, signal);
  const zeroNs = zeroOf(firstNs);
  const mediaBytes = source.sizeBytes - head.firstClusterAt;
  // The Duration of a late file may count from 0 or from its first picture: its end shows which.
  const toldNs = zeroNs === 0 ? head.durationNs : null;
  const endNs = toldNs ?? await probeTail(source, head, signal);
  const durationNs = endNs === null || endNs <= zeroNs ? mediaBytes / UNKNOWN_RATE * 1e9 : endNs - zeroNs;
  const runNs = Math.max(RUN_NS, spacingNs * KEYFRAME_FACTOR);
  const most = maxRuns(head.tracks.map(({ track }) => track), mediaBytes);
  const count = Math.min(most, Math.max(1, Math.floor(durationNs / runNs)));
  const positions = Array.from({ length: count }, (_, i) => head.firstClusterAt + Math.floor(mediaBytes * i / count));
  const runs = positions.map((position, i): PlannedRun => ({
    anchor: { position, blockAt: null, searchBytes: i === 0 ? 0 : Infinity },
    timeNs: zeroNs + durationNs * i / count,
    durationNs: durationNs / count,
    sourceEnd: positions[i + 1] ?? source.sizeBytes,
    maxBytes: null,
  }));
  return { runs, durationNs };
}
