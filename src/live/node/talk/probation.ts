/**
 * Whether a neighbour is worth feeding. A poisoner gives itself away only to those it sends to. Its parents get nothing
 * from it and would feed it forever, in the place of a member that passes blocks on. So a peer that wants a place and
 * claims to have pieces must first send a block that we have already. A peer that has none yet sends back a block that
 * we gave it. Without that, a few poisoners with fast uplinks held all places near the source on one substream: nobody
 * else fed them, so they never had a piece. Proof is required for a minute after each false block.
 */
import type { LivePeer } from "../neighbour/live-peer.ts";
import type { NodeView } from "../neighbour/node-view.ts";
import { Notes } from "../neighbour/notes.ts";
import { isComplete, isStored } from "../stream/piece-window.ts";
import { POLICY } from "../policy.ts";
import type { Puller } from "../fetch/puller.ts";
import type { Serving } from "./serving.ts";
import type { Uploader } from "../line/uploader.ts";

/** How far back from the newest piece we look for one that both have, ms. */
const LOOK_BACK_MS = 2000;
const LEAST_PIECES_BACK = 8;

/** A block to prove oneself with. */
interface Proof {
  readonly seq: number;
  readonly block: number;
}

/** Subscriptions that wait for a proof. */
interface Held {
  /** Their substreams; 0 without. */
  mask: number;
  /** The first piece that is wanted of them. */
  from: number;
  /** Monotonic ms at which they are refused. */
  untilMs: number;
}

/** Asks neighbours for proofs, and takes places from those that give none. */
export class Probation {
  readonly #view: NodeView;
  readonly #puller: Puller;
  readonly #serving: Serving;
  readonly #uploader: Uploader;
  readonly #held = new Notes<Held>(() => ({ mask: 0, from: 0, untilMs: 0 }));

  constructor(view: NodeView, puller: Puller, serving: Serving, uploader: Uploader) {
    this.#uploader = uploader;
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
    const held = this.#held.of(peer);
    if (held.mask === 0) held.untilMs = nowMs + POLICY.requestTimeoutMs;
    held.from = held.mask === 0 ? from : Math.min(held.from, from);
    held.mask |= mask;
    this.#puller.probe(peer, proof.seq, proof.block, nowMs);
    return true;
  }

  /** Asks unproven peers for a proof: those that are fed or to be fed, and those that may be asked to feed. */
  tick(peers: Iterable<LivePeer>, nowMs: number): void {
    for (const peer of peers) {
      const proof = this.#proofOf(peer, nowMs);
      if (proof !== null) this.#puller.probe(peer, proof.seq, proof.block, nowMs);
      let mask = proof !== null && this.#isOverdue(peer, nowMs) ? this.#view.seats.mask(peer) : 0;
      const held = this.#held.of(peer);
      if (nowMs >= held.untilMs) {
        mask |= held.mask;
        held.mask = 0;
      }
      if (mask !== 0) this.#serving.refuse(peer, mask);
    }
  }

  /** `peer` has proved itself: its subscriptions that waited for that, and the first piece that it wants of them. */
  release(peer: LivePeer): { readonly mask: number; readonly from: number } {
    const held = this.#held.of(peer);
    const { mask, from } = held;
    held.mask = 0;
    return { mask, from };
  }

  /** Mask of the subscriptions of `peer` that wait for a proof. */
  heldMask(peer: LivePeer): number {
    return this.#held.of(peer).mask;
  }

  /** `peer` no longer wants the substreams of `mask`. */
  withdraw(peer: LivePeer, mask: number): void {
    this.#held.of(peer).mask &= ~mask;
  }

  #isOverdue(peer: LivePeer, nowMs: number): boolean {
    const proofAskedMs = this.#puller.proofAskedMs(peer);
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
  #given(peer: LivePeer, nowMs: number): Proof | null {
    const given = this.#uploader.givenTo(peer);
    if (given === null || nowMs - given.atMs < POLICY.givenMs) return null;
    return isStored(this.#view.window.get(given.seq)?.blocks[given.block]) ? given : null;
  }
}
