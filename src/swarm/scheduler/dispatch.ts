/** Assigns work: fills the pipes of peers with the blocks that the picker finds. */
import type { Core } from "./core.ts";
import type { PeerState } from "./peer-state.ts";
import { Picker } from "./picker.ts";

/** By the time a peer needs for one more block, the soonest at the end. */
const latestFirst = (a: PeerState, b: PeerState): number => b.sortMs - a.sortMs || b.id - a.id;

/** Gives free blocks to peers with room. */
export class Dispatch {
  readonly #core: Core;
  readonly #picker: Picker;
  readonly #order: PeerState[] = [];

  constructor(core: Core) {
    this.#core = core;
    this.#picker = new Picker(core);
  }

  /** Fills one peer's pipe. */
  one(peer: PeerState, nowMs: number): void {
    const core = this.#core;
    if (peer.idleVersion === core.version) return;
    while (this.#give(peer, nowMs));
  }

  #give(peer: PeerState, nowMs: number): boolean {
    const core = this.#core;
    const picker = this.#picker;
    if (!peer.takesRequests) return false;
    const deepest = peer.room(core.slackMs(peer), core.share, nowMs);
    if (deepest === "none") return false;
    // Until somebody has sent something, whatever else a peer is asked for could keep it from what is awaited for seconds.
    const isNew = core.isNew(nowMs);
    if (isNew && peer.outstanding > 0 && !peer.isBrisk(nowMs)) return false;
    const room = isNew ? "awaited" : deepest;
    if (!picker.pick(peer, peer.etaMs(core.unknownRate, nowMs), room, nowMs)) {
      if (room === "any") peer.idleVersion = core.version;
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
    core.survey(nowMs);
    order.length = 0;
    for (const peer of core.peers.values()) {
      if (!peer.takesRequests || peer.idleVersion === core.version) continue;
      if (peer.room(core.slackMs(peer), core.share, nowMs) === "none") continue;
      peer.sortMs = peer.etaMs(core.unknownRate, nowMs);
      order.push(peer);
    }
    order.sort(latestFirst);
    while (order.length > 0) {
      const peer = order[order.length - 1]!;
      core.bestEtaMs = peer.sortMs;
      if (!this.#give(peer, nowMs)) {
        order.pop();
        continue;
      }
      peer.sortMs = peer.etaMs(core.unknownRate, nowMs);
      for (let i = order.length - 1; i > 0 && order[i - 1]!.sortMs < order[i]!.sortMs; i--) {
        const other = order[i - 1]!;
        order[i - 1] = order[i]!;
        order[i] = other;
      }
    }
  }
}
