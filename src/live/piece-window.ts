/** The pieces of a broadcast that a peer holds or looks for: from the oldest kept to the newest known. */
import { blockCount, FLAG_RANDOM_ACCESS, type PieceHeader } from "./header.ts";
import { MAX_WINDOW_PIECES, type WindowMessage } from "./messages.ts";

/** One piece. */
export interface PieceEntry {
  readonly seq: number;
  /** Verified; null while only a neighbour's WINDOW tells of the piece. */
  header: PieceHeader | null;
  /** Verified blocks. */
  blocks: (Uint8Array | null)[];
  missing: number;
  /** Monotonic ms since when a neighbour is known to have the whole piece; null before. */
  seenMs: number | null;
}

/** True when all of the piece is there. */
export function isComplete(entry: PieceEntry | undefined): entry is PieceEntry & { header: PieceHeader } {
  return entry !== undefined && entry.header !== null && entry.missing === 0;
}

/** A sliding window of pieces. Holds at most `windowMs` of stream and `MAX_WINDOW_PIECES` pieces. */
export class PieceWindow {
  private readonly windowMs: number;
  private readonly entries = new Map<number, PieceEntry>();
  /** Oldest sequence number kept. */
  base = 0;
  /** First incomplete piece from `base` on. */
  solid = 0;
  /** Newest verified header; null before the first. */
  newest: PieceHeader | null = null;
  /** Grows whenever a piece is completed or dropped. */
  version = 0;

  constructor(windowMs: number) {
    this.windowMs = windowMs;
  }

  get(seq: number): PieceEntry | undefined {
    return this.entries.get(seq);
  }

  /** The epoch; -1 before the first header. */
  get epoch(): number {
    return this.newest?.epoch ?? -1;
  }

  /** Starts anew at `seq`. */
  reset(seq: number): void {
    this.entries.clear();
    this.base = this.solid = seq;
    this.newest = null;
    this.version++;
  }

  /** The entry of `seq`, made when absent; null when it is older than the window. */
  want(seq: number): PieceEntry | null {
    if (seq < this.base) return null;
    let entry = this.entries.get(seq);
    if (entry === undefined) {
      entry = { seq, header: null, blocks: [], missing: 0, seenMs: null };
      this.entries.set(seq, entry);
    }
    return entry;
  }

  /** Takes a verified header; null when it is older than the window. An earlier one of the same piece stays. */
  addHeader(header: PieceHeader): PieceEntry | null {
    const entry = this.want(header.seq);
    if (entry === null) return null;
    if (entry.header !== null) return entry;
    entry.header = header;
    entry.missing = blockCount(header.lengthBytes);
    entry.blocks = new Array<Uint8Array | null>(entry.missing).fill(null);
    if (this.newest === null || header.seq > this.newest.seq) {
      this.newest = header;
      this.trim();
    }
    if (entry.missing === 0) this.completed();
    return entry;
  }

  /** Takes a verified block; true when it completes its piece. */
  addBlock(entry: PieceEntry, block: number, data: Uint8Array): boolean {
    if (entry.blocks[block] !== null) return false;
    entry.blocks[block] = data;
    if (--entry.missing > 0) return false;
    this.completed();
    return true;
  }

  /** What a WINDOW says of it. */
  message(): WindowMessage {
    const last = this.newest?.seq ?? this.solid - 1;
    const bits = Math.max(0, Math.min(MAX_WINDOW_PIECES, last - this.solid + 1));
    let bitmap = new Uint8Array((bits + 7) >> 3);
    for (let i = 0; i < bits; i++) {
      if (isComplete(this.entries.get(this.solid + i))) bitmap[i >> 3] = bitmap[i >> 3]! | (0x80 >> (i & 7));
    }
    let end = bitmap.length;
    while (end > 0 && bitmap[end - 1] === 0) end--;
    bitmap = bitmap.subarray(0, end);
    return { type: "window", epoch: Math.max(0, this.epoch), base: this.base, solid: this.solid, bitmap };
  }

  /** The newest complete random access piece at least `behindMs` older than the newest piece; null without one. */
  accessPoint(behindMs: number): PieceHeader | null {
    if (this.newest === null) return null;
    for (let seq = this.newest.seq; seq >= this.base; seq--) {
      const entry = this.entries.get(seq);
      if (!isComplete(entry) || (entry.header.flags & FLAG_RANDOM_ACCESS) === 0) continue;
      if (entry.header.timestampMs <= this.newest.timestampMs - behindMs) return entry.header;
    }
    return null;
  }

  /** The newest random access header at least `behindMs` older than the newest piece, complete or not. */
  accessHeader(behindMs: number): PieceHeader | null {
    if (this.newest === null) return null;
    for (let seq = this.newest.seq; seq >= this.base; seq--) {
      const header = this.entries.get(seq)?.header;
      if (header == null || (header.flags & FLAG_RANDOM_ACCESS) === 0) continue;
      if (header.timestampMs <= this.newest.timestampMs - behindMs) return header;
    }
    return null;
  }

  private completed(): void {
    while (isComplete(this.entries.get(this.solid))) this.solid++;
    this.version++;
  }

  private trim(): void {
    const newest = this.newest!;
    const oldestMs = newest.timestampMs - this.windowMs;
    for (; this.base < newest.seq; this.base++) {
      const entry = this.entries.get(this.base);
      const tooOld = entry !== undefined && entry.header !== null && entry.header.timestampMs < oldestMs;
      // A piece that nobody told us of has no time: it goes with the first known one behind it.
      const unknown = entry?.header == null && this.isOldAfter(this.base, oldestMs);
      if (!tooOld && !unknown && newest.seq - this.base < MAX_WINDOW_PIECES) break;
      this.entries.delete(this.base);
    }
    if (this.solid < this.base) {
      this.solid = this.base;
      while (isComplete(this.entries.get(this.solid))) this.solid++;
    }
  }

  private isOldAfter(seq: number, oldestMs: number): boolean {
    for (let next = seq + 1; next <= this.newest!.seq; next++) {
      const header = this.entries.get(next)?.header;
      if (header != null) return header.timestampMs < oldestMs;
    }
    return false;
  }
}
