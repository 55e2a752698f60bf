/** Evaluates neighbours' WINDOWs for pieces that we lack: since when these exist, and how common they are. */
import { grave } from "../../../wire/offence.ts";
import { windowHas, type WindowMessage } from "../../messages.ts";
import type { LivePeer } from "../neighbour/live-peer.ts";
import type { NodeView } from "../neighbour/node-view.ts";
import { Notes } from "../neighbour/notes.ts";
import { Allowance } from "../../../bytes/allowance.ts";
import { isComplete } from "../stream/piece-window.ts";
import { BOUNDS } from "../neighbour/bounds.ts";
import { POLICY } from "../policy.ts";

/** The WINDOWs of a neighbour. */
interface Windows {
  count: number;
  readonly allowance: Allowance;
  /** The last one has not been examined yet. */
  isUnread: boolean;
  /** The last one that was examined; null when it reported pieces beyond reach. */
  noted: WindowMessage | null;
}

/** Marks pieces of a window as seen. */
export class Sightings {
  readonly #view: NodeView;
  readonly #windows = new Notes<Windows>(({ connectedMs }) => ({
    count: 0,
    allowance: new Allowance(BOUNDS.windowsPerS, BOUNDS.windowsPerS, connectedMs),
    isUnread: false,
    noted: null,
  }));

  constructor(view: NodeView) {
    this.#view = view;
  }

  /** `peer` sent a WINDOW. Throws `protocol_violation` when no member could have sent so many. */
  told(peer: LivePeer, message: WindowMessage, nowMs: number): void {
    const connectedS = (nowMs - peer.connectedMs) / 1000;
    const windows = this.#windows.of(peer);
    if (++windows.count > BOUNDS.windowBacklog + BOUNDS.windowsPerS * connectedS) {
      throw grave("flood", "a flood of WINDOWs");
    }
    peer.setWindow(message);
    const { newest } = this.#view.window;
    if (newest === null) return;
    peer.lagPieces += (Math.max(0, newest.seq - peer.newestSeq) - peer.lagPieces) * 0.3;
    if (!windows.isUnread) this.#read(peer, nowMs);
    else this.#view.counters.skippedWindows++;
  }

  /** Reads the WINDOWs that were deferred. The last WINDOW of a peer replaces all earlier ones. */
  tick(nowMs: number): void {
    for (const peer of this.#view.peers) if (this.#windows.of(peer).isUnread) this.#read(peer, nowMs);
  }

  /** Marks all pieces again: the member now looks for a different stream. */
  noteAll(nowMs: number): void {
    for (const peer of this.#view.peers) {
      this.#windows.of(peer).noted = null;
      this.#note(peer, nowMs);
    }
  }

  #read(peer: LivePeer, nowMs: number): void {
    const windows = this.#windows.of(peer);
    windows.isUnread = !windows.allowance.take(1, nowMs);
    if (!windows.isUnread) this.#note(peer, nowMs);
  }

  /** Marks the pieces that we lack and that the last WINDOW of `peer` reports, but the one before it did not. */
  #note(peer: LivePeer, nowMs: number): void {
    const { window, peers, rate } = this.#view;
    const told = peer.window;
    if (window.newest === null || told === null || told.epoch !== window.epoch) return;
    const windows = this.#windows.of(peer);
    const before = windows.noted;
    const limit = window.newest.seq + rate.pieces(POLICY.reachMs, POLICY.leastPiecesInReach);
    // Pieces reported too early to be marked are marked with the rest once we have come closer.
    windows.noted = peer.newestSeq <= limit ? told : null;
    const last = Math.min(peer.newestSeq, limit);
    const common = Math.min(POLICY.quorum, Math.ceil(peers.size / 6));
    for (let seq = Math.max(window.solid, window.base, before?.solid ?? 0); seq <= last; seq++) {
      if (!windowHas(told, seq) || (before !== null && windowHas(before, seq))) continue;
      const entry = window.want(seq);
      if (entry === null || isComplete(entry)) continue;
      entry.seenMs ??= nowMs;
      if (++entry.seenBy >= common) entry.commonMs ??= nowMs;
    }
  }
}
