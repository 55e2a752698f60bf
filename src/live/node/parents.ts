/** Chooses from whom each substream is pushed to us: as near to the source as we are taken, elsewhere when that stalls. */
import type { LivePeer } from "./live-peer.ts";
import { UnsubscribeReason } from "../messages.ts";
import type { PieceWindow } from "./piece-window.ts";
import { MAX_DEPTH, NEEDY, UNFED } from "./place.ts";
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
  /** Own uplink in eighths of the bitrate: what bars of others are compared with. */
  readonly upEighths: () => number;
  /** What a step from us counts. */
  readonly step: () => number;
  /** True while there are poisoners about. */
  readonly isWary: () => boolean;
  /** True when somebody depends on us for `substream`. */
  readonly hasChildren: (substream: number) => boolean;
}

/** A peer further behind the newest neighbour than this is no parent, pieces. */
const MAX_LAG_PIECES = 12;
/** Depth that is assumed of a peer that tells none. */
const UNTOLD_DEPTH = 12;

/** Our parents, one a substream. */
export class Parents {
  private readonly options: ParentsOptions;
  readonly parents: (LivePeer | null)[];
  /** Asked to take the place of the parent, which stays until the first block comes: nothing is missed in between. */
  private readonly next: (LivePeer | null)[];
  private readonly nextMs: Float64Array;
  /** Was parent until a better one began to deliver: what it still has to bring lies before that one's first piece. */
  private readonly former: (LivePeer | null)[];
  private readonly formerSeq: Float64Array;
  private readonly formerMs: Float64Array;
  /** Monotonic ms of the next look for a better parent. */
  private readonly lookMs: Float64Array;
  /** Monotonic ms at which a chance to be fed again is taken; 0 before there was one. */
  private readonly chanceMs: Float64Array;
  private readonly sinceMs: Float64Array;
  /** The parent has delivered since it was asked: what it says from then on is notice, not refusal. */
  private readonly proven: Uint8Array;
  /** Monotonic ms until which a parent that gave notice goes on; 0 without notice. */
  private readonly noticeMs: Float64Array;
  /** First piece that the parent owes us. */
  private readonly fromSeq: Float64Array;
  /** What our children were last told: who is at least as deep may be one of their branches. */
  private readonly toldDepth: Uint8Array;
  private readonly lostMs: Float64Array;

  constructor(options: ParentsOptions) {
    const { substreams } = options;
    this.options = options;
    this.parents = new Array<LivePeer | null>(substreams).fill(null);
    this.next = new Array<LivePeer | null>(substreams).fill(null);
    this.nextMs = new Float64Array(substreams);
    this.former = new Array<LivePeer | null>(substreams).fill(null);
    this.formerSeq = new Float64Array(substreams);
    this.formerMs = new Float64Array(substreams);
    this.lookMs = new Float64Array(substreams);
    this.chanceMs = new Float64Array(substreams);
    this.sinceMs = new Float64Array(substreams);
    this.proven = new Uint8Array(substreams);
    this.noticeMs = new Float64Array(substreams);
    this.fromSeq = new Float64Array(substreams);
    this.toldDepth = new Uint8Array(substreams).fill(UNFED);
    this.lostMs = new Float64Array(substreams).fill(-Infinity);
  }

  /** How deep we are on `substream`; `UNFED` when it does not reach us. */
  depth(substream: number): number {
    const parent = this.parents[substream];
    if (parent == null) return UNFED;
    const depth = depthAt(parent, substream);
    return depth > MAX_DEPTH ? UNFED : depth;
  }

  /** Replaces parents that lag, finds some for substreams without, and better ones for the rest. Once a tick, when the
   * edge is known. `firstSeq`: older pieces are not wanted from parents. */
  tick(nowMs: number, firstSeq: number): void {
    this.dropLaggards(nowMs);
    const { window, random } = this.options;
    const newest = window.newest?.seq ?? 0;
    // Of what a lost parent did not bring, the next one brings the newest; the rest is pulled.
    const from = Math.max(firstSeq, window.solid, newest - POLICY.catchUpPieces);
    const orphans = new Map<LivePeer, number>();
    const movers = new Map<LivePeer, number>();
    for (let substream = 0; substream < this.parents.length; substream++) {
      if (this.former[substream] !== null && nowMs - this.formerMs[substream]! > POLICY.handoverMs) {
        this.leave(substream);
      }
      const had = this.parents[substream]!;
      const found = had === null ? this.choose(substream, nowMs, Infinity) : this.better(had, substream, nowMs);
      if (found === null) continue;
      const parent = this.parents[substream]!;
      // A parent that gets nothing itself leaves as much to catch up with as none.
      const asked = parent === null || this.depth(substream) === UNFED ? orphans : movers;
      if (parent === null) {
        this.parents[substream] = found;
        this.sinceMs[substream] = nowMs;
        this.proven[substream] = 0;
        this.noticeMs[substream] = 0;
        // What it gives us of older pieces is a favour: it owes those from now on.
        this.fromSeq[substream] = newest + 1;
        this.lookMs[substream] = nowMs + POLICY.improveMs * (0.5 + random());
      } else {
        this.next[substream] = found;
        this.nextMs[substream] = nowMs;
      }
      found.parentMask |= 1 << substream;
      asked.set(found, (asked.get(found) ?? 0) | (1 << substream));
    }
    for (const [peer, mask] of orphans) peer.send({ type: "subscribe", mask, from });
    for (const [peer, mask] of movers) {
      peer.send({ type: "subscribe", mask, from: Math.max(newest, peer.newestSeq) + 1 });
    }
    this.remember(nowMs);
  }

