/** Connects a torrent's data path, which knows sources only by number, to its peers and web seeds. */
import { MillraceError } from "../errors.ts";
import type { Peers } from "./peers.ts";
import type { TransferHost } from "./transfer.ts";
import type { WebSeeds } from "./web-seeds.ts";

/** The host of a torrent's `Transfer`. `more` is what the swarm does itself; its `lost` runs before any peer is told. */
export function transferHost(
  peers: Peers,
  webSeeds: WebSeeds,
  more: Pick<TransferHost, "verified" | "trouble" | "lost">,
): TransferHost {
  return {
    ...more,
    request: (peer, piece, offset, length) => peers.get(peer)?.link?.request(piece, offset, length),
    cancel: (peer, piece, offset, length) => peers.get(peer)?.link?.cancel(piece, offset, length),
    interested: (peer, value) => peers.get(peer)?.setInterested(value),
    drop: (peer) => peers.get(peer)?.drop(new MillraceError("timeout", "the peer was silent too long")),
    suspect: (source) => peers.suspect(source) ?? webSeeds.suspect(source),
    convicted: (suspect) => void (webSeeds.convict(suspect) || peers.convict(suspect)),
    canAsk: (source, piece) => {
      const session = peers.get(source);
      return session !== undefined && session.isReady && !session.peerChoking && (session.pieces?.has(piece) ?? false);
    },
    congested: (value) => peers.setCongested(value),
    beforeTick: (nowMs) => {
      for (const session of peers.sessions) session.reportProgress(nowMs);
    },
    lost: (piece) => {
      more.lost(piece);
      peers.broadcastLost(piece);
      peers.wakeSeeds();
    },
  };
}
