/**
 * Slots of a tabled timeline: which access units each holds and how many packets it takes, from the index alone. A slot
 * starts with PAT and PMT and a random access point, and every PID's counter runs from 0 to 15 in it, so slots join in
 * any order.
 */
import type { SampleTable } from "../../timeline.ts";
import { maxPesBytes, pesPackets, type Program, type ProgramStream } from "./program.ts";
import { packetsToAlign, pcrPacketsBetween, psiRoundsIn } from "./timing.ts";

/** Where the slots are. Columns have one more entry than there are slots. */
export interface Slots {
  readonly count: number;
  /** Decoding time at which each slot starts, 90 kHz; the last entry is the end. */
  readonly starts90k: Float64Array;
  /** For each stream of the program, its first access unit in each slot. */
  readonly firstSamples: readonly Uint32Array[];
  /** First packet of each slot in the whole stream. */
  readonly firstPackets: Float64Array;
}

/** `index` of the first keyframe at or after sample `from`, into `table.keyframes`. */
export function keyframeAt(table: SampleTable, from: number): number {
  const keyframes = table.keyframes;
  if (keyframes === null) return from;
  let low = 0;
  let high = keyframes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (keyframes[middle]! < from) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** First access unit of `table` with a DTS of at least `dts90k`. */
export function sampleAt(table: SampleTable, dts90k: number): number {
  let low = 0;
  let high = table.count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (table.dts90k[middle]! < dts90k) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** PCR-only packets of the slot: they depend on the times of the PCR stream and nothing else. */
function pcrPackets(table: SampleTable, first: number, end: number, start90k: number, end90k: number): number {
  let count = 0;
  let last = start90k;
  if (first === end || table.dts90k[first]! > start90k) count++;
  for (let i = first; i < end; i++) {
    count += pcrPacketsBetween(table.dts90k[i]! - last);
    last = table.dts90k[i]!;
  }
  return count + pcrPacketsBetween(end90k - last);
}

/** Packets of the access units `[first, end)` in `stream`, before alignment. */
function mediaPackets(stream: ProgramStream, table: SampleTable, first: number, end: number): number {
  let packets = 0;
  let nextKeyframe = keyframeAt(table, first);
  const { keyframes, sizes, ptsShift90k } = table;
  for (let i = first; i < end; i++) {
    const keyframe = keyframes === null || keyframes[nextKeyframe] === i;
    if (keyframe) nextKeyframe++;
    const size = sizes[i]!;
    if (size === 0) continue;
    packets += pesPackets(stream, maxPesBytes(stream, size, ptsShift90k === null ? 0 : ptsShift90k[i]!, keyframe));
  }
  return packets;
}

/**
 * Lays out slots that begin at the decoding times `cuts90k` (ascending; each but the first a random access point of the
 * PCR stream). `tables` has one for each stream of the program.
 */
export function layOutSlots(program: Program, tables: readonly SampleTable[], cuts90k: readonly number[]): Slots {
  const count = cuts90k.length;
  const starts90k = new Float64Array(count + 1);
  starts90k.set(cuts90k);
  for (const table of tables) {
    if (table.count > 0) starts90k[count] = Math.max(starts90k[count]!, table.dts90k[table.count - 1]!);
  }
  const firstSamples = tables.map((table) => {
    const firsts = new Uint32Array(count + 1);
    for (let slot = 1; slot < count; slot++) firsts[slot] = sampleAt(table, starts90k[slot]!);
    firsts[count] = table.count;
    return firsts;
  });
  const firstPackets = new Float64Array(count + 1);
  for (let slot = 0; slot < count; slot++) {
    const start90k = starts90k[slot]!;
    const end90k = starts90k[slot + 1]!;
    let packets = psiRoundsIn(end90k - start90k) * program.psiPackets;
    for (const [i, stream] of program.streams.entries()) {
      const first = firstSamples[i]![slot]!;
      const end = firstSamples[i]![slot + 1]!;
      const media = mediaPackets(stream, tables[i]!, first, end);
      packets += media + packetsToAlign(media);
      if (stream.carriesPcr) packets += pcrPackets(tables[i]!, first, end, start90k, end90k);
    }
    firstPackets[slot + 1] = firstPackets[slot]! + packets;
  }
  return { count, starts90k, firstSamples, firstPackets };
}
