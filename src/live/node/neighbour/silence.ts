/**
 * Notices neighbours that have vanished without closing their connection: a pulled cable, a sleeping laptop. While the
 * stream goes on, members say something at least every `POLICY.sparseWindowMs`. So silence shows that a neighbour is
 * gone long before its connection ends.
 */
import type { LivePeer } from "./live-peer.ts";
import type { NodeView } from "./node-view.ts";
import { POLICY } from "../policy.ts";

/** Finds neighbours that have been silent for too long while the stream went on. */
export class Silence {
  readonly #view: NodeView;
  #newestSeq = -1;

  constructor(view: NodeView) {
    this.#view = view;
  }

  /** Notes which neighbours have something to say: all of them when the stream has moved on. Once a tick. */
  tick(nowMs: number): void {
    const seq = this.#view.window.newest?.seq ?? -1;
    // Headers are signed: nobody can make others look silent by reporting pieces that do not exist.
    if (seq === this.#newestSeq) return;
    this.#newestSeq = seq;
    for (const peer of this.#view.peers) if (peer.dueMs <= peer.heardMs) peer.dueMs = nowMs;
  }
}

/** For how long `peer` has said nothing although it had something to say, ms; 0 when it has spoken since. */
export function silentMs(peer: LivePeer, nowMs: number): number {
  return peer.dueMs > peer.heardMs ? nowMs - peer.dueMs : 0;
}

/** True when `peer` may be gone, so that others are asked instead: few that are there say nothing for this long. */
export function isQuiet(peer: LivePeer, nowMs: number): boolean {
  return peer.dueMs > peer.heardMs && nowMs - peer.heardMs >= POLICY.silentMs;
}

/** True when `peer` has been silent for too long to be still there. */
export function isSilent(peer: LivePeer, nowMs: number): boolean {
  return silentMs(peer, nowMs) >= POLICY.silentMs;
}
