/** What one part of a member keeps about each neighbour. */
import type { LivePeer } from "./live-peer.ts";

/**
 * Notes of one part. It alone holds them, so nobody else reads or writes them; other parts ask it. They are forgotten with
 * the neighbour.
 */
export class Notes<T> {
  readonly #notes = new WeakMap<LivePeer, T>();
  readonly #fresh: (peer: LivePeer) => T;

  /** `fresh` makes the notes about a neighbour of which there are none. */
  constructor(fresh: (peer: LivePeer) => T) {
    this.#fresh = fresh;
  }

  /** The notes about `peer`, to be read and written. */
  of(peer: LivePeer): T {
    let notes = this.#notes.get(peer);
    if (notes === undefined) this.#notes.set(peer, notes = this.#fresh(peer));
    return notes;
  }
}
