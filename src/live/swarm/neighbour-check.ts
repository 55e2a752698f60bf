/** When a connection of a live swarm is given up. */
import type { LiveNode } from "../node/live-node.ts";
import type { LivePeerSession } from "./live-session.ts";

/** A connection without `live1` may stay this long, ms: it fetches the metadata. */
const STRANGER_MS = 15_000;
/** Members ping every 10 s; one that is silent for this long is gone, ms. */
const SILENT_MS = 35_000;
/** A neighbour that accepts none of the bytes waiting for it is dropped after this, ms. */
const STALLED_MS = 5_000;

/**
 * Members report each piece. A member that connects again while its first connection was quiet for this long has lost
 * that one, ms.
 */
const QUIET_MS = 3_000;

/** Whether a connection is over when its peer connects again: it only fetched the metadata, or is dead without knowing it. */
export function isOver(session: LivePeerSession, nowMs: number): boolean {
  if (session.extensions !== null && session.peer === null) return true;
  return nowMs - session.link!.lastReceivedMs > QUIET_MS;
}

/** Why `session` should end, and whether the way to it may be lost, so that it is dialled again; null when nothing is wrong. */
export function faultOf(
  session: LivePeerSession,
  node: LiveNode,
  nowMs: number,
): { readonly reason: string; readonly isGone: boolean } | null {
  const { peer, link, startedMs } = session;
  if (!session.isReady) return null;
  if (session.first !== null) return faultOfSpare(session, session.first, node, nowMs);
  if (peer === null && nowMs - startedMs > STRANGER_MS) return { reason: "not a member", isGone: false };
  if (nowMs - link!.lastReceivedMs > SILENT_MS) return { reason: "silent", isGone: true };
  if (peer !== null && node.stalledMs(peer) > STALLED_MS) return { reason: "takes nothing", isGone: true };
  return null;
}

/** The same for another connection to the member of `first`: nothing is lost with it. */
function faultOfSpare(
  session: LivePeerSession,
  first: LivePeerSession,
  node: LiveNode,
  nowMs: number,
): { readonly reason: string; readonly isGone: boolean } | null {
  if (!first.spares.includes(session)) {
    return nowMs - session.startedMs > STRANGER_MS ? { reason: "not a member", isGone: false } : null;
  }
  if (nowMs - session.link!.lastReceivedMs > SILENT_MS) return { reason: "silent", isGone: false };
  const stalledMs = session.lane === null ? 0 : node.laneStalledMs(session.lane);
  return stalledMs > STALLED_MS ? { reason: "takes nothing", isGone: false } : null;
}