  /** `peer` sent a block of piece `seq`: one that was asked to be parent is now. */
  delivered(peer: LivePeer, substream: number, seq: number, nowMs: number): void {
    if (this.parents[substream] === peer) this.proven[substream] = 1;
    if (this.former[substream] === peer && seq >= this.formerSeq[substream]!) return this.leave(substream);
    if (this.next[substream] !== peer) return;
    this.leave(substream);
    this.former[substream] = this.parents[substream]!;
    this.formerSeq[substream] = seq;
    this.formerMs[substream] = nowMs;
    this.next[substream] = null;
    this.parents[substream] = peer;
    this.proven[substream] = 1;
    this.noticeMs[substream] = 0;
    this.sinceMs[substream] = nowMs;
    this.fromSeq[substream] = seq + 1;
  }

  private leave(substream: number): void {
    const old = this.former[substream]!;
    this.former[substream] = null;
    if (old === null) return;
    old.parentMask &= ~(1 << substream);
    old.send({ type: "unsubscribe", mask: 1 << substream, reason: UnsubscribeReason.moved });
  }

  /** `peer` pushes us these no longer, or refused to. */
  lost(peer: LivePeer, mask: number, nowMs: number, refused: boolean): void {
    for (let substream = 0; substream < this.parents.length; substream++) {
      if ((mask & (1 << substream)) === 0) continue;
      if (refused) peer.refusedUntilMs[substream] = nowMs + POLICY.refusedMs * (0.5 + this.options.random());
      if (this.next[substream] === peer) {
        this.next[substream] = null;
        peer.parentMask &= ~(1 << substream);
      }
      if (this.former[substream] === peer) {
        this.former[substream] = null;
        peer.parentMask &= ~(1 << substream);
      }
      if (this.parents[substream] !== peer) continue;
      if (refused && !peer.closed && this.proven[substream] === 1 && this.noticeMs[substream] === 0) {
        this.noticeMs[substream] = nowMs + POLICY.noticeMs;
      } else this.release(substream, nowMs);
    }
  }

  private release(substream: number, nowMs: number): void {
    const parent = this.parents[substream]!;
    if (parent !== null) parent.parentMask &= ~(1 << substream);
    this.parents[substream] = this.next[substream]!;
    this.next[substream] = null;
    this.proven[substream] = 0;
    this.noticeMs[substream] = 0;
    this.sinceMs[substream] = nowMs;
  }

  /** Keeps what children were told while we were fed: after a loss it tells who cannot be below us. */
  private remember(nowMs: number): void {
    for (let substream = 0; substream < this.parents.length; substream++) {
      const depth = this.depth(substream);
      if (depth === UNFED) continue;
      this.toldDepth[substream] = Math.min(UNFED, depth + this.options.step());
      this.lostMs[substream] = nowMs;
    }
  }

  private dropLaggards(nowMs: number): void {
    const { window, blocksPerPiece, substreams } = this.options;
    const newest = window.newest;
    if (newest === null) return;
    const late = new Uint8Array(substreams);
    for (let seq = Math.max(window.solid, newest.seq - 32); seq <= newest.seq; seq++) {
      const entry = window.get(seq);
      if (entry === undefined || entry.commonMs === null || nowMs - entry.commonMs < POLICY.parentLagMs) continue;
      if (entry.header === null || entry.missing === 0) continue;
      for (let block = 0; block < entry.blocks.length; block++) {
        if (entry.blocks[block] != null) continue;
        const substream = substreamOf(seq, block, blocksPerPiece, substreams);
        if (seq >= this.fromSeq[substream]!) late[substream]!++;
      }
    }
    for (let substream = 0; substream < this.parents.length; substream++) {
      const parent = this.parents[substream];
      const since = nowMs - this.sinceMs[substream]!;
      // One block alone was lost above it, and is pulled: a branch does not move for that.
      if (parent == null || late[substream]! < POLICY.lateBlocks || since < POLICY.parentLagMs) continue;
      parent.refusedUntilMs[substream] = nowMs + 4 * POLICY.refusedMs;
      parent.send({ type: "unsubscribe", mask: 1 << substream, reason: UnsubscribeReason.moved });
      this.release(substream, nowMs);
    }
  }

