/** What speaks for a neighbour as a parent, and against it. */
import type { LivePeer } from "./live-peer.ts";
import type { PieceWindow } from "./piece-window.ts";
import { isOnPath, type Mark } from "./place.ts";
import { POLICY } from "./policy.ts";

/** A peer that tells no place is no parent further behind the newest neighbour than this, pieces. */
const MAX_LAG_PIECES = 12;
/** Depth that is assumed of a peer that tells none. */
const UNTOLD_DEPTH = 12;

/** How deep a child of `peer` is on `substream`. */
export function depthAt(peer: LivePeer, substream: number): number {
  return peer.place?.depths[substream] ?? (peer.info.role === "source" ? 1 : UNTOLD_DEPTH);
}

/** True when what `peer` passes on of `substream` comes by us, whose mark it is, as far as it tells. */
export function isBelow({ place }: LivePeer, substream: number, mark: Mark): boolean {
  return place !== null && isOnPath(place.paths, substream, mark);
}

/**
 * True when it tells of the same epoch as `window`, and does not lag. Who tells of its place need not have whole pieces:
 * in a crowd most are fed on some substreams only, and can pass those on.
 */
export function isUsable(peer: LivePeer, { epoch, base }: PieceWindow): boolean {
  if (peer.window?.epoch !== epoch) return false;
  return peer.place !== null || (peer.newestSeq >= base && peer.lagPieces <= MAX_LAG_PIECES);
}

/** Lower is better, in steps: several parents are better than one, near ones than far ones, proven ones than others. */
export function costOf(peer: LivePeer, { random, isWary }: { random: () => number; isWary: () => boolean }): number {
  return (peer.rttMs ?? 100) / 100 + 0.3 * bitCount(peer.parentMask) + 0.5 * random() +
    Math.min(MAX_LAG_PIECES, Math.max(0, peer.lagPieces - 4)) + (peer.isProven || !isWary() ? 0 : POLICY.unprovenSteps);
}

/** Bits set in a byte. */
function bitCount(mask: number): number {
  let count = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) count++;
  return count;
}
