/** Peers for which there was no work, so that they are not looked at again before something changed. */
import type { PeerState } from "./peer-state.ts";

/** The peers that found nothing to fetch since the last change. */
export class IdlePeers {
  /** Counts the changes that may give an idle peer something to do. */
  #changes = 0;
  readonly #idleAt = new Map<PeerState, number>();

  /** Whether there was no work for it, and nothing changed since. */
  has(peer: PeerState): boolean {
    return this.#idleAt.get(peer) === this.#changes;
  }

  /** There was no work for it. */
  add(peer: PeerState): void {
    this.#idleAt.set(peer, this.#changes);
  }

  /** The peer may be given more than before; also when it leaves. */
  wake(peer: PeerState): void {
    this.#idleAt.delete(peer);
  }

  /** Something changed that may give any peer something to do. */
  wakeAll(): void {
    this.#changes++;
  }
}
