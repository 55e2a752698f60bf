/** Assigns work: fills the pipes of peers with the blocks that the picker finds. */
import type { Core } from "./core.ts";
import type { PeerState } from "./peer-state.ts";
import type { Picker } from "./picker.ts";

/** A peer that has room, and the time it needs for one more block. */
interface Turn {
  peer: PeerState;
  etaMs: number;
}

/** The soonest at the end. */
const latestFirst = (a: Turn, b: Turn): number => b.etaMs - a.etaMs || b.peer.id - a.peer.id;

/** Gives free blocks to peers with room. */
export class Dispatch {
  readonly #core: Core;
  readonly #picker: Picker;
  readonly #order: Turn[] = [];
  /** Used again in each round, which comes with every block; at most one for each peer. */
  readonly #turns: Turn[] = [];

  constructor(core: Core, picker: Picker) {
    this.#core = core;
    this.#picker = picker;
  }

  /** Fills one peer's pipe. */
  one(peer: PeerState, nowMs: number): void {
    const core = this.#core;
    if (core.idle.has(peer)) return;
    while (this.#give(peer, nowMs));
  }

  #give(peer: PeerState, nowMs: number): boolean {
    const core = this.#core;
    const picker = this.#picker;
    if (!peer.takesRequests) return false;
    const deepest = peer.room(core.slackMs(peer), core.pool.share, nowMs);
    if (deepest === "none") return false;
    // Until somebody has sent something, whatever else a peer is asked for could keep it from what is awaited for seconds.
    const isNew = core.isNew(nowMs);
    if (isNew && peer.outstanding > 0 && !peer.isBrisk(nowMs)) return false;
    const room = isNew ? "awaited" : deepest;
    if (!picker.pick(peer, peer.etaMs(core.pool.unknownRate, nowMs), room, nowMs)) {
      if (room === "any") core.idle.add(peer);
      return false;
    }
    core.request(peer, picker.part!, picker.block, nowMs, picker.bytes);
    return true;
  }

  /** Fills all pipes, block by block, the peer that can deliver soonest first. */
  all(nowMs: number): void {
    const core = this.#core;
    const order = this.#order;
    if (!core.hasWork()) return;
    core.pool.survey(nowMs);
    order.length = 0;
    for (const peer of core.peers.values()) {
      if (!peer.takesRequests || core.idle.has(peer)) continue;
      if (peer.room(core.slackMs(peer), core.pool.share, nowMs) === "none") continue;
      const etaMs = peer.etaMs(core.pool.unknownRate, nowMs);
      const turn = this.#turns[order.length] ??= { peer, etaMs };
      turn.peer = peer;
      turn.etaMs = etaMs;
      order.push(turn);
    }
    order.sort(latestFirst);
    while (order.length > 0) {
      const turn = order[order.length - 1]!;
      core.pool.lead(turn.etaMs);
      if (!this.#give(turn.peer, nowMs)) {
        order.pop();
        continue;
      }
      turn.etaMs = turn.peer.etaMs(core.pool.unknownRate, nowMs);
      for (let i = order.length - 1; i > 0 && order[i - 1]!.etaMs < order[i]!.etaMs; i--) {
        const other = order[i - 1]!;
        order[i - 1] = order[i]!;
        order[i] = other;
      }
    }
  }
}
