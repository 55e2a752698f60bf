/** Gives the pieces of a broadcast out in order, and decides when to wait no longer for one that is missing. */
import { FLAG_DISCONTINUITY, FLAG_END, FLAG_RANDOM_ACCESS, type PieceHeader } from "./header.ts";
import { isComplete, type PieceEntry, type PieceWindow } from "./piece-window.ts";
import { POLICY } from "./policy.ts";

/** What a feed gives out. */
export interface FeedPiece {
  readonly header: PieceHeader;
  /** Blocks of the piece in order; shared: don't change them. */
  readonly blocks: readonly Uint8Array[];
  /** What was there before it is missing, or the broadcaster says so: mark it for the decoder. */
  readonly discontinuity: boolean;
}

/**
 * One reader's place in the stream. It begins when a second of contiguous media is there from a random access point on.
 * From then a clock runs at the speed of capture: a piece that is not there when its time comes is a gap, and everything
 * up to the next complete random access point is skipped.
 */
export class LiveFeed {
  private readonly window: PieceWindow;
  private nextSeq: number | null = null;
  private epoch = -1;
  /** Capture time minus monotonic time. */
  private offsetMs = 0;
  /** The next piece was missing when it was due. */
  private gap = false;
  private gapBefore = false;
  private lastTimestampMs = 0;
  /** Pieces given out and skipped so far. */
  deliveredPieces = 0;
  skippedPieces = 0;
  /** The last piece said that the broadcast is over. */
  ended = false;

  /** Begins at the first random access point of `window` from which playing can start. */
  constructor(window: PieceWindow) {
    this.window = window;
  }

  get started(): boolean {
    return this.nextSeq !== null;
  }

  /** Sequence number given out next; null before the start. */
  get position(): number | null {
    return this.nextSeq;
  }

  /** How far playing is behind the capture time `edgeMs`, ms; null before the start. */
  lagMs(edgeMs: number, nowMs: number): number | null {
    return this.nextSeq === null ? null : edgeMs - (nowMs + this.offsetMs);
  }

  /** Monotonic ms at which `header` is due; only after the start. */
  dueMs(header: PieceHeader): number {
    return header.timestampMs - this.offsetMs;
  }

  /** Pieces that can be given out now, in order. */
  take(nowMs: number): FeedPiece[] {
    const out: FeedPiece[] = [];
    if (this.epoch !== -1 && this.window.epoch !== this.epoch) this.restart();
    if (this.nextSeq === null && !this.start(nowMs)) return out;
    while (!this.ended) {
      if (this.nextSeq! < this.window.base) this.skipTo(this.window.base);
      const entry = this.window.get(this.nextSeq!);
      if (!this.gap && isComplete(entry)) this.give(entry, out);
      else if (!this.skipGap(entry, nowMs)) break;
    }
    return out;
  }

  /** Begins at the newest complete random access point that is far enough behind the edge to last. */
  private start(nowMs: number): boolean {
    const newest = this.window.newest;
    if (newest === null) return false;
    let run = newest.seq;
    for (let seq = newest.seq; seq >= this.window.base; seq--) {
      const entry = this.window.get(seq);
      if (!isComplete(entry)) {
        run = seq - 1;
        continue;
      }
      if ((entry.header.flags & FLAG_RANDOM_ACCESS) === 0) continue;
      const last = this.window.get(run)!.header!;
      const ended = (last.flags & FLAG_END) !== 0;
      if (!ended && last.timestampMs - entry.header.timestampMs < POLICY.startBufferMs) continue;
      this.nextSeq = seq;
      this.epoch = newest.epoch;
      this.offsetMs = entry.header.timestampMs - nowMs;
      this.lastTimestampMs = entry.header.timestampMs;
      return true;
    }
    return false;
  }

  private give(entry: PieceEntry & { header: PieceHeader }, out: FeedPiece[]): void {
    const discontinuity = this.gapBefore || (entry.header.flags & FLAG_DISCONTINUITY) !== 0;
    this.gapBefore = false;
    out.push({ header: entry.header, blocks: entry.blocks as Uint8Array[], discontinuity });
    this.deliveredPieces++;
    this.lastTimestampMs = entry.header.timestampMs;
    this.nextSeq = entry.seq + 1;
    if ((entry.header.flags & FLAG_END) !== 0) this.ended = true;
  }

  /** Skips when the missing piece is due and there is a place to go on; answers whether it did. */
  private skipGap(entry: PieceEntry | undefined, nowMs: number): boolean {
    const newest = this.window.newest;
    if (newest === null || newest.seq < this.nextSeq!) return false;
    // Once due it is lost for this reader, whose player has run dry, even when it comes while another start is awaited.
    this.gap ||= nowMs >= (entry?.header?.timestampMs ?? this.lastTimestampMs) - this.offsetMs;
    for (let seq = this.nextSeq! + 1; this.gap && seq <= newest.seq; seq++) {
      const next = this.window.get(seq);
      if (!isComplete(next) || (next.header.flags & FLAG_RANDOM_ACCESS) === 0) continue;
      this.skipTo(seq);
      return true;
    }
    return false;
  }

  private skipTo(seq: number): void {
    this.skippedPieces += seq - this.nextSeq!;
    this.nextSeq = seq;
    this.gap = false;
    this.gapBefore = true;
  }

  /** A new epoch: another numbering, joined like the first. */
  private restart(): void {
    this.nextSeq = null;
    this.epoch = -1;
    this.gap = false;
    this.gapBefore = true;
  }
}
