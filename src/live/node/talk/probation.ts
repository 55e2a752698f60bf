/**
 * Whether a neighbour is worth feeding. A poisoner gives itself away only to those it sends to. Its parents get nothing
 * from it and would feed it forever, in the place of a member that passes blocks on. So a peer that wants a place and
 * claims to have pieces must first send a block that we have already. A peer that has none yet sends back a block that
 * we gave it. Without that, a few poisoners with fast uplinks held all places near the source on one substream: nobody
 * else fed them, so they never had a piece. Proof is required for a minute after each false block.
 */
import type { LivePeer } from "../neighbour/live-peer.ts";
import type { NodeView } from "../neighbour/node-view.ts";
import { isComplete, isStored } from "../stream/piece-window.ts";
import { POLICY } from "../policy.ts";
import type { Puller } from "../fetch/puller.ts";
import type { Serving } from "./serving.ts";

/** How far back from the newest piece we look for one that both have, ms. */
const LOOK_BACK_MS = 2000;
const LEAST_PIECES_BACK = 8;

/** A block to prove oneself with. */
interface Proof {
  readonly seq: number;
  readonly block: number;
}

/** Asks neighbours for proofs, and takes places from those that give none. */
export class Probation {
  readonly #view: NodeView;
  readonly #puller: Puller;
  readonly #serving: Serving;

  constructor(view: NodeView, puller: Puller, serving: Serving) {
    this.#view = view;
    this.#puller = puller;
    this.#serving = serving;
  }

  /**
   * True when the subscription has to wait for a block from `peer` as proof: `peer` has pieces and uplink, and has
   * proved nothing yet.
   */
  holds(peer: LivePeer, mask: number, from: number, nowMs: number): boolean {
    const proof = this.#proofOf(peer, nowMs);
    if (proof === null) return false;
    if (peer.heldMask === 0) peer.heldUntilMs = nowMs + POLICY.requestTimeoutMs;
    peer.heldFrom = peer.heldMask === 0 ? from : Math.min(peer.heldFrom, from);
    peer.heldMask |= mask;
    this.#puller.probe(peer, proof.seq, proof.block, nowMs);
    return true;
  }

  /** Asks unproven peers for a proof: those that are fed or to be fed, and those that may be asked to feed. */
  tick(peers: Iterable<LivePeer>, nowMs: number): void {
    for (const peer of peers) {
      const proof = this.#proofOf(peer, nowMs);
      if (proof !== null) this.#puller.probe(peer, proof.seq, proof.block, nowMs);
      let mask = proof !== null && this.#isOverdue(peer, nowMs) ? peer.childMask : 0;
      if (nowMs >= peer.heldUntilMs) {
        mask |= peer.heldMask;
        peer.heldMask = 0;
      }
      if (mask !== 0) this.#serving.refuse(peer, mask);
    }
  }

  #isOverdue({ proofAskedMs }: LivePeer, nowMs: number): boolean {
    return proofAskedMs !== null && nowMs - proofAskedMs >= POLICY.unprovenMs;
  }

  /** The block with which `peer` can prove itself; null when there is none, or no need. */
  #proofOf(peer: LivePeer, nowMs: number): Proof | null {
    if (peer.isProven || peer.upBytesPerS === 0 || !this.#view.isWary) return null;
    return this.#common(peer) ?? this.#given(peer, nowMs);
  }

  /** A block of a piece that both have. */
  #common(peer: LivePeer): Proof | null {
    const { window, rate, random } = this.#view;
    const newest = Math.min(peer.newestSeq, window.newest?.seq ?? -1);
    const oldest = newest - rate.pieces(LOOK_BACK_MS, LEAST_PIECES_BACK);
    for (let seq = newest; seq > oldest; seq--) {
      const entry = window.get(seq);
      if (!isComplete(entry) || entry.blocks.length === 0 || !peer.has(seq)) continue;
      return { seq, block: Math.floor(random() * entry.blocks.length) };
    }
    return null;
  }

  /** A block that it has from us. */
  #given({ given }: LivePeer, nowMs: number): Proof | null {
    if (given === null || nowMs - given.atMs < POLICY.givenMs) return null;
    return isStored(this.#view.window.get(given.seq)?.blocks[given.block]) ? given : null;
  }
}
