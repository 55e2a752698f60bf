/** Which neighbour is of no use. */
import type { LivePeer } from "./live-peer.ts";
import type { NodeView } from "./node-view.ts";
import { POLICY } from "../policy.ts";

/**
 * The neighbour of no use that let us down most often, of those the one that has exchanged nothing with us for the longest
 * time; null when all are of use, or new. Parted by age alone, liars that dial again and again fill the links of
 * a source that has few. `isUsed`: something is pushed between us and a neighbour.
 */
export function expendableOf(
  { peers, conduct }: NodeView,
  isUsed: (peer: LivePeer) => boolean,
  nowMs: number,
): LivePeer | null {
  const beforeMs = nowMs - POLICY.settleMs;
  let found: LivePeer | null = null;
  let foundDoubts = 0;
  for (const peer of peers) {
    if (peer.requests.size > 0 || peer.connectedMs > beforeMs || isUsed(peer)) continue;
    const doubts = conduct.doubts(peer, nowMs);
    const isWorse = found === null || doubts > foundDoubts ||
      (doubts === foundDoubts && peer.connectedMs < found.connectedMs);
    if (isWorse) [found, foundDoubts] = [peer, doubts];
  }
  return found;
}
