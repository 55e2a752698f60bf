/** What neighbours' WINDOWs say of pieces that we lack: since when they are about, and how common they are. */
import { windowHas, type WindowMessage } from "../messages.ts";
import type { LivePeer } from "./live-peer.ts";
import { isComplete, type PieceWindow } from "./piece-window.ts";
import { POLICY } from "./policy.ts";

/** Marks in `window` what `peer`, one of `peerCount`, has, had not `before`, and we lack as seen. */
export function noteWindow(
  peer: LivePeer,
  before: WindowMessage | null,
  window: PieceWindow,
  peerCount: number,
  nowMs: number,
): void {
  const told = peer.window;
  if (window.newest === null || told === null || told.epoch !== window.epoch) return;
  // What it told of too early to be marked is marked with the rest once we have come closer.
  const known = before !== null && before.epoch === told.epoch && peer.noted ? before : null;
  const limit = window.newest.seq + POLICY.maxPiecesAhead;
  peer.noted = peer.newestSeq <= limit;
  const last = Math.min(peer.newestSeq, limit);
  const common = Math.min(POLICY.commonPeers, Math.ceil(peerCount / 6));
  for (let seq = Math.max(window.solid, window.base, known?.solid ?? 0); seq <= last; seq++) {
    if (!windowHas(told, seq) || (known !== null && windowHas(known, seq))) continue;
    const entry = window.want(seq);
    if (entry === null || isComplete(entry)) continue;
    entry.seenMs ??= nowMs;
    if (++entry.seenBy >= common) entry.commonMs ??= nowMs;
  }
}
