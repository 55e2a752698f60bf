/** The members of a broadcast that we are connected to, as shown to people. */
import type { LiveNode } from "../node/live-node.ts";
import type { LivePeer } from "../node/neighbour/live-peer.ts";

/** Most members in one list, so that the result stays small. */
export const MAX_SHOWN_MEMBERS = 50;

/** One of them. */
export interface MemberFigures {
  /** `host:port`, with brackets around IPv6. */
  readonly address: string;
  readonly isSource: boolean;
  /** Substreams that it pushes to us, and that we push to it. */
  readonly feedsUs: readonly number[];
  readonly fedByUs: readonly number[];
  /** How far behind the newest member it is, pieces. */
  readonly lagPieces: number;
  /** null before it is known. */
  readonly rttMs: number | null;
  /** Its uplink as it reports it, bytes per second; null when it does not. */
  readonly uplinkBytesPerSecond: number | null;
}

/** Figures of `peer`, a neighbour of `node` at `host` and `port`. */
export function memberFigures(
  peer: LivePeer,
  node: Pick<LiveNode, "seats" | "parents">,
  { host, port }: { host: string; port: number },
): MemberFigures {
  return {
    address: `${host.includes(":") ? `[${host}]` : host}:${port}`,
    isSource: peer.isSource,
    feedsUs: substreams(node.parents.mask(peer)),
    fedByUs: substreams(node.seats.pushMask(peer)),
    lagPieces: Math.round(peer.lagPieces),
    rttMs: peer.rttMs === null ? null : Math.round(peer.rttMs),
    uplinkBytesPerSecond: peer.upBytesPerS,
  };
}

function substreams(mask: number): number[] {
  return Array.from({ length: 8 }, (_, n) => n).filter((n) => (mask & (1 << n)) !== 0);
}
