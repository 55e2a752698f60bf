/** Which neighbour is of no use. */
import type { LivePeer } from "./live-peer.ts";
import { POLICY } from "./policy.ts";

/** The neighbour that has exchanged nothing with us for the longest time; null when all of `peers` are of use, or new. */
export function expendableOf(peers: Iterable<LivePeer>, nowMs: number): LivePeer | null {
  const beforeMs = nowMs - POLICY.settleMs;
  let found: LivePeer | null = null;
  for (const peer of peers) {
    if ((peer.parentMask | peer.pushMask) !== 0 || peer.requests.size > 0 || peer.connectedMs > beforeMs) continue;
    if (found === null || peer.connectedMs < found.connectedMs) found = peer;
  }
  return found;
}
