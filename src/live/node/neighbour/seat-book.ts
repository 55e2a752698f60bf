/** What other parts may ask about our children: `Seats` answers, and only the rules of our children change it. */
import type { LivePeer } from "./live-peer.ts";

/** Answers which substreams we push to which neighbour. A mask has a bit per substream. */
export interface SeatBook {
  /** True when `peer` is our child on `substream`. */
  has(peer: LivePeer, substream: number): boolean;
  /** True when `peer` is our child on any substream. */
  hasAny(peer: LivePeer): boolean;
  /** Substreams on which `peer` is our child. */
  mask(peer: LivePeer): number;
  /** True when `peer` gets `substream` from us, as a child or for a moment after it was one. */
  pushes(peer: LivePeer, substream: number): boolean;
  /** True when `peer` gets any substream from us. */
  pushesAny(peer: LivePeer): boolean;
  /** Substreams that `peer` gets from us. */
  pushMask(peer: LivePeer): number;
}
