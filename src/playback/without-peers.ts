/**
 * Starts that may use no peers (`disable_p2p`). Content that is neither here nor at a web seed is refused with a
 * reason.
 */
import { MillraceError } from "../errors.ts";
import type { Swarm } from "../swarm/types.ts";
import { type AnyMetainfo, isLive } from "../metainfo/live.ts";
import type { Magnet } from "../metainfo/types.ts";
import type { PlaybackSession } from "./session.ts";
import type { StartRequest } from "./start-request.ts";

/**
 * What the swarm has to know about a start. Throws `invalid_argument` for one without peers unless `metainfo` is known
 * and describes files.
 */
export function peerWishes(
  { withoutPeers = false }: Pick<StartRequest, "withoutPeers">,
  metainfo: AnyMetainfo | null,
): { readonly withoutPeers: boolean } {
  if (withoutPeers && metainfo === null) {
    throw new MillraceError("invalid_argument", "disable_p2p: only peers know this torrent; start its transport file");
  }
  if (withoutPeers && isLive(metainfo!)) {
    throw new MillraceError("invalid_argument", "disable_p2p: a broadcast comes from peers alone");
  }
  return { withoutPeers };
}

/** Whether a start gets the output of `running`. One that wants peers differently restarts it. */
export function mayJoin(running: PlaybackSession, request: StartRequest): boolean {
  if (!running.suits(request)) return false;
  if (running.withoutPeers === (request.withoutPeers ?? false)) return true;
  if (request.isTrial !== true) running.stop("restarted");
  return false;
}

/** Throws `invalid_argument` if a part of the torrent is missing and no web seed has it. Its metadata is known. */
export function requireOtherSources(swarm: Swarm, magnet: Magnet | undefined): void {
  const { webSeeds, httpSeeds = [], pieceCount } = swarm.metainfo!;
  if (webSeeds.length + httpSeeds.length > 0) return;
  if ((magnet?.webSeeds.length ?? 0) > 0 || swarm.status().havePieces === pieceCount) return;
  throw new MillraceError(
    "invalid_argument",
    "disable_p2p: this torrent has no web seed and is not completely in the cache",
  );
}
