/** Gives subscribers places in the trees, and passes arriving blocks on to them. */
import { UnsubscribeReason } from "../../messages.ts";
import type { Announcer } from "./announcer.ts";
import type { Children } from "../trees/children.ts";
import type { LivePeer } from "../neighbour/live-peer.ts";
import type { NodeView } from "../neighbour/node-view.ts";
import { Notes } from "../neighbour/notes.ts";
import { isStored, type PieceEntry } from "../stream/piece-window.ts";
import { POLICY } from "../policy.ts";
import { blockKey } from "../stream/substreams.ts";
import type { Uploader } from "../line/uploader.ts";

/** Responds to subscriptions and passes blocks on to children. */
export class Serving {
  readonly #view: NodeView;
  readonly #children: Children;
  readonly #uploader: Uploader;
  readonly #announcer: Announcer;
  /**
   * Substream → the newest piece when the neighbour was given older ones; -1 before. It gets those only once, however often
   * it subscribes.
   */
  readonly #caughtUp = new Notes(() => new Float64Array(8).fill(-1));
  /** Source: recent blocks that came while their substream had no branch. */
  readonly #early = new Set<number>();

  constructor(view: NodeView, children: Children, uploader: Uploader, announcer: Announcer) {
    this.#view = view;
    this.#children = children;
    this.#uploader = uploader;
    this.#announcer = announcer;
  }

  /** `peer` asks for the substreams of `mask`, of pieces from `from` on. */
  subscribed(peer: LivePeer, mask: number, from: number, nowMs: number): void {
    const children = this.#children;
    const uploader = this.#uploader;
    const { window } = this.#view;
    const { accepted, displaced } = window.newest === null
      ? { accepted: 0, displaced: [] }
      : children.accept(peer, mask, nowMs);
    for (const [child, lost] of displaced) {
      child.send({ type: "unsubscribe", mask: lost, reason: UnsubscribeReason.full });
    }
    const refused = mask & ~accepted;
    if (refused !== 0) {
      this.#announcer.answer(peer, nowMs);
      const reason = window.newest === null ? UnsubscribeReason.empty : UnsubscribeReason.full;
      peer.send({ type: "unsubscribe", mask: refused, reason });
    }
    if (accepted === 0) return;
    this.#catchUp(peer, accepted, from, nowMs);
    uploader.pump(nowMs);
  }

  /** `peer` gets nothing more of the substreams of `mask`. */
  refuse(peer: LivePeer, mask: number): void {
    this.#children.drop(peer, mask);
    peer.send({ type: "unsubscribe", mask, reason: UnsubscribeReason.full });
  }

  /** Passes a block on to the children of its substream; not back to `from`, which sent it. */
  passOn(entry: PieceEntry, block: number, from: LivePeer | null, peers: Iterable<LivePeer>, nowMs: number): void {
    const substream = this.#view.substreamOf(entry.seq, block);
    for (const peer of peers) {
      if (peer === from || !this.#view.seats.pushes(peer, substream)) continue;
      this.#uploader.push(peer, entry, block, substream, this.#passesOn(peer), nowMs);
    }
    if (this.#view.isSource && this.#children.count(substream) === 0) this.#noteEarly(entry.seq, block);
  }

  get #catchUpPieces(): number {
    return this.#view.rate.pieces(POLICY.catchUpMs, POLICY.leastCatchUpPieces);
  }

  #noteEarly(seq: number, block: number): void {
    this.#early.add(blockKey(seq, block));
    const oldest = blockKey(seq - this.#catchUpPieces, 0);
    for (const key of this.#early) if (key < oldest) this.#early.delete(key);
  }

  /**
   * Takes places away from children that the uplink or their connection turned out not to carry, and from children that
   * nothing reaches any more.
   */
  tick(peers: Iterable<LivePeer>, nowMs: number): void {
    const children = this.#children;
    const uploader = this.#uploader;
    const lost = [...children.tick(nowMs), ...children.excess(nowMs)];
    for (const peer of peers) {
      if (!this.#view.seats.hasAny(peer)) continue;
      if (uploader.flight.stalledMs(peer, nowMs) >= POLICY.silentMs) this.refuse(peer, this.#view.seats.mask(peer));
      else if (uploader.parkedMs(peer, nowMs) > POLICY.parkedMs) lost.push([peer, children.relieve(peer, nowMs)]);
    }
    for (const [peer, mask] of lost) {
      if (mask !== 0) peer.send({ type: "unsubscribe", mask, reason: UnsubscribeReason.full });
    }
  }

  #catchUp(peer: LivePeer, mask: number, from: number, nowMs: number): void {
    const uploader = this.#uploader;
    const { window } = this.#view;
    // Older pieces leave after the pushes to all children. With a queue of this length they would come too late.
    if (uploader.pushDelayMs >= POLICY.catchUpBelowMs) return;
    const newest = window.newest!.seq;
    // The stream began again.
    const caughtUp = this.#caughtUp.of(peer);
    caughtUp.forEach((seq, substream) => seq > newest && (caughtUp[substream] = -1));
    for (let seq = Math.max(from, newest - this.#catchUpPieces); seq <= newest; seq++) {
      const entry = window.get(seq);
      if (entry?.header == null || peer.has(seq)) continue;
      for (let block = 0; block < entry.blocks.length; block++) {
        const substream = this.#view.substreamOf(seq, block);
        if ((mask & (1 << substream)) === 0 || seq <= caughtUp[substream]! || !isStored(entry.blocks[block])) continue;
        // Its substream had no branch, so a whole branch waits for it.
        if (this.#early.has(blockKey(seq, block))) {
          uploader.push(peer, entry, block, substream, this.#passesOn(peer), nowMs);
        } else uploader.catchUp(peer, entry, block, substream, nowMs);
      }
    }
    for (let substream = 0; substream < 8; substream++) {
      if ((mask & (1 << substream)) !== 0) caughtUp[substream] = newest;
    }
  }

  #passesOn(peer: LivePeer): boolean {
    return (peer.upBytesPerS ?? 0) >= POLICY.relayShare * this.#view.rate.bytesPerS;
  }
}
