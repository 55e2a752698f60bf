/**
 * Slots of a tabled timeline: which access units each holds and how many packets it takes, from the index alone. A slot
 * starts with PAT and PMT and a random access point, and every PID's counter runs from 0 to 15 in it, so slots join in
 * any order.
 */
import { MillraceError } from "../../../errors.ts";
import type { IndexWork } from "../../source/work.ts";
import type { SampleTable } from "../../model/timeline.ts";
import type { Program, ProgramStream } from "./program.ts";
import { pesAt } from "./tabled-pes.ts";
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
    if (table.dts90k.at(middle) < dts90k) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Packet counts from `mediaPackets`. */
interface MediaPackets {
  /** Packets of access units, before alignment. */
  readonly media: number;
  /** Packets that carry only a PCR: they depend on the times of the PCR stream alone. */
  readonly pcr: number;
}

/** Packets of the access units `[first, end)` in `stream`, in a slot from `start90k` to `end90k`. */
function mediaPackets(
  stream: ProgramStream,
  table: SampleTable,
  [first, end]: readonly [first: number, end: number],
  [start90k, end90k]: readonly [start90k: number, end90k: number],
): MediaPackets {
  let media = 0;
  let pcr = first === end || table.dts90k.at(first) > start90k ? 1 : 0;
  let last90k = start90k;
  let nextKeyframe = keyframeAt(table, first);
  const { keyframes, dts90k } = table;
  for (let i = first; i < end;) {
    const keyframe = keyframes === null || keyframes[nextKeyframe] === i;
    if (keyframe) nextKeyframe++;
    if (stream.carriesPcr) {
      const time90k = dts90k.at(i);
      pcr += pcrPacketsBetween(time90k - last90k, pcr);
      last90k = time90k;
    }
    const pes = pesAt(stream, table, i, end, keyframe);
    media += pes.packets;
    i = pes.end;
  }
  return { media, pcr: stream.carriesPcr ? pcr + pcrPacketsBetween(end90k - last90k, pcr) : 0 };
}

/**
 * Most access units in a slot: four minutes of video with one audio track. A slot is put together in one go when read,
 * which takes 10 to 30 ms at this size.
 */
const MAX_SLOT_UNITS = 16_384;

/**
 * `cuts90k` with extra cuts where a slot would have too many access units. Such a slot begins without a random access
 * point, which only happens in files without them. Rejects with `bad_media` if that many have the same time.
 */
export async function splitCrowded(
  tables: readonly SampleTable[],
  cuts90k: readonly number[],
  work: Pick<IndexWork, "spend">,
): Promise<number[]> {
  const split: number[] = [];
  for (const [slot, start90k] of cuts90k.entries()) {
    split.push(start90k);
    const rest = [{ start90k, end90k: cuts90k[slot + 1] ?? Infinity }];
    for (let stretch = rest.pop(); stretch !== undefined; stretch = rest.pop()) {
      await work.spend(tables.length);
      const middle90k = crowdedMiddle(tables, stretch.start90k, stretch.end90k);
      if (middle90k === null) continue;
      if (middle90k <= stretch.start90k) {
        throw new MillraceError("bad_media", `more than ${MAX_SLOT_UNITS / 2} access units have the same time`);
      }
      split.push(middle90k);
      rest.push({ start90k: stretch.start90k, end90k: middle90k }, { start90k: middle90k, end90k: stretch.end90k });
    }
  }
  return split.sort((a, b) => a - b);
}

/**
 * Where to split a slot with too many access units: the middle of the fullest stream; null when the slot is within the
 * limit.
 */
function crowdedMiddle(tables: readonly SampleTable[], start90k: number, end90k: number): number | null {
  let units = 0;
  let most = 0;
  let middle90k = start90k;
  for (const table of tables) {
    const first = sampleAt(table, start90k);
    const end = end90k === Infinity ? table.count : sampleAt(table, end90k);
    units += end - first;
    if (end - first <= most) continue;
    most = end - first;
    middle90k = table.dts90k.at(first + (most >> 1));
  }
  return units > MAX_SLOT_UNITS ? middle90k : null;
}

/**
 * Lays out slots that begin at the decoding times `cuts90k` (ascending; each but the first a random access point of the
 * PCR stream as a rule). `tables` has one table per stream of the program.
 */
export async function layOutSlots(
  program: Program,
  tables: readonly SampleTable[],
  cuts90k: readonly number[],
  work: Pick<IndexWork, "spend">,
): Promise<Slots> {
  const count = cuts90k.length;
  const starts90k = new Float64Array(count + 1);
  starts90k.set(cuts90k);
  for (const table of tables) {
    if (table.count > 0) starts90k[count] = Math.max(starts90k[count]!, table.dts90k.at(table.count - 1));
  }
  const firstSamples = tables.map(() => new Uint32Array(count + 1));
  const firstPackets = new Float64Array(count + 1);
  for (let slot = 0; slot < count; slot++) {
    const start90k = starts90k[slot]!;
    const end90k = starts90k[slot + 1]!;
    let packets = psiRoundsIn(end90k - start90k) * program.psiPackets;
    for (const [i, stream] of program.streams.entries()) {
      const table = tables[i]!;
      const first = firstSamples[i]![slot]!;
      const end = slot + 1 < count ? sampleAt(table, end90k) : table.count;
      firstSamples[i]![slot + 1] = end;
      await work.spend(1 + end - first);
      const { media, pcr } = mediaPackets(stream, table, [first, end], [start90k, end90k]);
      packets += media + packetsToAlign(media) + pcr;
    }
    firstPackets[slot + 1] = firstPackets[slot]! + packets;
  }
  return { count, starts90k, firstSamples, firstPackets };
}
