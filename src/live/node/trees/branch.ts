/** How one substream comes to us: its parent, the peer that was asked to take over, and the parent before. */
import type { LivePeer } from "../neighbour/live-peer.ts";
import { UnsubscribeReason } from "../../messages.ts";
import type { NodeView } from "../neighbour/node-view.ts";
import { depthAt } from "./candidate.ts";
import { lacksBefore } from "../stream/substreams.ts";
import { MAX_DEPTH, UNFED } from "../neighbour/place.ts";
import { POLICY } from "../policy.ts";

/** One substream on its way to us. Times are monotonic ms. */
export class Branch {
  /** The peer that pushes the substream to us, or was asked to; null: nobody. */
  parent: LivePeer | null = null;
  /** Monotonic ms since when `parent` has its present value, null included. */
  sinceMs = 0;
  /** The parent has delivered since it was asked: an unsubscribe from then on is notice, not refusal. */
  isProven = false;
  /** Newest piece of which the parent, or the one asked to replace it, has brought a block. */
  broughtSeq = -1;
  /** First piece that the parent owes us. */
  fromSeq = 0;
  /** Until when a parent that gave notice continues; null without notice. */
  noticeUntilMs: number | null = null;
  /**
   * The peer asked to replace the parent. The parent stays until the first block comes, so that nothing is missed in
   * between. It owes pieces from `fromSeq` on.
   */
  next: { readonly peer: LivePeer; readonly askedMs: number; readonly fromSeq: number } | null = null;
  /**
   * The parent until a better one began to deliver with piece `untilSeq`. What it still owes lies before that piece.
   */
  former: { readonly peer: LivePeer; readonly untilSeq: number; readonly sinceMs: number } | null = null;
  /** When to look for a better parent. */
  lookMs = 0;
  /** When to take an opportunity to be fed again; null before there was one. */
  chanceMs: number | null = null;
  /**
   * The depth reported to our children while we were fed. A parent that is at least as deep and has us on its path is
   * below us.
   */
  toldDepth = UNFED;
  /** Number of the substream, from 0. */
  readonly substream: number;
  /** Its bit in masks. */
  readonly bit: number;
  readonly #view: NodeView;

  constructor(view: NodeView, substream: number) {
    this.#view = view;
    this.substream = substream;
    this.bit = 1 << substream;
  }

  /**
   * How deep we are; `UNFED` when the substream does not reach us. What a parent claims counts only while it delivers.
   */
  get depth(): number {
    if (this.parent === null) return UNFED;
    const isBelieved = this.isProven ? !this.#isStarved : this.#view.now() - this.sinceMs <= POLICY.hopefulMs;
    if (!isBelieved) return UNFED;
    const depth = depthAt(this.parent, this.substream);
    return depth > MAX_DEPTH ? UNFED : depth;
  }

  /** The way by which the substream comes; null while none of it has come from the parent. */
  get path(): Uint32Array | null {
    if (!this.isProven || this.depth === UNFED) return null;
    return this.parent!.place?.paths ?? null;
  }

  /** True when the parent has brought nothing for so long that it must have missed blocks of the substream. */
  get #isStarved(): boolean {
    const { window, blocksPerPiece, substreams, rate } = this.#view;
    const newest = window.newest?.seq ?? 0;
    const perBlock = Math.ceil(substreams / blocksPerPiece);
    return newest - this.broughtSeq > rate.pieces(POLICY.starvedMs, 2) + perBlock;
  }

  /** True when `peer` pushes us the substream, or was asked to. */
  isFrom(peer: LivePeer): boolean {
    return this.parent === peer || this.next?.peer === peer || this.former?.peer === peer;
  }

  /** Monotonic ms at which `peer` was asked for the substream without having brought any of it; `Infinity`: it was not. */
  askedMs(peer: LivePeer): number {
    if (this.next?.peer === peer) return this.next.askedMs;
    return this.parent === peer && !this.isProven ? this.sinceMs : Infinity;
  }

  /**
   * Asks `peer`, as the first parent or after a lost one. It owes pieces from `fromSeq` on; it may push older ones,
   * too.
   */
  adopt(peer: LivePeer, fromSeq: number, nowMs: number): void {
    this.#setParent(peer, nowMs);
    this.fromSeq = fromSeq;
  }

  /** A block of piece `seq` came from `peer`. Returns true when it is the parent. */
  delivered(peer: LivePeer, seq: number, nowMs: number): boolean {
    const isParent = this.parent === peer;
    const isNext = this.next?.peer === peer;
    // What its successor brings must not hide that the parent brought nothing.
    if (isNext) this.blame(nowMs);
    if (isParent || isNext) this.broughtSeq = Math.max(this.broughtSeq, seq);
    if (isParent) this.isProven = true;
    if (this.former?.peer === peer && seq >= this.former.untilSeq) this.leaveFormer();
    else if (isNext) this.#handOver(peer, seq, nowMs);
    return isParent;
  }

  /** `peer`, asked to replace the parent, begins to deliver with piece `seq`. */
  #handOver(peer: LivePeer, seq: number, nowMs: number): void {
    this.leaveFormer();
    this.former = this.parent && { peer: this.parent, untilSeq: seq, sinceMs: nowMs };
    this.next = null;
    this.#setParent(peer, nowMs);
    this.isProven = true;
    this.fromSeq = seq + 1;
    if (!lacksBefore(this.#view, this.substream, seq)) this.leaveFormer();
  }

  /** Lets the parent go without a message; the peer asked to replace it takes its place. */
  release(nowMs: number): void {
    const { next } = this;
    this.#setParent(next?.peer ?? null, nowMs);
    // What the lost parent did not bring must not be held against its successor.
    if (next !== null) this.fromSeq = next.fromSeq;
    this.next = null;
  }

  /** As `release`, and notifies the parent. */
  leave(nowMs: number): void {
    if (this.parent !== null) this.unsubscribe(this.parent);
    this.release(nowMs);
  }

  /** Has the former parent stop pushing. */
  leaveFormer(): void {
    const { former } = this;
    if (former === null) return;
    this.forgetFormer();
    this.unsubscribe(former.peer);
  }

  /** The former parent is gone by itself. */
  forgetFormer(): void {
    this.former = null;
  }

  /** The peer asked to replace the parent does not do so. */
  forgetNext(): void {
    this.next = null;
  }

  /** Asks `peer` to stop pushing the substream. */
  unsubscribe(peer: LivePeer): void {
    peer.send({ type: "unsubscribe", mask: this.bit, reason: UnsubscribeReason.moved });
  }

  /** A parent that stopped delivering, but still says that the substream reaches it, is not asked again soon. */
  blame(nowMs: number): void {
    const { parent } = this;
    if (parent === null || !this.isProven || !this.#isStarved) return;
    const { conduct } = this.#view;
    const isFed = depthAt(parent, this.substream) <= MAX_DEPTH;
    if (isFed && !conduct.isBarren(parent, nowMs)) conduct.noteBarren(parent, nowMs);
  }

  #setParent(peer: LivePeer | null, nowMs: number): void {
    this.parent = peer;
    this.isProven = false;
    this.noticeUntilMs = null;
    this.sinceMs = nowMs;
  }
}
