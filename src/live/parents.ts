/** Chooses from whom each substream is pushed to us, and looks for another where that stalls. */
import { blockCount } from "./header.ts";
import type { LivePeer } from "./live-peer.ts";
import { UnsubscribeReason } from "./messages.ts";
import type { PieceWindow } from "./piece-window.ts";
import { POLICY } from "./policy.ts";

/** Substream of a block: consecutive blocks go to different trees. */
export function substreamOf(seq: number, block: number, blocksPerPiece: number, substreams: number): number {
  return (seq * blocksPerPiece + block) % substreams;
}

/** What the choice depends on. */
export interface ParentsOptions {
  readonly window: PieceWindow;
  readonly substreams: number;
  readonly blocksPerPiece: number;
  readonly random: () => number;
  readonly peers: () => Iterable<LivePeer>;
  /** Bitrate of the stream, bytes a second. */
  readonly bytesPerS: () => number;
  /** Own uplink below the bitrate: leave the source to those who can pass more on. */
  readonly isWeak: () => boolean;
}

/** A peer further behind the newest neighbour than this is no parent, pieces. */
const MAX_LAG_PIECES = 12;

/** Our parents, one a substream. */
export class Parents {
  private readonly options: ParentsOptions;
  readonly parents: (LivePeer | null)[];
  private readonly sinceMs: Float64Array;
  /** First piece that the parent was asked for. */
  private readonly fromSeq: Float64Array;

  constructor(options: ParentsOptions) {
    this.options = options;
    this.parents = new Array<LivePeer | null>(options.substreams).fill(null);
    this.sinceMs = new Float64Array(options.substreams);
    this.fromSeq = new Float64Array(options.substreams);
  }

  /** Replaces parents that lag and finds some for substreams without. Once a tick, when the edge is known.
   * `firstSeq`: older pieces are not wanted from parents. */
  tick(nowMs: number, firstSeq: number): void {
    this.dropLaggards(nowMs);
    // What is older is pulled: part of it is on its way already.
    const from = Math.max(firstSeq, this.options.window.newest?.seq ?? 0);
    const wanted = new Map<LivePeer, number>();
    this.parents.forEach((parent, substream) => {
      if (parent !== null) return;
      const found = this.choose(substream, nowMs);
      if (found === null) return;
      this.parents[substream] = found;
      this.sinceMs[substream] = nowMs;
      this.fromSeq[substream] = from;
      found.parentMask |= 1 << substream;
      wanted.set(found, (wanted.get(found) ?? 0) | (1 << substream));
    });
    for (const [peer, mask] of wanted) peer.send({ type: "subscribe", mask, from });
  }

  /** `peer` pushes us these no longer, or refused to. */
  lost(peer: LivePeer, mask: number, nowMs: number, refused: boolean): void {
    for (let substream = 0; substream < this.parents.length; substream++) {
      if ((mask & (1 << substream)) === 0) continue;
      if (refused) peer.refusedUntilMs[substream] = nowMs + POLICY.refusedMs * (0.5 + this.options.random());
      if (this.parents[substream] === peer) this.release(substream);
    }
  }

  private release(substream: number): void {
    const parent = this.parents[substream]!;
    if (parent !== null) parent.parentMask &= ~(1 << substream);
    this.parents[substream] = null;
  }

  private dropLaggards(nowMs: number): void {
    const { window, blocksPerPiece, substreams } = this.options;
    const newest = window.newest;
    if (newest === null) return;
    let late = 0;
    for (let seq = Math.max(window.solid, newest.seq - 32); seq <= newest.seq; seq++) {
      const entry = window.get(seq);
      if (entry === undefined || entry.seenMs === null || nowMs - entry.seenMs < POLICY.parentLagMs) continue;
      const count = entry.header === null ? 1 : blockCount(entry.header.lengthBytes);
      for (let block = 0; block < count; block++) {
        if (entry.blocks[block] != null) continue;
        const substream = substreamOf(seq, block, blocksPerPiece, substreams);
        if (seq >= this.fromSeq[substream]!) late |= 1 << substream;
      }
    }
    for (let substream = 0; late !== 0 && substream < this.parents.length; substream++) {
      const parent = this.parents[substream];
      const since = nowMs - this.sinceMs[substream]!;
      if (parent == null || (late & (1 << substream)) === 0 || since < POLICY.parentLagMs) continue;
      parent.refusedUntilMs[substream] = nowMs + 4 * POLICY.refusedMs;
      parent.send({ type: "unsubscribe", mask: 1 << substream, reason: UnsubscribeReason.moved });
      this.release(substream);
    }
  }

  private choose(substream: number, nowMs: number): LivePeer | null {
    const bit = 1 << substream;
    let best: LivePeer | null = null;
    let bestCost = Infinity;
    for (const peer of this.options.peers()) {
      if (peer.closed || !this.isUsable(peer) || peer.isSnubbed(nowMs) || (peer.childMask & bit) !== 0) continue;
      if (nowMs < peer.refusedUntilMs[substream]! || peer.lagPieces > MAX_LAG_PIECES) continue;
      const cost = this.cost(peer, nowMs);
      if (cost < bestCost) [best, bestCost] = [peer, cost];
    }
    return best;
  }

  /** It tells of this epoch's pieces, ours among them. */
  private isUsable(peer: LivePeer): boolean {
    return peer.window?.epoch === this.options.window.epoch && peer.newestSeq >= this.options.window.base;
  }

  /** Lower is better, in pieces of delay. */
  private cost(peer: LivePeer, nowMs: number): number {
    let cost = peer.lagPieces + (peer.rttMs ?? 100) / 250 + 0.5 * bitCount(peer.parentMask) + this.options.random();
    if (peer.info.role === "source") cost += this.options.isWeak() ? 8 : -4;
    // Those who pass on most belong near the source: that keeps the trees shallow.
    if (peer.info.upBytesPerS !== null) cost -= Math.min(3, peer.info.upBytesPerS / this.options.bytesPerS());
    if (nowMs - peer.lastBlockMs < POLICY.newcomerMs) cost -= 0.5;
    return cost;
  }
}

/** Bits set in a byte. */
export function bitCount(mask: number): number {
  let count = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) count++;
  return count;
}
