/**
 * The packets of one slot in order: tables, PCR and access units merged by decoding time. Rebuilt whenever a slot is
 * read.
 */
import type { SampleTable } from "../../model/timeline.ts";
import type { Program, ProgramStream } from "./program.ts";
import { keyframeAt, type Slots } from "./slots.ts";
import { pesAt } from "./tabled-pes.ts";
import { MAX_PCR_GAP_90K, packetsToAlign, pcrPacketsBetween, psiRoundsIn } from "./timing.ts";

/** `SlotSchedule.what` of PAT and PMT. */
export const ITEM_PSI = 254;
/** `SlotSchedule.what` of a PCR-only packet. */
export const ITEM_PCR = 255;

/** Items of a slot, in columns. */
export interface SlotSchedule {
  readonly count: number;
  /** Stream index of an access unit, or `ITEM_PSI`, `ITEM_PCR`. */
  readonly what: Uint8Array;
  /** Access unit: index in its table (of the first one, if several share a PES); PSI: round; PCR: index into `pcr90k`. */
  readonly index: Uint32Array;
  /** How many access units are in the PES; 0 if the item is no PES. */
  readonly units: Uint8Array;
  /** First packet of each item within the slot; one entry more than there are items. */
  readonly packets: Uint32Array;
  /** Continuity counter of the item's first packet. */
  readonly cc: Uint8Array;
  /** Access units only: 1 for random access points. */
  readonly keyframe: Uint8Array;
  /** Times of the PCR-only packets, 90 kHz. */
  readonly pcr90k: readonly number[];
}

/** State of a stream while the slot is put together. */
interface Cursor {
  next: number;
  readonly end: number;
  nextKeyframe: number;
  /** Last access unit with bytes: its PES gets the packets that align the counter. */
  last: number;
  packets: number;
}

/** The times of the PCR-only packets, as `layOutSlots` counted them. */
function pcrTimes(
  stream: ProgramStream,
  table: SampleTable,
  { next: first, end }: Cursor,
  start90k: number,
  end90k: number,
): number[] {
  const times: number[] = [];
  if (first === end || table.dts90k.at(first) > start90k) times.push(start90k);
  let last90k = start90k;
  const fill = (time90k: number) => {
    const between = pcrPacketsBetween(time90k - last90k, times.length);
    for (let n = 1; n <= between; n++) times.push(last90k + n * MAX_PCR_GAP_90K);
    last90k = time90k;
  };
  for (let i = first; i < end; i = pesAt(stream, table, i, end, false).end) fill(table.dts90k.at(i));
  fill(end90k);
  return times;
}

/** Puts together slot `slot`. Cost is linear in its access units. */
export function scheduleSlot(
  program: Program,
  tables: readonly SampleTable[],
  slots: Slots,
  slot: number,
): SlotSchedule {
  const start90k = slots.starts90k[slot]!;
  const end90k = slots.starts90k[slot + 1]!;
  const rounds = psiRoundsIn(end90k - start90k);
  const cursors = tables.map((table, i): Cursor => {
    const next = slots.firstSamples[i]![slot]!;
    const end = slots.firstSamples[i]![slot + 1]!;
    let last = end - 1;
    while (last >= next && table.sizes.at(last) === 0) last--;
    return { next, end, nextKeyframe: keyframeAt(table, next), last, packets: 0 };
  });
  const pcrCursor = cursors[program.pcrStream]!;
  const pcr90k = pcrTimes(
    program.streams[program.pcrStream]!,
    tables[program.pcrStream]!,
    pcrCursor,
    start90k,
    end90k,
  );
  const capacity = cursors.reduce((sum, cursor) => sum + cursor.end - cursor.next, rounds + pcr90k.length);
  const what = new Uint8Array(capacity);
  const index = new Uint32Array(capacity);
  const packets = new Uint32Array(capacity + 1);
  const cc = new Uint8Array(capacity);
  const keyframe = new Uint8Array(capacity);
  const units = new Uint8Array(capacity);
  let count = 0;
  let round = 0;
  let pcr = 0;
  const put = (kind: number, of: number, counter: number, packetCount: number) => {
    what[count] = kind;
    index[count] = of;
    cc[count] = counter & 15;
    packets[count + 1] = packets[count]! + packetCount;
    count++;
  };
  // PAT and PMT before anything else at their time; a PCR before the access units.
  const putUntil = (time90k: number) => {
    for (;;) {
      const psiAt = round < rounds ? start90k + (round * (end90k - start90k)) / rounds : Infinity;
      const pcrAt = pcr < pcr90k.length ? pcr90k[pcr]! : Infinity;
      if (Math.min(psiAt, pcrAt) > time90k || Math.min(psiAt, pcrAt) === Infinity) return;
      if (psiAt <= pcrAt) put(ITEM_PSI, round, round++, program.psiPackets);
      else put(ITEM_PCR, pcr++, pcrCursor.packets - 1, 1);
    }
  };
  for (;;) {
    let best = -1;
    let bestTime = Infinity;
    for (let i = 0; i < cursors.length; i++) {
      const cursor = cursors[i]!;
      if (cursor.next >= cursor.end) continue;
      const time = tables[i]!.dts90k.at(cursor.next);
      if (time < bestTime || best < 0) [best, bestTime] = [i, time];
    }
    if (best < 0) break;
    putUntil(bestTime);
    const cursor = cursors[best]!;
    const table = tables[best]!;
    const sample = cursor.next;
    const isKeyframe = table.keyframes === null || table.keyframes[cursor.nextKeyframe] === sample;
    if (isKeyframe) cursor.nextKeyframe++;
    const pes = pesAt(program.streams[best]!, table, sample, cursor.end, isKeyframe);
    cursor.next = pes.end;
    if (pes.packets === 0) continue;
    const aligning = pes.end > cursor.last ? packetsToAlign(cursor.packets + pes.packets) : 0;
    keyframe[count] = isKeyframe ? 1 : 0;
    units[count] = pes.end - sample;
    put(best, sample, cursor.packets, pes.packets + aligning);
    cursor.packets += pes.packets + aligning;
  }
  putUntil(Number.MAX_VALUE);
  return { count, what, index, units, packets, cc, keyframe, pcr90k };
}
