/** Writes the access units of a tabled layout into their packets: one per PES, or several frames of sound. */
import type { ExtentBatch } from "../../source/extents.ts";
import type { SampleTable } from "../../model/timeline.ts";
import { MAX_PACKED_BYTES, putFrame } from "./packed-audio.ts";
import { type Program, type ProgramStream, writeAccessUnit } from "./program.ts";
import type { SlotSchedule } from "./slot-schedule.ts";

/** Joins the frames of one PES as they come. */
class FrameJoiner {
  readonly #out = new Uint8Array(MAX_PACKED_BYTES);
  #used = 0;

  /** Adds a frame of `stream` as the container has it. */
  add(stream: ProgramStream, data: Uint8Array, from: number, to: number): void {
    this.#used = putFrame(stream.format, this.#out, this.#used, data, from, to);
  }

  /** The frames added since the last call. Valid until the next `add`. */
  take(): Uint8Array {
    const frames = this.#out.subarray(0, this.#used);
    this.#used = 0;
    return frames;
  }
}

/** Writes the PES of one read, whose frames may arrive in several batches. */
export class UnitWriter {
  readonly #program: Program;
  readonly #tables: readonly SampleTable[];
  #joiner: FrameJoiner | null = null;
  #data: Uint8Array = new Uint8Array(0);
  #from = 0;
  #to = 0;

  constructor(program: Program, tables: readonly SampleTable[]) {
    this.#program = program;
    this.#tables = tables;
  }

  /** Takes the next access unit of `item`, the `nth` in its PES: number `used` of `batch`. */
  next(
    { what, index, units }: SlotSchedule,
    item: number,
    nth: number,
    { data, from }: ExtentBatch,
    used: number,
  ): void {
    const table = this.#tables[what[item]!]!;
    this.#data = data[used]!;
    this.#from = from[used]!;
    this.#to = this.#from + table.sizes.at(index[item]! + nth);
    if (units[item] === 1) return;
    this.#joiner ??= new FrameJoiner();
    this.#joiner.add(this.#program.streams[what[item]!]!, this.#data, this.#from, this.#to);
  }

  /** Writes the PES of `item` once all its access units were taken. */
  write(out: Uint8Array, at: number, schedule: SlotSchedule, item: number): void {
    const what = schedule.what[item]!;
    const index = schedule.index[item]!;
    const table = this.#tables[what]!;
    const dts90k = table.dts90k.at(index);
    const shift = table.ptsShift90k === null ? 0 : table.ptsShift90k.at(index);
    const isReady = schedule.units[item]! > 1;
    const data = isReady ? this.#joiner!.take() : this.#data;
    const [from, to] = isReady ? [0, data.length] : [this.#from, this.#to];
    const keyframe = schedule.keyframe[item] === 1;
    const unit = { pts90k: dts90k + shift, dts90k, keyframe, isReady, data, from, to };
    const packets = schedule.packets[item + 1]! - schedule.packets[item]!;
    writeAccessUnit(out, at, packets, this.#program.streams[what]!, unit, schedule.cc[item]!, dts90k);
  }
}
