/** What lying members of a live swarm say and keep: for simulated ones, and for real programs in the network of `live-wan`. */
import type { PlaceMessage } from "../../src/live/messages.ts";
import { CLOSED } from "../../src/live/node/neighbour/place.ts";

/**
 * Members that lie. All of them report forty times the bitrate, answer proofs and PINGs, and keep what they should pass
 * on, except that a `flapper` passes it on for four seconds of eight. `closed` takes no children; a `sinkhole`
 * says that it is the source and has room; a `pathpoison` has room one step from the source, and ones in all paths; a
 * `clique` has room there, too, and its members tell one another their tags and vouch for those that have places at the source.
 */
export type LiarKind = "closed" | "sinkhole" | "flapper" | "pathpoison" | "clique";

/** The up-link that all report, in bitrates. */
export const LIAR_UP_SHARE = 40;
const FLAP_MS = 4000;

/** What a liar sends instead of `place`. */
export function liedPlace(place: PlaceMessage, kind: LiarKind, upBytesPerS: number): PlaceMessage {
  const { depths, bars, paths } = place;
  if (kind === "closed") bars.fill(CLOSED);
  if (kind !== "closed" && kind !== "flapper") {
    depths.fill(1);
    bars.fill(0);
  }
  if (kind === "pathpoison") paths.fill(0xffffffff);
  const pathMask = kind === "pathpoison" || kind === "clique" ? 0xff : place.pathMask;
  return { ...place, upBytesPerS, pathMask };
}

/** True when a liar keeps what it should pass on at `nowMs`, by any clock. */
export function keepsBlocks(kind: LiarKind, nowMs: number): boolean {
  return kind !== "flapper" || Math.floor(nowMs / FLAP_MS) % 2 === 1;
}
