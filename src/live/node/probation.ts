/**
 * Whether a neighbour is worth being fed. Who poisons shows it only to those whom it sends something, and its parents get
 * nothing from it: they would feed it for ever, in the place of one that passes on. So whoever asks for a place and says
 * that it has pieces sends a block first that is here already; who has none yet does so as soon as it tells of some. Proof
 * is asked for while there are poisoners about: for a minute from each false block on.
 */
import type { LivePeer } from "./live-peer.ts";
import { isComplete, type PieceWindow } from "./piece-window.ts";
import { POLICY } from "./policy.ts";

/** Pieces, from the newest that both have known of back, among which one is looked for that both have. */
const LOOK_BACK_PIECES = 8;

/** What probation works with. */
export interface ProbationOptions {
  readonly window: PieceWindow;
  /** True while proof is asked for. */
  readonly isWary: () => boolean;
  /** Asks `peer` for a block of piece `seq`, unless it is asked for something already. */
  readonly ask: (peer: LivePeer, seq: number, nowMs: number) => void;
  /** A subscription waited too long for the proof. */
  readonly refuse: (peer: LivePeer, mask: number) => void;
}

/** See the module. */
export class Probation {
  private readonly options: ProbationOptions;

  constructor(options: ProbationOptions) {
    this.options = options;
  }

  /** True when the subscription waits until `peer` has shown a block: one that has pieces, and uplink, and gave none. */
  holds(peer: LivePeer, mask: number, from: number, nowMs: number): boolean {
    const seq = this.common(peer);
    if (seq === null) return false;
    if (peer.heldMask === 0) peer.heldUntilMs = nowMs + POLICY.requestTimeoutMs;
    peer.heldFrom = peer.heldMask === 0 ? from : Math.min(peer.heldFrom, from);
    peer.heldMask |= mask;
    this.options.ask(peer, seq, nowMs);
    return true;
  }

  /** Puts to the proof who has given none: those who are to be fed, and those who may be asked to feed. */
  tick(peers: Iterable<LivePeer>, nowMs: number): void {
    for (const peer of peers) {
      const seq = this.common(peer);
      if (seq !== null) this.options.ask(peer, seq, nowMs);
      if (peer.heldMask === 0 || nowMs < peer.heldUntilMs) continue;
      this.options.refuse(peer, peer.heldMask);
      peer.heldMask = 0;
    }
  }

  /** A piece to prove itself with; null when there is none, or no need. */
  private common(peer: LivePeer): number | null {
    if (peer.isProven || peer.upBytesPerS === 0 || !this.options.isWary()) return null;
    const { window } = this.options;
    const newest = Math.min(peer.newestSeq, window.newest?.seq ?? -1);
    for (let seq = newest; seq > newest - LOOK_BACK_PIECES; seq--) {
      const entry = window.get(seq);
      if (isComplete(entry) && entry.blocks.length > 0 && peer.has(seq)) return seq;
    }
    return null;
  }
}
