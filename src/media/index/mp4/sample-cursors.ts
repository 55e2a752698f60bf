/** The boxes of a sample table, read from front to back: none is expanded in memory, whatever counts it declares. */
import { type Box, child, entriesOf, uint64 } from "./boxes.ts";

/** Sizes of the access units, from `stsz` or `stz2` (14496-12, 8.7.3). */
export class SizeTable {
  /** How many there are: the declared count, at most what the box holds. */
  readonly count: number;
  readonly #uniform: number;
  readonly #bits: number;
  readonly #view: DataView;
  readonly #start: number;

  /** Reads the sizes of `stbl`; if all are equal, `sourceBytes` bounds the count. */
  static of(stbl: Box, sourceBytes: number): SizeTable {
    const plain = child(stbl, "stsz");
    if (plain !== null && plain.start + 12 <= plain.end) {
      const uniform = plain.view.getUint32(plain.start + 4);
      const declared = plain.view.getUint32(plain.start + 8);
      if (uniform > 0) {
        return new SizeTable(Math.min(declared, Math.floor(sourceBytes / uniform)), uniform, 0, plain.view, 0);
      }
      const { at, count } = entriesOf(plain, 8, 4);
      return new SizeTable(count, 0, 32, plain.view, at);
    }
    const compact = child(stbl, "stz2");
    const none = new SizeTable(0, 0, 0, stbl.view, 0);
    if (compact === null || compact.start + 12 > compact.end) return none;
    const bits = compact.view.getUint8(compact.start + 7);
    if (bits !== 4 && bits !== 8 && bits !== 16) return none;
    const at = compact.start + 12;
    const room = Math.floor(((compact.end - at) * 8) / bits);
    return new SizeTable(Math.min(compact.view.getUint32(compact.start + 8), room), 0, bits, compact.view, at);
  }

  private constructor(count: number, uniform: number, bits: number, view: DataView, start: number) {
    this.count = count;
    this.#uniform = uniform;
    this.#bits = bits;
    this.#view = view;
    this.#start = start;
  }

  /** Size of access unit `index`. */
  at(index: number): number {
    const view = this.#view;
    switch (this.#bits) {
      case 0:
        return this.#uniform;
      case 32:
        return view.getUint32(this.#start + index * 4);
      case 16:
        return view.getUint16(this.#start + index * 2);
      case 8:
        return view.getUint8(this.#start + index);
      default:
        return (view.getUint8(this.#start + (index >> 1)) >> (index % 2 === 0 ? 4 : 0)) & 15;
    }
  }
}

/** A chunk: consecutive access units. */
export interface Chunk {
  readonly offset: number;
  readonly samples: number;
}

/** Chunks with their positions and sample counts (14496-12, 8.7.4 and 8.7.5). */
export function* chunksOf(stbl: Box): Generator<Chunk, undefined> {
  const map = child(stbl, "stsc");
  const large = child(stbl, "co64");
  const chunks = large ?? child(stbl, "stco");
  if (map === null || chunks === null) return;
  const width = large !== null ? 8 : 4;
  const list = entriesOf(chunks, 4, width);
  const runs = entriesOf(map, 4, 12);
  for (let run = 0; run < runs.count; run++) {
    const entry = runs.at + run * 12;
    const first = map.view.getUint32(entry);
    const samples = map.view.getUint32(entry + 4);
    const next = run + 1 < runs.count ? map.view.getUint32(entry + 12) : list.count + 1;
    // Runs that go backward hold no samples, and walking their chunks again could take forever.
    if (first === 0 || next < first) return;
    if (samples === 0) continue;
    for (let chunk = first; chunk < next && chunk <= list.count; chunk++) {
      const place = list.at + (chunk - 1) * width;
      yield { offset: large !== null ? uint64(chunks.view, place) : chunks.view.getUint32(place), samples };
    }
  }
}

/** Positions of the access units, one after another. */
export class ChunkWalk {
  readonly #chunks: Generator<Chunk, undefined>;
  #left = 0;
  #offset = 0;

  constructor(stbl: Box) {
    this.#chunks = chunksOf(stbl);
  }

  /** Position of the next access unit, which has `size` bytes; null when there are no more chunks. */
  next(size: number): number | null {
    if (this.#left === 0) {
      const { value } = this.#chunks.next();
      if (value === undefined) return null;
      this.#left = value.samples;
      this.#offset = value.offset;
    }
    const offset = this.#offset;
    this.#left--;
    this.#offset += size;
    return offset;
  }
}

/** Decoding times in track units from `stts` (8.6.1.2), one after another; the last duration repeats at the end. */
export class DecodingClock {
  readonly #view: DataView | null;
  readonly #end: number;
  #at: number;
  #left = 0;
  #delta = 0;
  #time = 0;

  constructor(stbl: Box) {
    const box = child(stbl, "stts");
    const list = box === null ? { at: 0, count: 0 } : entriesOf(box, 4, 8);
    this.#view = box?.view ?? null;
    this.#at = list.at;
    this.#end = list.at + list.count * 8;
  }

  /** Time of the next access unit. */
  next(): number {
    while (this.#left === 0 && this.#at < this.#end) {
      this.#left = this.#view!.getUint32(this.#at);
      const delta = this.#view!.getUint32(this.#at + 4);
      // Some writers put small negative numbers here; time never runs back.
      this.#delta = delta >= 0x80000000 ? 0 : delta;
      this.#at += 8;
    }
    const time = this.#time;
    this.#time += this.#delta;
    if (this.#left > 0) this.#left--;
    return time;
  }
}

/** Presentation minus decoding time in track units from `ctts` (8.6.1.3; both versions read as signed). */
export class Shifts {
  readonly #view: DataView;
  readonly #end: number;
  #at: number;
  #left = 0;
  #shift = 0;

  /** Reads the shifts of `stbl`; null when it has none. */
  static of(stbl: Box): Shifts | null {
    const box = child(stbl, "ctts");
    return box === null ? null : new Shifts(box);
  }

  private constructor(box: Box) {
    const list = entriesOf(box, 4, 8);
    this.#view = box.view;
    this.#at = list.at;
    this.#end = list.at + list.count * 8;
  }

  /** Shift of the next access unit; 0 if the box is too short. */
  next(): number {
    while (this.#left === 0) {
      if (this.#at >= this.#end) return 0;
      this.#left = this.#view.getUint32(this.#at);
      this.#shift = this.#view.getInt32(this.#at + 4);
      this.#at += 8;
    }
    this.#left--;
    return this.#shift;
  }
}

/** The least shift of the first `count` access units, 0 or below. */
export function leastShift(stbl: Box, count: number): number {
  const box = child(stbl, "ctts");
  if (box === null) return 0;
  const list = entriesOf(box, 4, 8);
  let least = 0;
  for (let i = 0, sample = 0; i < list.count && sample < count; i++) {
    const samples = box.view.getUint32(list.at + i * 8);
    if (samples > 0) least = Math.min(least, box.view.getInt32(list.at + i * 8 + 4));
    sample += samples;
  }
  return least;
}
