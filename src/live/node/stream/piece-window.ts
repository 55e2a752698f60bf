/** The pieces of a broadcast that a peer holds or looks for: from the oldest kept to the newest known. */
import { blockCount, FLAG_RANDOM_ACCESS, type PieceHeader } from "../../header.ts";
import { encodeLiveMessage, MAX_WINDOW_PIECES, windowHas, type WindowMessage } from "../../messages.ts";

/** One piece. */
export interface PieceEntry {
  readonly seq: number;
  /** Verified; null while only a neighbour's WINDOW reports the piece. */
  header: PieceHeader | null;
  /** Verified blocks. */
  blocks: (Uint8Array | null)[];
  missing: number;
  /**
   * Monotonic ms at which its header came: from then on its blocks are on their way. null before, and for a piece that
   * was past already.
   */
  headerMs: number | null;
  /** Monotonic ms since when a neighbour is known to have the whole piece; null before. */
  seenMs: number | null;
  /** Neighbours known to have it, counted until there are enough. */
  seenBy: number;
  /** Monotonic ms since when so many have it that we are late without it; null before. */
  commonMs: number | null;
  /** `PieceWindow.version` at which it became complete; 0 before. */
  completeSince: number;
}

/** True when all of the piece is there. */
export function isComplete(entry: PieceEntry | undefined): entry is PieceEntry & { header: PieceHeader } {
  return entry !== undefined && entry.header !== null && entry.missing === 0;
}

/** True for a block that is there. */
export function isStored(data: Uint8Array | null | undefined): data is Uint8Array {
  return data !== null && data !== undefined;
}

/**
 * Most bytes of a window: a minute at 7 Mb/s, and 20 s at 20 Mb/s. Viewers are some seconds behind the source, and a source may
 * send any amount in the time of a window.
 */
export const MAX_WINDOW_BYTES = 48 * 1024 * 1024;
/** Places of the ring at first; it doubles as the window grows. A power of two. */
const FIRST_PLACES = 64;
/** Most places: a full window and what others' WINDOWs may report beyond it. A power of two. */
const MAX_PLACES = 4096;
/** No bit of a WINDOW is set. */
const NO_BITS = new Uint8Array();

/**
 * A sliding window of pieces. Holds at most `windowMs` of stream, `MAX_WINDOW_PIECES` pieces and `MAX_WINDOW_BYTES`. Every
 * block and every WINDOW looks pieces up, so they lie in a ring: piece `seq` at `seq` modulo its size.
 */
export class PieceWindow {
  readonly #windowMs: number;
  #places: (PieceEntry | undefined)[] = new Array<PieceEntry | undefined>(FIRST_PLACES).fill(undefined);
  #encoded: Uint8Array | null = null;
  /** Of the pieces whose headers are known. */
  #bytes = 0;
  /** Oldest sequence number kept. */
  base = 0;
  /** First incomplete piece from `base` on. */
  solid = 0;
  /** Newest verified header; null before the first. */
  newest: PieceHeader | null = null;
  /** Grows whenever a piece is completed or dropped. */
  version = 0;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  get(seq: number): PieceEntry | undefined {
    const entry = this.#places[seq & (this.#places.length - 1)];
    return entry !== undefined && entry.seq === seq ? entry : undefined;
  }

  /** The epoch; -1 before the first header. */
  get epoch(): number {
    return this.newest?.epoch ?? -1;
  }

  /** Starts again at `seq`. */
  reset(seq: number): void {
    this.#places.fill(undefined);
    this.base = this.solid = seq;
    this.newest = null;
    this.#bytes = 0;
    this.#changed();
  }

