/** Slots and HLS segments of a tabled timeline: one layout for both. */
import { PACKET_BYTES } from "../../bytes/ts/packet.ts";
import { MillraceError } from "../../errors.ts";
import type { FaultLedger } from "../model/faults.ts";
import { CutPlanner, firstTarget90k, segmentTarget } from "./segment-plan.ts";
import type { IndexWork } from "../source/work.ts";
import type { Program } from "../mux/ts/program.ts";
import { layOutSlots, sampleAt, splitCrowded } from "../mux/ts/slots.ts";
import { TabledMuxer } from "../mux/ts/tabled.ts";
import { faultsOfTables } from "../model/table-faults.ts";
import type { SampleTable, TabledTimeline } from "../model/timeline.ts";
import type { HlsPlan, TsLayout } from "../model/types.ts";

/** The common result for tabled and streamed timelines. */
export interface Layout {
  /** Size of the TS, bytes; null when unknown. */
  readonly sizeBytes: number | null;
  /** Presentation time at which each segment starts, 90 kHz. */
  readonly starts90k: readonly number[];
  readonly end90k: number;
  /** First byte of each segment and the end; null when unknown. */
  readonly segmentStarts: readonly number[] | null;
  /** The runs `[first, end)` of segment `n`; absent: its timeline is tabled. */
  readonly runsOf?: (n: number) => readonly [first: number, end: number];
  /** The faults in it. */
  readonly faults: FaultLedger;
  /** As `TsLayout.read`. */
  read: TsLayout["read"];
  /** As `HlsPlan.readSegment`. */
  readSegment: HlsPlan["readSegment"];
}

/** Candidates checked between two checks of the clock. */
const STRIDE = 4096;
/**
 * What the TS may take on top of the media: bytes per stream and second (340 access units of a packet each), times the
 * media (packets, tables, parameter sets), and a fixed amount.
 */
const OVERHEAD_BYTES_PER_SECOND = 64_000;
const OVERHEAD_FACTOR = 8;
const OVERHEAD_BYTES = 64 * 1024 * 1024;

/**
 * Lays out the streams of `program`, in segments of `target90k` as far as random access points allow. `toldMs`: the
 * length that the container states. Rejects with `bad_media` if a table of a few bytes would make a stream out of all
 * proportion.
 */
export async function layOutTables(
  program: Program,
  timeline: TabledTimeline,
  target90k: number,
  toldMs: number | null,
  work: Pick<IndexWork, "spend">,
): Promise<Layout> {
  const tables = program.streams.map((stream) => timeline.tables[stream.trackIndex]!);
  const main = tables[program.pcrStream]!;
  // The playlist is as long as the longest track, which need not be the main one.
  const end90k = Math.max(...tables.map(endOf));
  const earliest90k = Math.min(...tables.map(startOf));
  const payloadBytes = tables.reduce((sum, table) => sum + table.payloadBytes, 0);
  const durationS = (end90k - earliest90k) / 90_000;
  const fullLength90k = segmentTarget(target90k, end90k - earliest90k);
  const isVideo = program.streams[program.pcrStream]!.track.kind === "video";
  const cuts = await cutTable(main, new CutPlanner(fullLength90k, firstTarget90k(target90k, isVideo)), work);
  const firsts90k = cuts.map((sample) => main.dts90k.at(sample));
  // Everything before the first random access point, in any track, belongs to the first slot.
  firsts90k[0] = tables.reduce((earliest, table) => Math.min(earliest, table.dts90k.at(0)), firsts90k[0] ?? 0);
  const cuts90k = await splitCrowded(tables, firsts90k, work);
  const starts90k = cuts90k.map((dts90k, i) => i === 0 ? earliest90k : ptsAt(main, dts90k));
  const slots = await layOutSlots(program, tables, cuts90k, work);
  const muxer = new TabledMuxer(program, tables, slots);
  const bounds = [...slots.firstPackets].map((packets) => packets * PACKET_BYTES);
  const sizeBytes = bounds[bounds.length - 1]!;
  const mostBytes = OVERHEAD_BYTES + payloadBytes * OVERHEAD_FACTOR +
    durationS * OVERHEAD_BYTES_PER_SECOND * tables.length;
  if (sizeBytes > mostBytes) {
    throw new MillraceError("bad_media", `${payloadBytes} bytes of media would make ${sizeBytes} bytes of MPEG TS`);
  }
  const faults = await faultsOfTables(tables, toldMs === null ? null : toldMs * 90, work);
  for (const at of timeline.gaps ?? []) faults.gap(at);
  return {
    sizeBytes,
    starts90k,
    end90k,
    segmentStarts: bounds,
    faults,
    read: (start, end, ...from) => muxer.read(start, Math.min(end ?? sizeBytes, sizeBytes), ...from),
    readSegment: (n, ...from) => muxer.read(bounds[n]!, bounds[n + 1]!, ...from),
  };
}

/** Access units of `table` with which segments begin: random access points, chosen by presentation time. */
async function cutTable(table: SampleTable, planner: CutPlanner, work: Pick<IndexWork, "spend">): Promise<number[]> {
  const { keyframes } = table;
  const candidates = keyframes?.length ?? table.count;
  for (let i = 0; i < candidates; i++) {
    if (i % STRIDE === 0) await work.spend(STRIDE);
    planner.push(ptsOf(table, keyframes?.[i] ?? i));
  }
  return planner.finish(endOf(table)).map((cut) => keyframes?.[cut] ?? cut);
}

function ptsOf(table: SampleTable, sample: number): number {
  return table.dts90k.at(sample) + (table.ptsShift90k?.at(sample) ?? 0);
}

/** Presentation time of the first access unit that is decoded at `dts90k` or later. */
function ptsAt(table: SampleTable, dts90k: number): number {
  const sample = sampleAt(table, dts90k);
  return sample < table.count ? ptsOf(table, sample) : dts90k;
}

/** Reordering spans a few pictures; this is beyond any codec's limit of sixteen. */
const REORDER_SPAN = 64;

/** Earliest presentation time. */
function startOf(table: SampleTable): number {
  let start = Infinity;
  for (let i = 0; i < Math.min(table.count, REORDER_SPAN); i++) start = Math.min(start, ptsOf(table, i));
  return start;
}

/** End of the last access unit, its duration taken to be that of the one before. */
function endOf(table: SampleTable): number {
  const { count, dts90k } = table;
  let end = 0;
  for (let i = Math.max(0, count - REORDER_SPAN); i < count; i++) end = Math.max(end, ptsOf(table, i));
  return end + (count > 1 ? dts90k.at(count - 1) - dts90k.at(count - 2) : 0);
}
