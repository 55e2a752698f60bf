/** Makes any byte range of the layout of a tabled timeline, reading only the access units in it. */
import type { ChunkBuffers } from "../../../bytes/chunk-buffers.ts";
import type { ByteSource } from "../../../bytes/source.ts";
import type { SampleTable } from "../../model/timeline.ts";
import { type Extent, type ExtentBatch, readExtents } from "../../source/extents.ts";
import { PACKET_BYTES } from "../../../bytes/ts/packet.ts";
import { chunksOf, packetBuffer } from "../chunks.ts";
import { writePcrPacket } from "./packets.ts";
import { type Program, writePsi } from "./program.ts";
import { ITEM_PSI, scheduleSlot, type SlotSchedule } from "./slot-schedule.ts";
import type { Slots } from "./slots.ts";
import { UnitWriter } from "./unit-writer.ts";
import { DECODER_DELAY_90K, START_OFFSET_90K } from "./timing.ts";

/** The last slot that starts at or before `packet`. */
export function slotOfPacket(firstPackets: Float64Array, packet: number): number {
  let low = 0;
  let high = firstPackets.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (firstPackets[middle]! <= packet) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Items `[first, end)` of a slot's schedule. */
interface Stretch {
  readonly schedule: SlotSchedule;
  readonly first: number;
  readonly end: number;
}

/** First item whose packets reach beyond `packet` (relative to the slot). */
function itemOfPacket(schedule: SlotSchedule, packet: number): number {
  let low = 0;
  let high = schedule.count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (schedule.packets[middle + 1]! <= packet) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Reader of tabled layouts. Stateless between reads. */
export class TabledMuxer {
  readonly #program: Program;
  readonly #tables: readonly SampleTable[];
  readonly #slots: Slots;

  constructor(program: Program, tables: readonly SampleTable[], slots: Slots) {
    this.#program = program;
    this.#tables = tables;
    this.#slots = slots;
  }

  /** The bytes `[start, end)` of the stream, 0 ≤ start ≤ end ≤ size. `buffers` as in `TsLayout.read`. */
  async *read(
    start: number,
    end: number,
    source: ByteSource,
    signal: AbortSignal,
    buffers?: ChunkBuffers,
  ): AsyncGenerator<Uint8Array> {
    if (start >= end) return;
    const stretches = this.#stretches(Math.floor(start / PACKET_BYTES), Math.ceil(end / PACKET_BYTES));
    // The reader runs ahead of the writer; the items it has scheduled wait here (a batch ahead, so a slot or two).
    const scheduled: Stretch[] = [];
    const batches = readExtents(source, this.#extents(stretches, scheduled), signal);
    let batch: ExtentBatch | null = null;
    let used = 0;
    let skip = start % PACKET_BYTES;
    let left = end - start;
    let out: Uint8Array = new Uint8Array(0);
    let filled = 0;
    let isFirst = true;
    const unit = new UnitWriter(this.#program, this.#tables);
    const take = function* (): Generator<Uint8Array> {
      const bytes = out.subarray(skip, Math.min(filled, skip + left));
      left -= bytes.length;
      skip = 0;
      out = out.subarray(filled);
      filled = 0;
      yield* chunksOf(bytes, buffers);
    };
    try {
      // Request the first batch even if the range begins with tables: that fills `scheduled`.
      batch = (await batches.next()).value ?? null;
      for (let stretch = scheduled.shift(); stretch !== undefined; stretch = scheduled.shift()) {
        const { schedule } = stretch;
        for (let item = stretch.first; item < stretch.end; item++) {
          const isMedia = schedule.what[item]! < ITEM_PSI;
          for (let nth = 0; isMedia && nth < schedule.units[item]!; nth++) {
            if (batch === null || used === batch.data.length) {
              if (filled > 0) yield* take();
              for (const bytes of batch?.reads ?? []) source.release?.(bytes);
              batch = (await batches.next()).value ?? null;
              used = 0;
              if (batch === null) return;
            }
            unit.next(schedule, item, nth, batch, used++);
          }
          const bytes = (schedule.packets[item + 1]! - schedule.packets[item]!) * PACKET_BYTES;
          if (filled + bytes > out.length) {
            if (filled > 0) yield* take();
            if (bytes > out.length) {
              buffers?.release(out);
              out = packetBuffer(bytes, buffers);
            }
          }
          if (isMedia) unit.write(out, filled, schedule, item);
          else this.#writeOther(out, filled, schedule, item);
          filled += bytes;
          if (isFirst) {
            // A range may begin inside an access unit of many packets.
            skip += this.#packetsBefore(start, schedule, item) * PACKET_BYTES;
            isFirst = false;
          }
        }
      }
      if (filled > 0) yield* take();
    } finally {
      buffers?.release(out);
      await batches.return(undefined);
    }
  }

  #packetsBefore(start: number, schedule: SlotSchedule, item: number): number {
    const packet = Math.floor(start / PACKET_BYTES);
    return packet - this.#slots.firstPackets[slotOfPacket(this.#slots.firstPackets, packet)]! - schedule.packets[item]!;
  }

  *#stretches(firstPacket: number, endPacket: number): Generator<Stretch> {
    const { firstPackets, count } = this.#slots;
    for (let slot = slotOfPacket(firstPackets, firstPacket); slot < count && firstPackets[slot]! < endPacket; slot++) {
      const schedule = scheduleSlot(this.#program, this.#tables, this.#slots, slot);
      const first = itemOfPacket(schedule, Math.max(0, firstPacket - firstPackets[slot]!));
      const lastPacket = Math.min(endPacket, firstPackets[slot + 1]!) - firstPackets[slot]! - 1;
      yield { schedule, first, end: Math.min(schedule.count, itemOfPacket(schedule, lastPacket) + 1) };
    }
  }

  *#extents(stretches: Iterable<Stretch>, scheduled: Stretch[]): Generator<Extent> {
    for (const stretch of stretches) {
      scheduled.push(stretch);
      const { what, index, units } = stretch.schedule;
      for (let item = stretch.first; item < stretch.end; item++) {
        if (what[item]! >= ITEM_PSI) continue;
        const table = this.#tables[what[item]!]!;
        const first = index[item]!;
        for (let i = first; i < first + units[item]!; i++) {
          yield { offset: table.offsets.at(i), sizeBytes: table.sizes.at(i) };
        }
      }
    }
  }

  /** PAT and PMT, or a PCR. */
  #writeOther(out: Uint8Array, at: number, schedule: SlotSchedule, item: number): void {
    const index = schedule.index[item]!;
    if (schedule.what[item] === ITEM_PSI) return writePsi(this.#program, out, at, index);
    const pcr = schedule.pcr90k[index]! + START_OFFSET_90K - DECODER_DELAY_90K;
    writePcrPacket(out, at, this.#program.streams[this.#program.pcrStream]!.pid, schedule.cc[item]!, pcr);
  }
}
