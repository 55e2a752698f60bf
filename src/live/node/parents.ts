/** Chooses the parent that pushes each substream to us: as near to the source as accepts us, another when that stalls. */
import { BLOCK_BYTES } from "../../wire/types.ts";
import type { LivePeer } from "./live-peer.ts";
import { UnsubscribeReason } from "../messages.ts";
import type { PieceWindow } from "./piece-window.ts";
import { costOf, depthAt, isBelow, isUsable } from "./candidate.ts";
import { lacksBefore, lateBlocks, substreamOf } from "./substreams.ts";
import { type Mark, MAX_DEPTH, NEEDY, UNFED } from "./place.ts";
import { POLICY } from "./policy.ts";
import { blockKey } from "./puller.ts";
import { isSilent } from "./silence.ts";
import type { StreamRate } from "./stream-rate.ts";

/** What the choice depends on. */
export interface ParentsOptions {
  readonly window: PieceWindow;
  readonly rate: StreamRate;
  readonly substreams: number;
  readonly blocksPerPiece: number;
  readonly random: () => number;
  /** Monotonic ms. */
  readonly now: () => number;
  readonly peers: () => Iterable<LivePeer>;
  /** Own uplink in eighths of the bitrate: what bars of others are compared with. */
  readonly upEighths: () => number;
  /** Depth that a step from us adds. */
  readonly step: () => number;
  /** True while there are poisoners about. */
  readonly isWary: () => boolean;
  /** Our mark in the paths of those below us. */
  readonly mark: Mark;
}

