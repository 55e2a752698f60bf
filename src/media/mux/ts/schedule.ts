/** The packets of one slot in order: tables, PCR and access units merged by decoding time. Made again whenever a slot is read. */
import type { SampleTable } from "../../timeline.ts";
import { maxPesBytes, pesPackets, type Program } from "./program.ts";
import { keyframeAt, type Slots } from "./slots.ts";
import { MAX_PCR_GAP_90K, packetsToAlign, pcrPacketsBetween, psiRoundsIn } from "./timing.ts";

/** `Schedule.what` of PAT and PMT. */
export const ITEM_PSI = 254;
/** `Schedule.what` of a PCR-only packet. */
export const ITEM_PCR = 255;

/** Items of a slot, in columns. */
export interface Schedule {
  readonly count: number;
  /** Stream index of an access unit, or `ITEM_PSI`, `ITEM_PCR`. */
  readonly what: Uint8Array;
  /** Access unit: index in its table; PSI: round; PCR: number of the item in `pcr90k`. */
  readonly index: Uint32Array;
  /** First packet of each item within the slot; one entry more than items. */
  readonly packets: Uint32Array;
  /** Continuity counter of the item's first packet. */
  readonly cc: Uint8Array;
  /** Access units only: 1 for random access points. */
  readonly keyframe: Uint8Array;
  /** Times of the PCR-only packets, 90 kHz. */
  readonly pcr90k: readonly number[];
}

/** What is known of a stream while the slot is put together. */
interface Cursor {
  next: number;
  readonly end: number;
  nextKeyframe: number;
  /** Last access unit with bytes: the one that gets the aligning packets. */
  last: number;
  packets: number;
}

/** The times at which PCR-only packets stand, as `layOutSlots` counted them. */
function pcrTimes(table: SampleTable, first: number, end: number, start90k: number, end90k: number): number[] {
  const times: number[] = [];
  if (first === end || table.dts90k.at(first) > start90k) times.push(start90k);
  let last = start90k;
  for (let i = first; i <= end; i++) {
    const time = i < end ? table.dts90k.at(i) : end90k;
    const between = pcrPacketsBetween(time - last, times.length);
    for (let n = 1; n <= between; n++) times.push(last + n * MAX_PCR_GAP_90K);
    last = time;
  }
  return times;
}

/** Puts together slot `slot`. Cost is linear in its access units. */
export function scheduleSlot(program: Program, tables: readonly SampleTable[], slots: Slots, slot: number): Schedule {
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
  const pcr90k = pcrTimes(tables[program.pcrStream]!, pcrCursor.next, pcrCursor.end, start90k, end90k);
  const capacity = cursors.reduce((sum, cursor) => sum + cursor.end - cursor.next, rounds + pcr90k.length);
  const what = new Uint8Array(capacity);
  const index = new Uint32Array(capacity);
  const packets = new Uint32Array(capacity + 1);
  const cc = new Uint8Array(capacity);
  const keyframe = new Uint8Array(capacity);
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
    const sample = cursor.next++;
    const isKeyframe = table.keyframes === null || table.keyframes[cursor.nextKeyframe] === sample;
    if (isKeyframe) cursor.nextKeyframe++;
    if (table.sizes.at(sample) === 0) continue;
    const stream = program.streams[best]!;
    const shift = table.ptsShift90k === null ? 0 : table.ptsShift90k.at(sample);
    let unitPackets = pesPackets(stream, maxPesBytes(stream, table.sizes.at(sample), shift, isKeyframe));
    if (sample === cursor.last) unitPackets += packetsToAlign(cursor.packets + unitPackets);
    keyframe[count] = isKeyframe ? 1 : 0;
    put(best, sample, cursor.packets, unitPackets);
    cursor.packets += unitPackets;
  }
  putUntil(Number.MAX_VALUE);
  return { count, what, index, packets, cc, keyframe, pcr90k };
}