  /** The entry of `seq`, made when absent; null when it is older than the window or thousands of pieces ahead of it. */
  want(seq: number): PieceEntry | null {
    if (seq < this.base || seq - this.base >= MAX_PLACES) return null;
    let entry = this.get(seq);
    if (entry === undefined) {
      while (seq - this.base >= this.#places.length) this.#grow();
      entry = {
        seq,
        header: null,
        blocks: [],
        missing: 0,
        headerMs: null,
        seenMs: null,
        seenBy: 0,
        commonMs: null,
        completeSince: 0,
      };
      this.#places[seq & (this.#places.length - 1)] = entry;
    }
    return entry;
  }

  /** Takes a verified header; null when it is older than the window. An earlier one of the same piece stays. */
  addHeader(header: PieceHeader): PieceEntry | null {
    const oldest = header.seq - MAX_WINDOW_PIECES + 1;
    if (this.base < oldest) this.#dropUntil(oldest);
    const entry = this.want(header.seq);
    if (entry === null) return null;
    if (entry.header !== null) return entry;
    entry.header = header;
    this.#bytes += header.lengthBytes;
    entry.missing = blockCount(header.lengthBytes);
    entry.blocks = new Array<Uint8Array | null>(entry.missing).fill(null);
    if (this.newest === null || header.seq > this.newest.seq) {
      this.newest = header;
      this.#trim();
    }
    if (entry.missing === 0) this.#completed(entry);
    return entry;
  }

  /** Takes a verified block; true when it completes its piece. */
  addBlock(entry: PieceEntry, block: number, data: Uint8Array): boolean {
    if (entry.blocks[block] !== null) return false;
    entry.blocks[block] = data;
    if (--entry.missing > 0) return false;
    this.#completed(entry);
    return true;
  }

  /** The WINDOW that reports this window's pieces. */
  message(): WindowMessage {
    const last = this.newest?.seq ?? this.solid - 1;
    let bits = Math.max(0, Math.min(MAX_WINDOW_PIECES, last - this.solid + 1));
    while (bits > 0 && !isComplete(this.get(this.solid + bits - 1))) bits--;
    const bitmap = bits === 0 ? NO_BITS : new Uint8Array((bits + 7) >> 3);
    for (let i = 0; i < bits; i++) {
      if (isComplete(this.get(this.solid + i))) bitmap[i >> 3] = bitmap[i >> 3]! | (0x80 >> (i & 7));
    }
    return { type: "window", epoch: Math.max(0, this.epoch), base: this.base, solid: this.solid, bitmap };
  }

  /** The WINDOW as it is sent, the same bytes to every neighbour until the next change. */
  encodedMessage(): Uint8Array {
    return this.#encoded ??= encodeLiveMessage(this.message());
  }

  /** The header of the newest random access piece that is complete; null without one. */
  accessPoint(): PieceHeader | null {
    return this.#newestAccess((entry) => isComplete(entry));
  }

  /** The newest header of a random access piece up to `lastSeq`, complete or not; null without one. */
  accessHeader(lastSeq = Infinity): PieceHeader | null {
    return this.#newestAccess(({ seq }) => seq <= lastSeq);
  }

  #newestAccess(fits: (entry: PieceEntry) => boolean): PieceHeader | null {
    for (let seq = this.newest?.seq ?? -1; seq >= this.base; seq--) {
      const entry = this.get(seq);
      if (entry?.header == null || (entry.header.flags & FLAG_RANDOM_ACCESS) === 0) continue;
      if (fits(entry)) return entry.header;
    }
    return null;
  }

  /**
   * True when a piece that was completed after `version` is missing in `told`. Pieces before the window of its sender
   * do not count.
   */
  hasNewFor(told: WindowMessage, version: number): boolean {
    if (told.epoch !== this.epoch) return true;
    for (let seq = this.newest?.seq ?? -1; seq >= Math.max(this.base, told.solid); seq--) {
      const entry = this.get(seq);
      if (isComplete(entry) && entry.completeSince > version && !windowHas(told, seq)) return true;
    }
    return false;
  }

  #completed(entry: PieceEntry): void {
    while (isComplete(this.get(this.solid))) this.solid++;
    this.#changed();
    entry.completeSince = this.version;
  }

  #changed(): void {
    this.version++;
    this.#encoded = null;
  }

  #grow(): void {
    const old = this.#places;
    this.#places = new Array<PieceEntry | undefined>(2 * old.length).fill(undefined);
    for (const entry of old) if (entry !== undefined) this.#places[entry.seq & (this.#places.length - 1)] = entry;
  }

  /** Drops pieces below `seq`. */
  #dropUntil(seq: number): void {
    const end = Math.min(seq, this.base + this.#places.length);
    for (let old = this.base; old < end; old++) {
      const entry = this.get(old);
      if (entry === undefined) continue;
      this.#places[old & (this.#places.length - 1)] = undefined;
      this.#bytes -= entry.header?.lengthBytes ?? 0;
    }
    this.base = seq;
    this.#encoded = null;
    if (this.solid >= seq) return;
    this.solid = seq;
    while (isComplete(this.get(this.solid))) this.solid++;
  }

  /** Drops pieces older than the window. A piece whose time is unknown is dropped together with the next one whose time is known. */
  #trim(): void {
    const newest = this.newest!;
    const oldestMs = newest.timestampMs - this.#windowMs;
    let keep = this.base;
    let bytes = this.#bytes;
    for (let seq = this.base; seq < newest.seq; seq++) {
      const header = this.get(seq)?.header;
      if (header == null) continue;
      if (header.timestampMs >= oldestMs && bytes <= MAX_WINDOW_BYTES) break;
      bytes -= header.lengthBytes;
      keep = seq + 1;
    }
    if (keep > this.base) this.#dropUntil(keep);
  }
}
