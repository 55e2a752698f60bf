/** Gives out the pieces of a broadcast in order, and decides when to stop waiting for one that is missing. */
import { FLAG_DISCONTINUITY, FLAG_END, FLAG_RANDOM_ACCESS, type PieceHeader } from "../../header.ts";
import { isComplete, type PieceEntry, type PieceWindow } from "./piece-window.ts";
import { POLICY } from "../policy.ts";

/** What a feed gives out. */
export interface FeedPiece {
  readonly header: PieceHeader;
  /** Blocks of the piece in order; shared: don't change them. */
  readonly blocks: readonly Uint8Array[];
  /** A gap lies before it, or the broadcaster says so: mark it for the decoder. */
  readonly discontinuity: boolean;
}

/** An edge that leaps by more than this, ms, shows that our clock stood still: the process was stopped or suspended. */
const STANDSTILL_MS = 5_000;

/** A neighbour that may have pieces. */
export interface PieceHolder {
  /** True when it reports that it has all of piece `seq`. */
  has(seq: number): boolean;
}

/**
 * One reader's place in the stream. It begins when three quarters of a second of contiguous media have arrived from a random
 * access point on. From then on a clock runs at the speed of capture.
 * When a piece is missing at its due time, the player has run dry and the clock stands still until the piece comes. Once it
 * has stood still for as long as skipping to the next complete random access point would lose, or waiting would leave the
 * player too far behind the edge, everything before that point is skipped.
 * Pieces that nobody can deliver any more are skipped without waiting: the broadcaster was away and has lost them.
 */
export class LiveFeed {
  readonly #window: PieceWindow;
  readonly #neighbours: Iterable<PieceHolder>;
  #nextSeq: number | null = null;
  /** Random access point at which it hopes to begin; null before one is known. */
  #hope: PieceHeader | null = null;
  /** The edge when it began to hope for that. */
  #hopeEdgeSeq = -1;
  #epoch = -1;
  /** Capture time minus monotonic time. */
  #offsetMs = 0;
  /** Capture time minus monotonic time of the piece that came soonest: where the edge is. */
  #edgeOffsetMs = -Infinity;
  /** The process stood still, and nothing was skipped since. */
  #stoodStill = false;
  /** Monotonic ms at which the piece given out last is due. */
  #shownMs = 0;
  /** The next piece was missing when it was due: the player has nothing to show. */
  #dry = false;
  /** The missing piece is also lost: waiting for it would put the player too far behind the edge. */
  #gap = false;
  #gapBefore = false;
  /** Capture time of the piece given out last. */
  #givenMs = 0;
  /** The piece after a gap with which its broadcaster returned, and monotonic ms since when it is known. */
  #comeback: { readonly seq: number; readonly sinceMs: number } | null = null;
  /** Pieces given out and skipped so far. */
  deliveredPieces = 0;
  skippedPieces = 0;
  /** For how long the player stood still because a piece came late, ms, without the length of skipped media. */
  stalledMs = 0;
  /** The last piece said that the broadcast is over. */
  ended = false;

  /**
   * Begins at the first random access point of `window` from which playing can start. `neighbours`: the current ones,
   * which may bring what is missing.
   */
  constructor(window: PieceWindow, neighbours: Iterable<PieceHolder>) {
    this.#window = window;
    this.#neighbours = neighbours;
  }

  get started(): boolean {
    return this.#nextSeq !== null;
  }

  /** Sequence number given out next; null before the start. */
  get position(): number | null {
    return this.#nextSeq;
  }

