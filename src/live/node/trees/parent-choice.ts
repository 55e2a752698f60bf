/** Which neighbour is asked for a substream: the nearest to the source that accepts us. */
import type { Branch } from "./branch.ts";
import { costOf, depthAt, isBelow, isUsable } from "./candidate.ts";
import type { LivePeer } from "../neighbour/live-peer.ts";
import type { NodeView } from "../neighbour/node-view.ts";
import { MAX_DEPTH, NEEDY, UNFED } from "../neighbour/place.ts";
import { POLICY } from "../policy.ts";
import { isQuiet } from "../neighbour/silence.ts";

/**
 * The best parent of depth at most `maxDepth` for `branch`, one of `branches`; null without. `upEighths`: our uplink in eighths of the
 * bitrate, to be compared with the bars of others. `mayUse` is false for a neighbour that is not to be asked at the
 * moment: it refused, or is reserved for other members.
 */
export function chooseParent(
  branch: Branch,
  branches: readonly Branch[],
  view: NodeView,
  upEighths: number,
  nowMs: number,
  maxDepth: number,
  mayUse: (peer: LivePeer) => boolean,
): LivePeer | null {
  const { substream } = branch;
  const { conduct, seats } = view;
  const hasParent = branch.depth !== UNFED && branch.noticeUntilMs === null;
  const bar = hasParent && upEighths === NEEDY ? 0 : upEighths;
  const needy = hasParent ? 0 : NEEDY;
  let best: LivePeer | null = null;
  let bestCost = Infinity;
  for (const peer of view.peers) {
    if (!mayUse(peer)) continue;
    if (seats.has(peer, substream) || branch.isFrom(peer)) continue;
    if (peer.closed || !isUsable(peer, view) || conduct.isSnubbed(peer, nowMs)) continue;
    const isBarren = conduct.isBarren(peer, nowMs);
    if (isQuiet(peer, nowMs) || (isBarren && hasParent)) continue;
    const { place } = peer;
    if (place !== null && place.bars[substream]! > bar && place.bars[substream]! !== needy) continue;
    const depth = depthAt(peer, substream);
    const doubt = POLICY.doubtSteps * conduct.barrenTimes(peer, nowMs);
    if (depth > MAX_DEPTH || depth + doubt > maxDepth || isBelow(peer, substream, view.mark)) continue;
    // It may only have been busy: a member without a parent asks it when there is hardly another.
    const believed = conduct.hasBrought(peer) ? depth : Math.max(depth, POLICY.untriedDepth);
    const fed = branches.reduce((count, one) => count + Number(one.isFrom(peer)), 0);
    const cost = believed + doubt + costOf(peer, fed, view);
    if (cost < bestCost) [best, bestCost] = [peer, cost];
  }
  return best;
}
