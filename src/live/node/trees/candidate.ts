/** How good a parent a neighbour would be. */
import type { Conduct } from "../neighbour/conduct.ts";
import type { LivePeer } from "../neighbour/live-peer.ts";
import type { PieceWindow } from "../stream/piece-window.ts";
import { isOnPath, type Mark } from "../neighbour/place.ts";
import { POLICY } from "../policy.ts";
import type { StreamRate } from "../stream/stream-rate.ts";

/**
 * A peer that reports no place is not used as a parent when it is further behind the newest neighbour than this, ms.
 */
const MAX_LAG_MS = 3200;
const LEAST_LAG_PIECES = 12;
/** A lag up to this counts against no peer, ms: WINDOWs report whole pieces only, and only four times a second. */
const FREE_LAG_MS = 1050;
const FREE_LAG_PIECES = 4;
/** Each further part of this length counts as a step, up to `MAX_LAG_STEPS`, ms. */
const LAG_STEP_MS = 260;
const MAX_LAG_STEPS = 12;
/** Depth that is assumed of a peer that reports none. */
const UNTOLD_DEPTH = 12;

/** How deep a child of `peer` is on `substream`. */
export function depthAt(peer: LivePeer, substream: number): number {
  return peer.place?.depths[substream] ?? (peer.isSource ? 1 : UNTOLD_DEPTH);
}

/** True when `peer` receives `substream` through the member with our mark, by its path. */
export function isBelow({ place }: LivePeer, substream: number, mark: Mark): boolean {
  return place !== null && isOnPath(place.paths, substream, mark);
}

/**
 * True when it reports the same epoch as `window`, and does not lag. A peer that sent its PLACE needs no whole
 * pieces: in a crowd most peers are fed on some substreams only, and can pass those on.
 */
export function isUsable(peer: LivePeer, { window, rate }: { window: PieceWindow; rate: StreamRate }): boolean {
  if (peer.window?.epoch !== window.epoch) return false;
  if (peer.place !== null) return true;
  return peer.newestSeq >= window.base && peer.lagPieces <= rate.pieces(MAX_LAG_MS, LEAST_LAG_PIECES);
}

/** Returns the cost of `peer`, which feeds us `fed` substreams, as parent of another; lower is better, in steps: several parents are better than one, and near ones than far ones. */
export function costOf(
  peer: LivePeer,
  fed: number,
  { random, rate, conduct }: { random: () => number; rate: StreamRate; conduct: Conduct },
): number {
  const latePieces = Math.max(0, peer.lagPieces - rate.pieces(FREE_LAG_MS, FREE_LAG_PIECES));
  return (peer.rttMs ?? 100) / 100 + 0.3 * fed + 0.5 * random() +
    Math.min(MAX_LAG_STEPS, latePieces / rate.pieces(LAG_STEP_MS, 1)) +
    // A peer that merely claims to be near the source should cost a newcomer a few substreams, not all of them.
    (conduct.hasBrought(peer) ? 0 : POLICY.untriedSteps * fed);
}
