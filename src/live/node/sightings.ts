/** What neighbours' WINDOWs say of pieces that we lack: since when they are about, and how common they are. */
import { MillraceError } from "../../errors.ts";
import { windowHas, type WindowMessage } from "../messages.ts";
import type { LiveCounters } from "./live-counters.ts";
import type { LivePeer } from "./live-peer.ts";
import { isComplete, type PieceWindow } from "./piece-window.ts";
import { POLICY } from "./policy.ts";
import type { StreamRate } from "./stream-rate.ts";

/** Marks pieces of a window as seen. */
export class Sightings {
  private readonly window: PieceWindow;
  private readonly peers: ReadonlySet<LivePeer>;
  private readonly counters: LiveCounters;
  private readonly rate: StreamRate;

  constructor(window: PieceWindow, rate: StreamRate, peers: ReadonlySet<LivePeer>, counters: LiveCounters) {
    this.window = window;
    this.rate = rate;
    this.peers = peers;
    this.counters = counters;
  }

  /** `peer` sent a WINDOW. Throws `protocol_violation` when no member could have sent so many. */
  told(peer: LivePeer, message: WindowMessage, nowMs: number): void {
    const connectedS = (nowMs - peer.connectedMs) / 1000;
    if (++peer.windows > POLICY.windowBacklog + POLICY.windowsPerS * connectedS) {
      throw new MillraceError("protocol_violation", "a flood of WINDOWs");
    }
    peer.setWindow(message);
    const { newest } = this.window;
    if (newest === null) return;
    peer.lagPieces += (Math.max(0, newest.seq - peer.newestSeq) - peer.lagPieces) * 0.3;
    if (!peer.unread) this.read(peer, nowMs);
    else this.counters.skippedWindows++;
  }

  /** Reads what was left for later: of many WINDOWs the last one tells all. */
  tick(nowMs: number): void {
    for (const peer of this.peers) if (peer.unread) this.read(peer, nowMs);
  }

  /** Another stream than before is looked for. */
  noteAll(nowMs: number): void {
    for (const peer of this.peers) {
      peer.noted = null;
      this.note(peer, nowMs);
    }
  }

  private read(peer: LivePeer, nowMs: number): void {
    peer.unread = !peer.windowBucket.take(nowMs);
    if (!peer.unread) this.note(peer, nowMs);
  }

  /** Marks what the last WINDOW of `peer` tells of, the one noted before it did not, and we lack. */
  private note(peer: LivePeer, nowMs: number): void {
    const { window, peers } = this;
    const told = peer.window;
    if (window.newest === null || told === null || told.epoch !== window.epoch) return;
    const before = peer.noted;
    const limit = window.newest.seq + this.rate.pieces(POLICY.aheadMs, POLICY.leastPiecesAhead);
    // What it tells of too early to be marked is marked with the rest once we have come closer.
    peer.noted = peer.newestSeq <= limit ? told : null;
    const last = Math.min(peer.newestSeq, limit);
    const common = Math.min(POLICY.commonPeers, Math.ceil(peers.size / 6));
    for (let seq = Math.max(window.solid, window.base, before?.solid ?? 0); seq <= last; seq++) {
      if (!windowHas(told, seq) || (before !== null && windowHas(before, seq))) continue;
      const entry = window.want(seq);
      if (entry === null || isComplete(entry)) continue;
      entry.seenMs ??= nowMs;
      if (++entry.seenBy >= common) entry.commonMs ??= nowMs;
    }
  }
}
