/** The boxes of a sample table, read from front to back: none is expanded in memory, whatever counts it declares. */
import { type Box, child, entriesOf, uint64 } from "../../../bytes/boxes.ts";

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

/** Walks the chunks, with their positions and sample counts (14496-12, 8.7.4 and 8.7.5). */
class ChunkCursor implements Chunk {
  /** Of the chunk where `next` has arrived. */
  offset = 0;
  /** Likewise. */
  samples = 0;
  readonly #map: DataView | null = null;
  readonly #chunks: DataView | null = null;
  readonly #isLarge: boolean = false;
  readonly #chunksAt: number = 0;
  readonly #chunkCount: number = 0;
  readonly #runsAt: number = 0;
  readonly #runCount: number = 0;
  #run = 0;
  /** The next chunk of the run and the first after it, counted from 1. */
  #chunk = 1;
  #runEnd = 1;

  constructor(stbl: Box) {
    const map = child(stbl, "stsc");
    const large = child(stbl, "co64");
    const chunks = large ?? child(stbl, "stco");
    if (map === null || chunks === null) return;
    this.#map = map.view;
    this.#chunks = chunks.view;
    this.#isLarge = large !== null;
    ({ at: this.#chunksAt, count: this.#chunkCount } = entriesOf(chunks, 4, this.#isLarge ? 8 : 4));
    ({ at: this.#runsAt, count: this.#runCount } = entriesOf(map, 4, 12));
  }

  /** Goes to the next chunk; false when there are no more. */
  next(): boolean {
    while (this.#chunk >= this.#runEnd || this.#chunk > this.#chunkCount) if (!this.#nextRun()) return false;
    const index = this.#chunk++ - 1;
    const chunks = this.#chunks!;
    this.offset = this.#isLarge
      ? uint64(chunks, this.#chunksAt + index * 8)
      : chunks.getUint32(this.#chunksAt + index * 4);
    return true;
  }

  #nextRun(): boolean {
    if (this.#run >= this.#runCount) return false;
    const map = this.#map!;
    const entry = this.#runsAt + this.#run++ * 12;
    const first = map.getUint32(entry);
    this.samples = map.getUint32(entry + 4);
    const next = this.#run < this.#runCount ? map.getUint32(entry + 12) : this.#chunkCount + 1;
    // Runs that go backward hold no samples, and walking their chunks again could take forever.
    const isBackward = first === 0 || next < first;
    if (isBackward) this.#run = this.#runCount;
    this.#chunk = first;
    this.#runEnd = isBackward || this.samples === 0 ? first : next;
    return true;
  }
}

/** The chunks in order. */
export function* chunksOf(stbl: Box): Generator<Chunk, undefined> {
  const cursor = new ChunkCursor(stbl);
  while (cursor.next()) yield { offset: cursor.offset, samples: cursor.samples };
}

/** Positions of the access units, one after another. */
export class ChunkWalk {
  readonly #chunks: ChunkCursor;
  #left = 0;
  #offset = 0;

  constructor(stbl: Box) {
    this.#chunks = new ChunkCursor(stbl);
  }

  /** Position of the next access unit, which has `size` bytes; null when there are no more chunks. */
  next(size: number): number | null {
    if (this.#left === 0) {
      if (!this.#chunks.next()) return null;
      this.#left = this.#chunks.samples;
      this.#offset = this.#chunks.offset;
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
