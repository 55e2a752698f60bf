/** Which neighbour is asked for a substream: as near to the source as accepts us. */
import type { Branch } from "./branch.ts";
import { costOf, depthAt, isBelow, isUsable } from "./candidate.ts";
import type { LivePeer } from "./live-peer.ts";
import type { PieceWindow } from "./piece-window.ts";
import { type Mark, MAX_DEPTH, NEEDY, UNFED } from "./place.ts";
import { POLICY } from "./policy.ts";
import { isSilent } from "./silence.ts";
import type { StreamRate } from "./stream-rate.ts";

/** What the choice depends on. */
export interface ChoiceView {
  readonly window: PieceWindow;
  readonly rate: StreamRate;
  readonly random: () => number;
  readonly peers: () => Iterable<LivePeer>;
  /** Own uplink in eighths of the bitrate: what bars of others are compared with. */
  readonly upEighths: () => number;
  /** True while there are poisoners about. */
  readonly isWary: () => boolean;
  /** Our mark in the paths of those below us. */
  readonly mark: Mark;
}

/**
 * The best parent of depth at most `maxDepth` for `branch`; null without. `mayUse` tells which neighbours are left for
 * others for a moment.
 */
export function chooseParent(
  branch: Branch,
  view: ChoiceView,
  nowMs: number,
  maxDepth: number,
  mayUse: (peer: LivePeer) => boolean,
): LivePeer | null {
  const { substream, bit } = branch;
  const hasParent = branch.depth !== UNFED && branch.noticeUntilMs === null;
  const upEighths = view.upEighths();
  const bar = hasParent && upEighths === NEEDY ? 0 : upEighths;
  const needy = hasParent ? 0 : NEEDY;
  let best: LivePeer | null = null;
  let bestCost = Infinity;
  for (const peer of view.peers()) {
    if (!mayUse(peer)) continue;
    if (((peer.childMask | peer.parentMask) & bit) !== 0 || nowMs < peer.refusedUntilMs[substream]!) continue;
    if (peer.closed || !isUsable(peer, view) || peer.isSnubbed(nowMs)) continue;
    const isBarren = nowMs < peer.barrenUntilMs;
    if (isSilent(peer, nowMs) || (isBarren && hasParent)) continue;
    const { place } = peer;
    if (place !== null && place.bars[substream]! > bar && place.bars[substream]! !== needy) continue;
    const depth = depthAt(peer, substream);
    if (depth > MAX_DEPTH || depth > maxDepth || isBelow(peer, substream, view.mark)) continue;
    // It may only have been busy: a member without a parent asks it when there is hardly another.
    const believed = peer.hasBrought ? depth : Math.max(depth, POLICY.untriedDepth);
    const cost = believed + costOf(peer, view) + (isBarren ? POLICY.barrenSteps : 0);
    if (cost < bestCost) [best, bestCost] = [peer, cost];
  }
  return best;
}