  /**
   * The oldest piece that it waits for. Before the start this is a place near the edge, kept until it falls too far
   * behind. A place that moved on with the edge would leave too little time for pulls, which come a second after
   * pushes.
   */
  get oldestWanted(): number {
    if (this.#nextSeq !== null) return this.#nextSeq;
    const window = this.#window;
    const hope = this.#hope;
    const edge = window.newest;
    if (edge === null) return window.base;
    const isKept = hope !== null && hope.epoch === edge.epoch && hope.seq >= window.base &&
      edge.timestampMs - hope.timestampMs <= POLICY.startHoldMs;
    if (isKept && isComplete(window.get(hope.seq))) return hope.seq;
    // Neighbours that come a moment later may know of a newer point that was there already: less has to be fetched.
    if (!isKept) this.#hopeEdgeSeq = edge.seq;
    this.#hope = window.accessHeader(this.#hopeEdgeSeq);
    return this.#hope?.seq ?? window.base;
  }

  /** How far playing is behind the capture time `edgeMs`, ms; null before the start. */
  lagMs(edgeMs: number, nowMs: number): number | null {
    return this.#nextSeq === null ? null : edgeMs - (nowMs + this.#offsetMs);
  }

  /** Monotonic ms at which `header` is due; only after the start. */
  dueMs(header: PieceHeader): number {
    return header.timestampMs - this.#offsetMs;
  }

  /** Pieces that can be given out now, in order. */
  take(nowMs: number): FeedPiece[] {
    const out: FeedPiece[] = [];
    const newest = this.#window.newest;
    if (this.#epoch !== -1 && this.#window.epoch !== this.#epoch) this.#restart();
    if (this.#nextSeq === null && !this.#start(nowMs)) return out;
    if (newest !== null) this.#noteEdge(newest.timestampMs - nowMs);
    while (!this.ended) {
      if (this.#nextSeq! < this.#window.base) this.#skipTo(this.#window.base);
      const entry = this.#window.get(this.#nextSeq!);
      if (!this.#gap && isComplete(entry)) {
        if (this.#dry) this.#stall(entry.header, nowMs);
        this.#returned(entry.header, nowMs);
        this.#give(entry, out);
      } else if (!this.#skipGap(entry, nowMs)) break;
    }
    return out;
  }

  /**
   * Begins at the newest complete random access point that is far enough behind the edge to last. Points given up as
   * too far behind stay excluded even once complete: the player would remain that far behind for good.
   */
  #start(nowMs: number): boolean {
    const newest = this.#window.newest;
    if (newest === null) return false;
    const hopedSeq = this.oldestWanted;
    let run = newest.seq;
    for (let seq = newest.seq; seq >= this.#window.base; seq--) {
      const entry = this.#window.get(seq);
      if (!isComplete(entry)) {
        run = seq - 1;
        continue;
      }
      if ((entry.header.flags & FLAG_RANDOM_ACCESS) === 0) continue;
      const isGivenUp = seq < hopedSeq;
      if (isGivenUp && newest.timestampMs - entry.header.timestampMs > POLICY.mostBehindMs) break;
      // Something is missing between here and the point hoped for, and is no longer fetched.
      if (isGivenUp && run < hopedSeq - 1) break;
      const last = this.#window.get(run)!.header!;
      const ended = (last.flags & FLAG_END) !== 0;
      if (!ended && this.#endMs(last) - entry.header.timestampMs < POLICY.startBufferMs) continue;
      this.#nextSeq = seq;
      this.#epoch = newest.epoch;
      this.#offsetMs = entry.header.timestampMs - nowMs;
      return true;
    }
    return false;
  }

  /** Capture time at the end of the piece of `header`, which lasted as long as the one before it. */
  #endMs(header: PieceHeader): number {
    const before = this.#window.get(header.seq - 1)?.header;
    return 2 * header.timestampMs - (before?.timestampMs ?? header.timestampMs);
  }

  /**
   * A broadcaster whose clock was set forward while it was away stamps its pieces with times that seem hours later. The
   * player has these pieces now. If its clock were kept, it would stand still for those hours at the first piece that
   * is lost.
   */
  #returned(header: PieceHeader, nowMs: number): void {
    if ((header.flags & FLAG_DISCONTINUITY) === 0) return;
    const soonestMs = Math.max(nowMs, this.#shownMs);
    if (this.dueMs(header) - soonestMs > POLICY.mostBehindMs) this.#offsetMs = header.timestampMs - soonestMs;
  }

  #give(entry: PieceEntry & { header: PieceHeader }, out: FeedPiece[]): void {
    const discontinuity = this.#gapBefore || (entry.header.flags & FLAG_DISCONTINUITY) !== 0;
    this.#gapBefore = false;
    out.push({ header: entry.header, blocks: entry.blocks as Uint8Array[], discontinuity });
    this.deliveredPieces++;
    this.#givenMs = entry.header.timestampMs;
    this.#shownMs = this.dueMs(entry.header);
    this.#nextSeq = entry.seq + 1;
    if ((entry.header.flags & FLAG_END) !== 0) this.ended = true;
  }

  /** A player that has run dry continues from the piece of `header`; its clock is set back by that piece's delay. */
  #stall(header: PieceHeader, nowMs: number): void {
    const lateMs = nowMs - this.dueMs(header);
    this.#dry = false;
    if (lateMs <= 0) return;
    this.#offsetMs -= lateMs;
    this.stalledMs += lateMs;
  }

  /** True when waiting for a late piece leaves the player near enough to the edge. */
  #mayStall(header: PieceHeader, nowMs: number): boolean {
    return this.#edgeOffsetMs - (header.timestampMs - nowMs) <= POLICY.mostBehindMs;
  }

  /**
   * True when a random access point to continue at follows soon after the missing piece. Otherwise giving that piece up gains
   * nothing, or costs more than waiting: with points ten seconds apart the player would lose all up to the next one.
   */
  #hasAccessSoonAfter(missing: PieceHeader): boolean {
    const newestSeq = this.#window.newest?.seq ?? -1;
    for (let seq = this.#nextSeq! + 1; seq <= newestSeq; seq++) {
      const header = this.#window.get(seq)?.header;
      if (header == null || (header.flags & FLAG_RANDOM_ACCESS) === 0) continue;
      return header.timestampMs - missing.timestampMs <= POLICY.mostBehindMs;
    }
    return false;
  }

  /** The newest piece was captured at this Unix time less our monotonic one, ms. */
  #noteEdge(offsetMs: number): void {
    // The edge moved on, and our clock did not. Where a start at an older point is meant, it does not leap.
    if (this.#edgeOffsetMs !== -Infinity && offsetMs - this.#edgeOffsetMs > STANDSTILL_MS) this.#stoodStill = true;
    this.#edgeOffsetMs = Math.max(this.#edgeOffsetMs, offsetMs);
  }

  /** Skips when the missing piece is due, or lost for good, and there is a place to continue; returns whether it did. */
  #skipGap(entry: PieceEntry | undefined, nowMs: number): boolean {
    const newest = this.#window.newest;
    if (newest === null || newest.seq < this.#nextSeq!) return false;
    const header = entry?.header ?? this.#headerAfter(this.#nextSeq!);
    // What is missing was due while we stood still. Beyond a discontinuity, times may be anything.
    if (this.#stoodStill && this.#returnAfter(this.#nextSeq!, newest) === null) {
      this.#stoodStill = false;
      this.#offsetMs = Math.max(this.#offsetMs, this.#edgeOffsetMs - POLICY.mostBehindMs);
    }
    this.#dry ||= nowMs >= this.dueMs(header);
    this.#gap ||= this.#dry && !this.#mayStall(header, nowMs) && this.#hasAccessSoonAfter(header);
    const lostUntil = this.#lostUntil(newest, nowMs);
    for (let seq = this.#nextSeq! + 1; (this.#dry || lostUntil !== null) && seq <= newest.seq; seq++) {
      const next = this.#window.get(seq);
      if (isComplete(next)) {
        if ((next.header.flags & FLAG_RANDOM_ACCESS) === 0) continue;
        const lostMs = next.header.timestampMs - header.timestampMs;
        if (!this.#gap && lostUntil === null && nowMs - this.dueMs(header) < lostMs) return false;
        this.#skipTo(seq);
        return true;
      }
      if (lostUntil !== null && seq < lostUntil) continue;
      // A piece that may still come in time is not skipped for a later one; after a long silence, sooner is better.
      const start = next?.header ?? this.#headerAfter(seq);
      const isStart = next?.header == null || (start.flags & FLAG_RANDOM_ACCESS) !== 0;
      if (isStart && nowMs < this.dueMs(start) && nowMs - this.#shownMs < POLICY.gapWaitMs) {
        return false;
      }
    }
    return false;
  }

  /**
   * The piece with which the broadcaster returned, if no missing piece before it can still come; null otherwise. A
   * killed broadcaster skips numbers that it may never have used, and has lost the pieces that it had not sent. Nobody
   * can deliver either. A player that waited until the first piece after the return is due would freeze for nothing.
   */
  #lostUntil(newest: PieceHeader, nowMs: number): number | null {
    const returned = this.#returnAfter(this.#nextSeq!, newest);
    if (returned === null) return null;
    if (this.#comeback?.seq !== returned.seq) this.#comeback = { seq: returned.seq, sinceMs: nowMs };
    const lateMs = returned.timestampMs - this.#givenMs + nowMs - this.#comeback.sinceMs;
    if (lateMs < POLICY.lostAfterMs) return null;
    for (let seq = this.#nextSeq!; seq < returned.seq; seq++) {
      if (!isComplete(this.#window.get(seq)) && this.#isHeld(seq)) return null;
    }
    return returned.seq;
  }

  #isHeld(seq: number): boolean {
    for (const neighbour of this.#neighbours) if (neighbour.has(seq)) return true;
    return false;
  }

  /** The header of the first known piece after `seq` that is marked as a discontinuity. */
  #returnAfter(seq: number, newest: PieceHeader): PieceHeader | null {
    for (let next = seq + 1; next <= newest.seq; next++) {
      const header = this.#window.get(next)?.header;
      if (header != null && (header.flags & FLAG_DISCONTINUITY) !== 0) return header;
    }
    return null;
  }

  /**
   * The next known header: a piece without a header was captured before that one. The time of the last delivered piece
   * shows nothing, because the source may have been away in between.
   */
  #headerAfter(seq: number): PieceHeader {
    const newest = this.#window.newest!;
    for (let next = seq + 1; next < newest.seq; next++) {
      const header = this.#window.get(next)?.header;
      if (header != null) return header;
    }
    return newest;
  }

  #skipTo(seq: number): void {
    this.skippedPieces += seq - this.#nextSeq!;
    this.#nextSeq = seq;
    this.#gap = false;
    this.#gapBefore = true;
  }

  /** A new epoch has another numbering; it is joined like the first. */
  #restart(): void {
    this.#nextSeq = null;
    this.#hope = null;
    this.#epoch = -1;
    this.#edgeOffsetMs = -Infinity;
    this.#stoodStill = false;
    this.#dry = this.#gap = false;
    this.#gapBefore = true;
  }
}

/** The newest piece of `window` that any of `feeds` has due by `untilMs`; -1 when none is. */
export function dueUntil(feeds: Iterable<LiveFeed>, window: PieceWindow, untilMs: number): number {
  let last = -1;
  for (const feed of feeds) {
    if (feed.position === null) continue;
    for (let seq = feed.position; seq <= (window.newest?.seq ?? -1); seq++) {
      const header = window.get(seq)?.header;
      if (header == null) continue;
      if (feed.dueMs(header) > untilMs) break;
      last = Math.max(last, seq);
    }
  }
  return last;
}

/** The oldest piece that any of `feeds` waits for, since nothing older is fetched; null without a reader. */
export function oldestWanted(feeds: Iterable<LiveFeed>): number | null {
  let oldest: number | null = null;
  for (const feed of feeds) oldest = Math.min(oldest ?? Infinity, feed.oldestWanted);
  return oldest;
}
