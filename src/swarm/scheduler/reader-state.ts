/**
 * One reader's wishes as piece ranges, and its deadline clock.
 *
 * Physically a byte is due when playback at the media bitrate gets there from the reader's position. With several
 * readers, that alone would let a reader that copies at full speed (always at the edge of what has arrived) starve one
 * that plays. So they compete by a virtual clock that starts at each seek and runs at the bitrate: readers ahead of
 * their clock wait for those behind theirs.
 */
import type { Room } from "./peer-state.ts";
import type { PieceBook } from "./pieces.ts";
import type { Tuning } from "./tuning.ts";
import type { ReaderDemand } from "./types.ts";

/** The scheduler's view of one reader. */
export class ReaderState {
  readonly id: number;
  position = 0;
  end = 0;
  waitingEnd = 0;
  bytesPerSecond: number;
  /** The piece that holds the position. */
  first = 0;
  /** Exclusive ends, in pieces, of the critical span and of the window. */
  criticalEnd = 0;
  windowEnd = 0;
  /** No piece below this (from `first` on) has a free block. */
  cursor = 0;
  #waitingSinceMs: number | null = null;
  #yieldMs = 0;
  #anchorMs = 0;
  #anchorPosition = -1;
  readonly #book: PieceBook;
  readonly #tuning: Tuning;

  constructor(id: number, book: PieceBook, tuning: Tuning) {
    this.id = id;
    this.#book = book;
    this.#tuning = tuning;
    this.bytesPerSecond = tuning.unknownBitrateBytesPerSecond;
  }

  /** Since when the byte at the position has been awaited; null when it has arrived or nobody waits. */
  get waitingSinceMs(): number | null {
    return this.#waitingSinceMs;
  }

  /** Whether the byte at the position is awaited at `nowMs`. */
  noteWaiting(isWaiting: boolean, nowMs: number): void {
    this.#waitingSinceMs = isWaiting ? this.#waitingSinceMs ?? nowMs : null;
  }

  /** Takes new demand; returns whether the position jumped (a seek) rather than moved on. */
  update(demand: ReaderDemand, nowMs: number): boolean {
    const book = this.#book;
    const tuning = this.#tuning;
    const clamp = (value: number): number => Math.min(Math.max(value, 0), book.totalBytes);
    const before = this.position;
    const oldFirst = this.first;
    const oldWindowEnd = this.windowEnd;
    const fresh = this.#anchorPosition < 0;
    this.#yieldMs = demand.yieldMs ?? 0;
    this.position = clamp(demand.position);
    this.end = Math.max(this.position, clamp(demand.end));
    this.waitingEnd = Math.min(Math.max(clamp(demand.waitingEnd), this.position), Math.max(this.end, this.position));
    const known = demand.bytesPerSecond !== null && demand.bytesPerSecond > 0;
    this.bytesPerSecond = known ? demand.bytesPerSecond! : tuning.unknownBitrateBytesPerSecond;
    let ahead = demand.readAheadBytes;
    if (ahead === null) {
      const byTime = known ? this.bytesPerSecond * (tuning.readAheadMs / 1000) : 0;
      ahead = Math.min(Math.max(byTime, tuning.readAheadMinBytes), tuning.readAheadMaxBytes);
    }
    const critical = Math.min(ahead, Math.max(tuning.criticalBytes, this.bytesPerSecond * (tuning.criticalMs / 1000)));
    const ends = (bytes: number): number =>
      Math.ceil(Math.max(Math.min(this.position + bytes, this.end), this.waitingEnd) / book.pieceBytes);
    this.first = Math.floor(this.position / book.pieceBytes);
    // A waiting read may be longer than the window (one read of a big file). Only one window of it counts at a time.
    const waited = Math.min(this.waitingEnd - this.position, tuning.readAheadMaxBytes);
    this.waitingEnd = this.position + waited;
    this.criticalEnd = ends(critical);
    this.windowEnd = Math.max(ends(ahead), this.criticalEnd);
    // Deep pipes of bytes that yield would be in the way of what comes next.
    if (this.#yieldMs >= 1) this.criticalEnd = this.first;
    if (this.waitingEnd === this.position && critical === 0) this.criticalEnd = this.windowEnd = this.first;
    const jumped = fresh || this.position < before || this.first > oldWindowEnd ||
      this.position > before + Math.max(book.pieceBytes, tuning.criticalBytes) * 4;
    if (this.first < oldFirst || this.cursor < this.first || jumped) this.cursor = this.first;
    if (jumped) {
      this.#anchorMs = nowMs;
      this.#anchorPosition = this.position;
    } else {
      // A reader that fell behind restarts its clock; it must not catch up at the others' expense.
      const leadMs = this.#rawLeadMs(nowMs);
      if (leadMs < 0 || leadMs > tuning.leadMaxMs) {
        this.#anchorPosition = this.position;
        this.#anchorMs = nowMs + Math.min(Math.max(leadMs, 0), tuning.leadMaxMs);
      }
    }
    return jumped;
  }

  #rawLeadMs(nowMs: number): number {
    return this.#anchorMs + ((this.position - this.#anchorPosition) * 1000) / this.bytesPerSecond - nowMs;
  }

  /** How far its reads are ahead of its clock, 0 to `leadMaxMs`. */
  leadMs(nowMs: number): number {
    return Math.min(Math.max(this.#rawLeadMs(nowMs), 0), this.#tuning.leadMaxMs);
  }

  /**
   * Playback time from the position to the byte at `offset`, ms, 0 for a byte that a read is waiting for; each plus the
   * time by which the reader yields.
   */
  dueMs(offset: number): number {
    if (offset < this.waitingEnd) return this.#yieldMs;
    return Math.max(0, ((offset - this.position) * 1000) / this.bytesPerSecond) + this.#yieldMs;
  }

  /** The end, in pieces, of what a peer with that room may be asked for. */
  endOf(room: Room): number {
    if (room === "any") return this.windowEnd;
    if (room === "critical") return this.criticalEnd;
    return this.waitingEnd > this.position && this.#yieldMs < 1 ? this.first + 1 : this.first;
  }

  covers(piece: number): boolean {
    return piece >= this.first && piece < this.windowEnd;
  }

  /** A block of the piece became free again. */
  rewind(piece: number): void {
    if (piece >= this.first && piece < this.cursor) this.cursor = piece;
  }

  /** First piece at or after the position that may have a free block. */
  advance(): number {
    while (this.cursor < this.windowEnd && !this.#book.isOpen(this.cursor)) this.cursor++;
    return this.cursor;
  }
}