/** Our parents, one per substream. */
export class Parents {
  private readonly options: ParentsOptions;
  readonly parents: (LivePeer | null)[];
  /** Asked to replace the parent, which stays until the first block comes: nothing is missed in between. */
  private readonly next: (LivePeer | null)[];
  private readonly nextMs: Float64Array;
  /** Was the parent until a better one began to deliver: the pieces it still owes lie before that one's first. */
  private readonly former: (LivePeer | null)[];
  private readonly formerSeq: Float64Array;
  private readonly formerMs: Float64Array;
  /** Monotonic ms of the next look for a better parent. */
  private readonly lookMs: Float64Array;
  /** Monotonic ms at which an opportunity to be fed again is taken; 0 before there was one. */
  private readonly chanceMs: Float64Array;
  private readonly sinceMs: Float64Array;
  /** The parent has delivered since it was asked: an unsubscribe from then on is notice, not refusal. */
  private readonly proven: Uint8Array;
  /** Newest piece of which it has brought a block. */
  private readonly broughtSeq: Float64Array;
  /** Monotonic ms until which a parent that gave notice continues; 0 without notice. */
  private readonly noticeMs: Float64Array;
  /** First piece that the parent owes us. */
  private readonly fromSeq: Float64Array;
  /** The depth reported to our children while we were fed: a parent at least as deep, with us on its path, is below us. */
  private readonly toldDepth: Uint8Array;
  /** Substreams that a source pushed to us when it went. */
  private headMask = 0;
  private wasFed = false;

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
    this.broughtSeq = new Float64Array(substreams).fill(-1);
    this.noticeMs = new Float64Array(substreams);
    this.fromSeq = new Float64Array(substreams);
    this.toldDepth = new Uint8Array(substreams).fill(UNFED);
  }

  /** How deep we are on `substream`; `UNFED` when it does not reach us: what a parent claims counts only while it delivers. */
  depth(substream: number): number {
    const parent = this.parents[substream];
    if (parent == null) return UNFED;
    if (this.proven[substream] === 0) {
      if (this.options.now() - this.sinceMs[substream]! > POLICY.hopefulMs) return UNFED;
    } else if (this.isStarved(substream)) return UNFED;
    const depth = depthAt(parent, substream);
    return depth > MAX_DEPTH ? UNFED : depth;
  }

  /** The way by which `substream` comes; null while none of it has come from the parent. */
  path(substream: number): Uint32Array | null {
    if (this.proven[substream] === 0 || this.depth(substream) === UNFED) return null;
    return this.parents[substream]!.place?.paths ?? null;
  }

  /** True when the parent has brought nothing for so long that blocks of its substream must exist. */
  private isStarved(substream: number): boolean {
    const { window, blocksPerPiece, substreams, rate } = this.options;
    const newest = window.newest?.seq ?? 0;
    const perBlock = Math.ceil(substreams / blocksPerPiece);
    return newest - this.broughtSeq[substream]! > rate.pieces(POLICY.starvedMs, 2) + perBlock;
  }

  /** Replaces parents that lag, finds parents for substreams without one, and better ones for the rest. Once a tick, when
   * the edge is known. `firstSeq`: older pieces are not wanted from parents. */
  tick(nowMs: number, firstSeq: number): void {
    this.leaveCircles(nowMs);
    this.dropSilent(nowMs);
    this.dropLaggards(nowMs);
    const newest = this.options.window.newest?.seq ?? 0;
    const from = this.catchUpFrom(firstSeq);
    const movers = new Map<LivePeer, number>();
    const orphans = new Map<LivePeer, number>();
    for (let substream = 0; substream < this.parents.length; substream++) {
      if (this.former[substream] !== null && nowMs - this.formerMs[substream]! > POLICY.handoverMs) {
        this.leave(substream);
      }
      const had = this.parents[substream]!;
      const found = had === null ? null : this.better(had, substream, nowMs);
      if (found === null) continue;
      // A parent that gets nothing itself leaves as much to catch up on as a missing one.
      const asked = this.depth(substream) === UNFED ? orphans : movers;
      this.next[substream] = found;
      this.nextMs[substream] = nowMs;
      ask(asked, found, substream);
    }
    for (const [peer, mask] of orphans) peer.send({ type: "subscribe", mask, from });
    for (const [peer, mask] of movers) {
      peer.send({ type: "subscribe", mask, from: Math.max(newest, peer.newestSeq) + 1 });
    }
    this.adopt(nowMs, firstSeq);
    this.remember();
  }

  /** Finds parents for substreams without one; arguments as for `tick`. */
  adopt(nowMs: number, firstSeq: number): void {
    const newest = this.options.window.newest?.seq ?? 0;
    const orphans = new Map<LivePeer, number>();
    for (let substream = 0; substream < this.parents.length; substream++) {
      const found = this.parents[substream] === null ? this.choose(substream, nowMs, Infinity) : null;
      if (found === null) continue;
      this.parents[substream] = found;
      this.sinceMs[substream] = nowMs;
      this.proven[substream] = 0;
      this.noticeMs[substream] = 0;
      // Older pieces it gives us are a favour: it owes only those from here on.
      this.fromSeq[substream] = newest + 1;
      this.lookMs[substream] = nowMs + POLICY.improveMs * (0.5 + this.options.random());
      ask(orphans, found, substream);
    }
    const from = this.catchUpFrom(firstSeq);
    for (const [peer, mask] of orphans) peer.send({ type: "subscribe", mask, from });
  }

  /** The next parent pushes the newest of the pieces that a lost one did not bring; older ones are pulled. */
  private catchUpFrom(firstSeq: number): number {
    const { window, rate } = this.options;
    const oldest = (window.newest?.seq ?? 0) - rate.pieces(POLICY.catchUpMs, POLICY.leastCatchUpPieces);
    return Math.max(firstSeq, window.solid, oldest);
  }

  /** `peer` sent a block of piece `seq`: a peer that was asked to be parent becomes one now. */
  delivered(peer: LivePeer, substream: number, seq: number, nowMs: number): void {
    this.wasFed = true;
    if ((peer.parentMask & (1 << substream)) !== 0) peer.hasBrought = true;
    if (this.parents[substream] === peer || this.next[substream] === peer) {
      this.broughtSeq[substream] = Math.max(this.broughtSeq[substream]!, seq);
    }
    if (this.parents[substream] === peer) {
      this.proven[substream] = 1;
      this.headMask &= ~(1 << substream);
    }
    if (this.former[substream] === peer && seq >= this.formerSeq[substream]!) return this.leave(substream);
    if (this.next[substream] !== peer) return;
    this.blame(substream, nowMs);
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
    if (!lacksBefore(this.options, substream, seq)) this.leave(substream);
  }

  /** A block came from `peer`: parents that would push it too, without a request, are told that they need not. */
  unneeded(peer: LivePeer, seq: number, block: number, lengthBytes: number): void {
    const { blocksPerPiece, substreams } = this.options;
    const substream = substreamOf(seq, block, blocksPerPiece, substreams);
    if (this.depth(substream) === UNFED) return;
    for (const parent of [this.parents[substream]!, this.former[substream]!]) {
      if (parent === null || parent === peer || parent.requests.has(blockKey(seq, block))) continue;
      parent.link.cancel(seq, block * BLOCK_BYTES, lengthBytes);
    }
  }

  /** A parent that stopped delivering, but still says that the substream reaches it, is not asked again soon. */
  private blame(substream: number, nowMs: number): void {
    const parent = this.parents[substream];
    if (parent == null || this.proven[substream] === 0 || !this.isStarved(substream)) return;
    if (depthAt(parent, substream) <= MAX_DEPTH && nowMs >= parent.barrenUntilMs) noteBarren(parent, nowMs);
  }

  private leave(substream: number): void {
    const old = this.former[substream]!;
    this.former[substream] = null;
    if (old === null) return;
    old.parentMask &= ~(1 << substream);
    old.send({ type: "unsubscribe", mask: 1 << substream, reason: UnsubscribeReason.moved });
  }

  /** `peer` no longer pushes us the substreams of `mask`, or refused to. */
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
      if (peer.closed && peer.info.role === "source") this.headMask |= 1 << substream;
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

  /** Leaves parents that are now below us: two members that chose at the same moment did not know of each other. */
  private leaveCircles(nowMs: number): void {
    for (let substream = 0; substream < this.parents.length; substream++) {
      const parent = this.parents[substream];
      // Check the depth too: some paths seem to go through us that do not.
      if (parent == null || !isBelow(parent, substream, this.options.mark)) continue;
      const depth = depthAt(parent, substream);
      if (depth > MAX_DEPTH || depth < this.toldDepth[substream]!) continue;
      parent.send({ type: "unsubscribe", mask: 1 << substream, reason: UnsubscribeReason.moved });
      this.release(substream, nowMs);
    }
  }

  /** Keeps the depths reported to children while we were fed. */
  private remember(): void {
    for (let substream = 0; substream < this.parents.length; substream++) {
      const depth = this.depth(substream);
      if (depth === UNFED) continue;
      this.toldDepth[substream] = Math.min(UNFED, depth + this.options.step());
    }
  }

  private dropSilent(nowMs: number): void {
    for (let substream = 0; substream < this.parents.length; substream++) {
      const asked = this.next[substream];
      if (asked != null && isSilent(asked, nowMs)) this.lost(asked, 1 << substream, nowMs, true);
      const parent = this.parents[substream];
      if (parent == null || !isSilent(parent, nowMs)) continue;
      // If the former parent is still there after all, it need not continue.
      parent.send({ type: "unsubscribe", mask: 1 << substream, reason: UnsubscribeReason.moved });
      this.release(substream, nowMs);
    }
  }

  private dropLaggards(nowMs: number): void {
    const late = lateBlocks(this.options, this.fromSeq, this.proven, nowMs);
    for (let substream = 0; substream < this.parents.length; substream++) {
      const parent = this.parents[substream];
      const isStarted = this.proven[substream] === 1;
      const patienceMs = isStarted ? POLICY.parentLagMs : POLICY.unstartedMs;
      // A single block was lost above it, and is pulled: a branch does not move for that.
      if (parent == null || late[substream]! < POLICY.lateBlocks) continue;
      if (nowMs - this.sinceMs[substream]! < patienceMs) continue;
      if (parent.lastBlockMs < this.sinceMs[substream]! && nowMs >= parent.barrenUntilMs) noteBarren(parent, nowMs);
      else this.blame(substream, nowMs);
      parent.refusedUntilMs[substream] = nowMs + 4 * POLICY.refusedMs;
      parent.send({ type: "unsubscribe", mask: 1 << substream, reason: UnsubscribeReason.moved });
      this.release(substream, nowMs);
    }
  }

  /** A parent enough nearer to the source to be worth moving to; null without. */
  private better(parent: LivePeer, substream: number, nowMs: number): LivePeer | null {
    const asked = this.next[substream]!;
    if (asked !== null) {
      if (nowMs - this.nextMs[substream]! < POLICY.parentLagMs) return null;
      // The parent reports a better place but never brought anything; not while many look for a parent and all are busy.
      if (!asked.hasBrought && this.depth(substream) !== UNFED && nowMs >= asked.barrenUntilMs) {
        noteBarren(asked, nowMs);
      }
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
   * Another parent for a branch that gets nothing. The member at its head has no parent and takes the first opportunity, for
   * the whole branch; the others give it a moment to do so, so that the branch stays together.
   */
  private rescue(substream: number, nowMs: number): LivePeer | null {
    const found = this.choose(substream, nowMs, Infinity);
    if (found === null) {
      this.chanceMs[substream] = 0;
      return null;
    }
    if (found.info.role === "source" && (this.headMask & (1 << substream)) !== 0) return found;
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
    let best: LivePeer | null = null;
    let bestCost = Infinity;
    for (const peer of this.options.peers()) {
      if (this.isReserved(peer, bit, nowMs)) continue;
      if (((peer.childMask | peer.parentMask) & bit) !== 0 || nowMs < peer.refusedUntilMs[substream]!) continue;
      if (peer.closed || !isUsable(peer, this.options) || peer.isSnubbed(nowMs)) continue;
      const isBarren = nowMs < peer.barrenUntilMs;
      if (isSilent(peer, nowMs) || (isBarren && hasParent)) continue;
      const { place } = peer;
      if (place !== null && place.bars[substream]! > bar && place.bars[substream]! !== needy) continue;
      const depth = depthAt(peer, substream);
      if (depth > MAX_DEPTH || depth > maxDepth || isBelow(peer, substream, this.options.mark)) continue;
      // It may only have been busy: a member without a parent asks it when there is hardly another.
      const believed = peer.hasBrought ? depth : Math.max(depth, POLICY.untriedDepth);
      const cost = believed + costOf(peer, this.options) + (isBarren ? POLICY.barrenSteps : 0);
      if (cost < bestCost) [best, bestCost] = [peer, cost];
    }
    return best;
  }

  /**
   * A source that comes back is reserved for a moment for the members that headed a branch when it went: each of them brings
   * a whole branch with it, anybody else little more than itself. Members that another branch already feeds again leave it
   * alone too: they would take the place of a head that has not dialled yet.
   */
  private isReserved(peer: LivePeer, bit: number, nowMs: number): boolean {
    if (peer.info.role !== "source" || nowMs - peer.connectedMs >= POLICY.returnMs) return false;
    return this.wasFed && (this.headMask & bit) === 0;
  }
}

/** `parent` was asked and brought nothing. */
function noteBarren(parent: LivePeer, nowMs: number): void {
  const doublings = Math.min(POLICY.barrenDoublings, parent.barrenTimes++);
  parent.barrenUntilMs = nowMs + POLICY.barrenMs * 2 ** doublings;
}

/** Notes in `asked` that `peer` is asked for `substream`. */
function ask(asked: Map<LivePeer, number>, peer: LivePeer, substream: number): void {
  peer.parentMask |= 1 << substream;
  asked.set(peer, (asked.get(peer) ?? 0) | (1 << substream));
}
