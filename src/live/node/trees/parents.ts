/** Has each substream pushed to us by one parent, and looks for another when that stalls or a better one can be had. */
import { BLOCK_BYTES } from "../../../wire/types.ts";
import { Branch } from "./branch.ts";
import { depthAt, isBelow } from "./candidate.ts";
import type { LivePeer } from "../neighbour/live-peer.ts";
import type { NodeView } from "../neighbour/node-view.ts";
import { Notes } from "../neighbour/notes.ts";
import { chooseParent } from "./parent-choice.ts";
import { eighths, MAX_DEPTH, UNFED } from "../neighbour/place.ts";
import { POLICY } from "../policy.ts";
import { isSilent } from "../neighbour/silence.ts";
import { blockKey, lateBlocks } from "../stream/substreams.ts";
import type { Uploader } from "../line/uploader.ts";

/** Substream → monotonic ms until which a neighbour isn't asked to be parent. */
interface Refusals {
  /** Until when a neighbour that refused is not asked, per substream, ms. */
  readonly refusedUntilMs: Float64Array;
  /** Until when a parent that brought too little is not asked, per substream, ms. */
  readonly shunnedUntilMs: Float64Array;
}

/** Our parents, one per substream. */
export class Parents {
  readonly #view: NodeView;
  readonly #uploader: Uploader;
  /** How each substream comes, in their order. */
  readonly branches: readonly Branch[];
  readonly #refusals = new Notes<Refusals>(() => ({
    refusedUntilMs: new Float64Array(8),
    shunnedUntilMs: new Float64Array(8),
  }));
  /** Substreams that a source pushed to us when it left. */
  #headMask = 0;
  #wasFed = false;
  /** Uplink with which we asked for places, bytes/s; 0 before it was known. */
  #askedUpBytesPerS = 0;
  /** Monotonic ms since when we ask with that uplink. */
  #askedUpSinceMs = -Infinity;

  constructor(view: NodeView, uploader: Uploader) {
    this.#view = view;
    this.#uploader = uploader;
    this.branches = Array.from({ length: view.substreams }, (_, substream) => new Branch(view, substream));
  }

  /** Substreams that somebody pushes to us, or was asked to. */
  get count(): number {
    return this.branches.filter((branch) => branch.parent !== null).length;
  }

  /** True when `peer` pushes us `substream`, or was asked to. */
  feeds(peer: LivePeer, substream: number): boolean {
    return this.branches[substream]!.isFrom(peer);
  }

  /** True when `peer` pushes us any substream, or was asked to. */
  feedsAny(peer: LivePeer): boolean {
    return this.branches.some((branch) => branch.isFrom(peer));
  }

  /** Substreams that `peer` pushes to us, or was asked to push. */
  mask(peer: LivePeer): number {
    return this.branches.reduce((mask, branch) => branch.isFrom(peer) ? mask | branch.bit : mask, 0);
  }

  /** True when our uplink is known to be so much larger than when we asked for places that we should ask again. */
  get isStronger(): boolean {
    return (this.#uploader.toldBytesPerS ?? 0) > POLICY.strongerBy * this.#askedUpBytesPerS;
  }

  /** How deep we are on `substream`; `UNFED` when it does not reach us. */
  depth(substream: number): number {
    return this.branches[substream]!.depth;
  }

  /** The way by which `substream` comes; null while none of it has come from the parent. */
  path(substream: number): Uint32Array | null {
    return this.branches[substream]!.path;
  }

  /**
   * Replaces parents that lag, finds parents for substreams without one, and better ones for the rest. Once a tick, when
   * the edge is known. `firstSeq`: older pieces are not wanted from parents.
   */
  tick(nowMs: number, firstSeq: number): void {
    this.#reconsider(nowMs);
    this.#leaveCircles(nowMs);
    this.#dropSilent(nowMs);
    this.#dropLaggards(nowMs);
    this.#move(nowMs, firstSeq);
    this.adopt(nowMs, firstSeq);
    this.#remember();
  }

  /** Finds parents for substreams without one; arguments as for `tick`. */
  adopt(nowMs: number, firstSeq: number): void {
    const newest = this.#view.window.newest?.seq ?? 0;
    const asked = new Map<LivePeer, number>();
    for (const branch of this.branches) {
      const found = branch.parent === null ? this.#choose(branch, nowMs, Infinity) : null;
      if (found === null) continue;
      branch.adopt(found, newest + 1, nowMs);
      this.#planLook(branch, nowMs);
      ask(asked, found, branch);
    }
    this.#subscribe(asked, () => this.#catchUpFrom(firstSeq), nowMs);
  }

  /** `peer` sent a block of piece `seq`: a peer that was asked to be parent becomes one now. */
  delivered(peer: LivePeer, substream: number, seq: number, nowMs: number): void {
    const branch = this.branches[substream]!;
    this.#wasFed = true;
    if (branch.isFrom(peer)) this.#view.conduct.noteBrought(peer);
    if (branch.delivered(peer, seq, nowMs)) this.#headMask &= ~branch.bit;
  }

  /** A block came from `peer`. Parents that would push it too, without a request, learn that they need not. */
  unneeded(peer: LivePeer, seq: number, block: number, lengthBytes: number): void {
    const branch = this.branches[this.#view.substreamOf(seq, block)]!;
    if (branch.depth === UNFED) return;
    for (const parent of [branch.parent, branch.former?.peer ?? null]) {
      if (parent === null || parent === peer || parent.requests.has(blockKey(seq, block))) continue;
      parent.link.cancel(seq, block * BLOCK_BYTES, lengthBytes);
    }
  }

  /** `peer` no longer pushes us the substreams of `mask`, or refused to. */
  lost(peer: LivePeer, mask: number, nowMs: number, refused: boolean): void {
    for (const branch of this.branches) {
      if ((mask & branch.bit) === 0) continue;
      // A refusal of what was asked with a smaller uplink says nothing about now.
      if (refused && branch.askedMs(peer) >= this.#askedUpSinceMs) {
        this.#refusals.of(peer).refusedUntilMs[branch.substream] = nowMs +
          POLICY.refusedMs * (0.5 + this.#view.random());
      }
      if (branch.next?.peer === peer) branch.forgetNext();
      if (branch.former?.peer === peer) branch.forgetFormer();
      if (branch.parent !== peer) continue;
      if (peer.closed && peer.isSource) this.#headMask |= branch.bit;
      if (refused && !peer.closed && branch.isProven && branch.noticeUntilMs === null) {
        branch.noticeUntilMs = nowMs + POLICY.noticeMs;
      } else branch.release(nowMs);
    }
  }

  /** False while `peer` is left alone because it refused `substream`, or brought too little of it. */
  mayAsk(peer: LivePeer, substream: number, nowMs: number): boolean {
    const { refusedUntilMs, shunnedUntilMs } = this.#refusals.of(peer);
    return nowMs >= Math.max(refusedUntilMs[substream]!, shunnedUntilMs[substream]!);
  }

  /** `peer` has more room on `substream` than when it refused. */
  reopened(peer: LivePeer, substream: number): void {
    this.#refusals.of(peer).refusedUntilMs[substream] = 0;
  }

  /** Asks better parents to replace those that substreams have. */
  #move(nowMs: number, firstSeq: number): void {
    const newest = this.#view.window.newest?.seq ?? 0;
    const movers = new Map<LivePeer, number>();
    const orphans = new Map<LivePeer, number>();
    for (const branch of this.branches) {
      if (branch.former !== null && nowMs - branch.former.sinceMs > POLICY.parentLagMs) branch.leaveFormer();
      const found = branch.parent === null ? null : this.#better(branch, branch.parent, nowMs);
      if (found === null) continue;
      branch.next = { peer: found, askedMs: nowMs, fromSeq: newest + 1 };
      // A parent that gets nothing itself leaves as much to catch up on as a missing one does.
      ask(branch.depth === UNFED ? orphans : movers, found, branch);
    }
    this.#subscribe(orphans, () => this.#catchUpFrom(firstSeq), nowMs);
    this.#subscribe(movers, (peer) => Math.max(newest, peer.newestSeq) + 1, nowMs);
  }

  /** Asks again those that refused us when our uplink seemed smaller. */
  #reconsider(nowMs: number): void {
    if (!this.isStronger) return;
    this.#askedUpBytesPerS = this.#uploader.toldBytesPerS ?? 0;
    this.#askedUpSinceMs = nowMs;
    for (const peer of this.#view.peers) this.#refusals.of(peer).refusedUntilMs.fill(0);
  }

  /** A new parent gives us older pieces, too: it should know which of them we have. */
  #subscribe(asked: ReadonlyMap<LivePeer, number>, from: (peer: LivePeer) => number, nowMs: number): void {
    for (const [peer, mask] of asked) peer.sendWithNews({ type: "subscribe", mask, from: from(peer) }, nowMs, true);
  }

  /** The next parent pushes the newest of the pieces that a lost one did not bring; older ones are pulled. */
  #catchUpFrom(firstSeq: number): number {
    const { window, rate } = this.#view;
    const oldest = (window.newest?.seq ?? 0) - rate.pieces(POLICY.catchUpMs, POLICY.leastCatchUpPieces);
    return Math.max(firstSeq, window.solid, oldest);
  }

  /**
   * Leaves parents that are now below us: two members that choose at the same moment do not know of each other's
   * choice.
   */
  #leaveCircles(nowMs: number): void {
    for (const branch of this.branches) {
      const { parent, substream } = branch;
      // Check the depth too: some paths seem to contain us by chance.
      if (parent === null || !isBelow(parent, substream, this.#view.mark)) continue;
      const depth = depthAt(parent, substream);
      if (depth <= MAX_DEPTH && depth >= branch.toldDepth) branch.leave(nowMs);
    }
  }

  /** Keeps the depths reported to children while we were fed. */
  #remember(): void {
    for (const branch of this.branches) {
      const { depth } = branch;
      if (depth !== UNFED) branch.toldDepth = Math.min(UNFED, depth + this.#uploader.step);
    }
  }

  #dropSilent(nowMs: number): void {
    for (const branch of this.branches) {
      const asked = branch.next?.peer;
      if (asked !== undefined && isSilent(asked, nowMs)) this.lost(asked, branch.bit, nowMs, true);
      // Notify it nevertheless: if it is still there after all, it need not continue.
      if (branch.parent !== null && isSilent(branch.parent, nowMs)) branch.leave(nowMs);
    }
  }

  #dropLaggards(nowMs: number): void {
    const late = lateBlocks(this.#view, this.branches, nowMs);
    for (const branch of this.branches) {
      const { parent } = branch;
      const patienceMs = branch.isProven ? POLICY.parentLagMs : POLICY.starvedMs;
      // A single late block was lost above the parent, and is pulled; that is no reason to move a branch.
      if (parent === null || late[branch.substream]! < POLICY.lateBlocks) continue;
      if (nowMs - branch.sinceMs < patienceMs) continue;
      const { conduct } = this.#view;
      if (parent.lastBlockMs < branch.sinceMs && !conduct.isBarren(parent, nowMs)) conduct.noteBarren(parent, nowMs);
      else branch.blame(nowMs);
      this.#refusals.of(parent).shunnedUntilMs[branch.substream] = nowMs + 4 * POLICY.refusedMs;
      branch.leave(nowMs);
    }
  }

  /** A parent that is enough nearer to the source to be worth moving to; null without. */
  #better(branch: Branch, parent: LivePeer, nowMs: number): LivePeer | null {
    if (branch.next !== null) {
      if (nowMs - branch.next.askedMs < POLICY.parentLagMs) return null;
      const asked = branch.next.peer;
      // The peer asked reports a better place but has never brought anything. Do not blame it while we are unfed: then
      // many look for a parent, and all are busy.
      const { conduct } = this.#view;
      const isUntried = !conduct.hasBrought(asked) && !conduct.isBarren(asked, nowMs);
      if (isUntried && branch.depth !== UNFED) conduct.noteBarren(asked, nowMs);
      this.lost(asked, branch.bit, nowMs, true);
      branch.unsubscribe(asked);
    }
    if (branch.noticeUntilMs !== null) {
      if (nowMs >= branch.noticeUntilMs) branch.release(nowMs);
      return this.#choose(branch, nowMs, Infinity);
    }
    const { depth } = branch;
    if (depth === UNFED) return this.#rescue(branch, nowMs);
    branch.chanceMs = null;
    if (nowMs < branch.lookMs) return null;
    this.#planLook(branch, nowMs);
    const found = this.#choose(branch, nowMs, depth - POLICY.improveSteps);
    return found === parent ? null : found;
  }

  /**
   * Another parent for a branch that gets nothing. The member at its head has no parent and takes the first
   * opportunity, for the whole branch. The other members wait a moment for that, so that the branch stays together.
   */
  #rescue(branch: Branch, nowMs: number): LivePeer | null {
    const found = this.#choose(branch, nowMs, Infinity);
    if (found === null) {
      branch.chanceMs = null;
      return null;
    }
    if (found.isSource && (this.#headMask & branch.bit) !== 0) return found;
    // Our parent says that it is fed and brings nothing: we are the head of the branch.
    if (branch.isProven && depthAt(branch.parent!, branch.substream) <= MAX_DEPTH) return found;
    branch.chanceMs ??= nowMs + POLICY.unfedMs * (0.5 + this.#view.random());
    return nowMs < branch.chanceMs ? null : found;
  }

  #choose(branch: Branch, nowMs: number, maxDepth: number): LivePeer | null {
    const upEighths = eighths(this.#uploader.uplinkBytesPerS, this.#view.rate.bytesPerS);
    const mayUse = (peer: LivePeer) => {
      return !this.#isReserved(peer, branch, nowMs) && this.mayAsk(peer, branch.substream, nowMs);
    };
    return chooseParent(branch, this.branches, this.#view, upEighths, nowMs, maxDepth, mayUse);
  }

  /**
   * For a moment a source that comes back is reserved for the members that headed a branch when it left: each of them
   * brings a whole branch with it, anybody else little more than itself. Members that another branch already feeds
   * again leave it alone too, because they would take the place of a head that has not dialled yet.
   */
  #isReserved(peer: LivePeer, branch: Branch, nowMs: number): boolean {
    // The proof that it is the source may still be on the way, and a liar gains nothing by being left alone.
    if (peer.info.role !== "source" || nowMs - peer.connectedMs >= POLICY.returnMs) return false;
    return this.#wasFed && (this.#headMask & branch.bit) === 0;
  }

  #planLook(branch: Branch, nowMs: number): void {
    branch.lookMs = nowMs + POLICY.improveMs * (0.5 + this.#view.random());
  }
}

/** Notes in `asked` that `peer` is asked for the substream of `branch`. */
function ask(asked: Map<LivePeer, number>, peer: LivePeer, branch: Branch): void {
  asked.set(peer, (asked.get(peer) ?? 0) | branch.bit);
}
