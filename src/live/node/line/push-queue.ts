/** Blocks that wait to be pushed, first in, first out. Blocks for a neighbour that can take none wait separately. */
import type { LivePeer } from "../neighbour/live-peer.ts";
import type { PieceEntry } from "../stream/piece-window.ts";

/** A block to push. */
export interface Push {
  readonly peer: LivePeer;
  readonly entry: PieceEntry;
  readonly block: number;
  /** A peer that unsubscribes from it gets no more. */
  readonly substream: number;
  readonly atMs: number;
}

/** Pushes kept. At 2 s until they are shed this is 250 Mb/s. */
const MAX_PUSHES = 4096;

/** The queue of pushes. */
export class PushQueue {
  #items: Push[] = [];
  #first = 0;
  readonly #parked = new Map<LivePeer, Push[]>();
  #parkedCount = 0;

  /** Pushes that wait only for our line. */
  get length(): number {
    return this.#items.length - this.#first;
  }

  add(push: Push): void {
    if (this.length + this.#parkedCount < MAX_PUSHES) this.#items.push(push);
  }

  /** The first push that `isUseful` and whose peer isn't full, after dropping useless ones before it; null without one. */
  head(isUseful: (push: Push) => boolean, isFull: (peer: LivePeer) => boolean): Push | null {
    for (let push = this.#items[this.#first]; push !== undefined; push = this.#items[this.#first]) {
      if (isUseful(push)) {
        if (!isFull(push.peer)) return push;
        this.#park(push);
      }
      this.drop();
    }
    return null;
  }

  /** Removes the first push. */
  drop(): void {
    this.#first++;
    if (this.#first < 256 && this.#first < this.#items.length) return;
    this.#items = this.#items.slice(this.#first);
    this.#first = 0;
  }

  /** `peer` can take blocks again: those that waited for it go first, because they are the oldest. */
  resume(peer: LivePeer): void {
    const waiting = this.#parked.get(peer);
    if (waiting === undefined) return;
    this.forget(peer);
    this.#items = [...waiting, ...this.#items.slice(this.#first)];
    this.#first = 0;
  }

  /** Drops the blocks that wait separately for `peer`. */
  forget(peer: LivePeer): void {
    this.#parkedCount -= this.#parked.get(peer)?.length ?? 0;
    this.#parked.delete(peer);
  }

  /** For how long the oldest push waits for `peer` because that was full, ms; 0 when none does. */
  parkedMs(peer: LivePeer, nowMs: number): number {
    const oldest = this.#parked.get(peer)?.[0];
    return oldest === undefined ? 0 : nowMs - oldest.atMs;
  }

  #park(push: Push): void {
    const waiting = this.#parked.get(push.peer);
    if (waiting === undefined) this.#parked.set(push.peer, [push]);
    else waiting.push(push);
    this.#parkedCount++;
  }
}