  /** A parent so much nearer to the source that moving is worth it; null without. */
  private better(parent: LivePeer, substream: number, nowMs: number): LivePeer | null {
    const asked = this.next[substream]!;
    if (asked !== null) {
      if (nowMs - this.nextMs[substream]! < POLICY.parentLagMs) return null;
      this.lost(asked, 1 << substream, nowMs, true);
      asked.send({ type: "unsubscribe", mask: 1 << substream, reason: UnsubscribeReason.moved });
    }
    const noticeMs = this.noticeMs[substream]!;
    if (noticeMs > 0) {
      if (nowMs >= noticeMs) this.release(substream, nowMs);
      return this.choose(substream, nowMs, Infinity);
    }
    const depth = this.depth(substream);
    if (depth === UNFED) return this.rescue(substream, nowMs);
    this.chanceMs[substream] = 0;
    if (nowMs < this.lookMs[substream]!) return null;
    this.lookMs[substream] = nowMs + POLICY.improveMs * (0.5 + this.options.random());
    const found = this.choose(substream, nowMs, depth - POLICY.improveSteps);
    return found === parent ? null : found;
  }

  /**
   * Another parent for a branch that gets nothing. Whoever stands at its head has none and takes the first chance, for
   * all of it; the others give it some time, so that the branch stays whole.
   */
  private rescue(substream: number, nowMs: number): LivePeer | null {
    const found = this.choose(substream, nowMs, Infinity);
    if (found === null) return null;
    if (this.chanceMs[substream] === 0) {
      this.chanceMs[substream] = nowMs + POLICY.unfedMs * (0.5 + this.options.random());
    }
    return nowMs < this.chanceMs[substream]! ? null : found;
  }

  /** The best parent of depth at most `maxDepth`. */
  private choose(substream: number, nowMs: number, maxDepth: number): LivePeer | null {
    const bit = 1 << substream;
    const hasParent = this.depth(substream) !== UNFED && this.noticeMs[substream] === 0;
    const bar = hasParent && this.options.upEighths() === NEEDY ? 0 : this.options.upEighths();
    const needy = hasParent ? 0 : NEEDY;
    const mayClose = this.options.hasChildren(substream) && nowMs - this.lostMs[substream]! < POLICY.circleMs;
    let best: LivePeer | null = null;
    let bestCost = Infinity;
    for (const peer of this.options.peers()) {
      if (((peer.childMask | peer.parentMask) & bit) !== 0 || nowMs < peer.refusedUntilMs[substream]!) continue;
      if (peer.closed || !this.isUsable(peer) || peer.isSnubbed(nowMs) || peer.lagPieces > MAX_LAG_PIECES) continue;
      const { place } = peer;
      if (place !== null && place.bars[substream]! > bar && place.bars[substream]! !== needy) continue;
      const depth = depthAt(peer, substream);
      if (depth > MAX_DEPTH || depth > maxDepth || (mayClose && depth >= this.toldDepth[substream]!)) continue;
      const cost = depth + this.cost(peer);
      if (cost < bestCost) [best, bestCost] = [peer, cost];
    }
    return best;
  }

  /** It tells of this epoch's pieces, ours among them. */
  private isUsable(peer: LivePeer): boolean {
    return peer.window?.epoch === this.options.window.epoch && peer.newestSeq >= this.options.window.base;
  }

  /** Lower is better, in steps: several parents are better than one, near ones than far ones, proven ones than others. */
  private cost(peer: LivePeer): number {
    return (peer.rttMs ?? 100) / 100 + 0.3 * bitCount(peer.parentMask) + 0.5 * this.options.random() +
      Math.max(0, peer.lagPieces - 4) + (peer.isProven || !this.options.isWary() ? 0 : POLICY.unprovenSteps);
  }
}

/** How deep a child of `peer` is. */
function depthAt(peer: LivePeer, substream: number): number {
  return peer.place?.depths[substream] ?? (peer.info.role === "source" ? 1 : UNTOLD_DEPTH);
}

/** Bits set in a byte. */
export function bitCount(mask: number): number {
  let count = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) count++;
  return count;
}
