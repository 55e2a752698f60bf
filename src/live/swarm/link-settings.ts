/** What the connections of a live swarm announce about this engine. */
import type { SwarmContext } from "../../swarm/context.ts";
import type { LiveMetainfo } from "../../metainfo/live.ts";
import type { LinkSettings } from "../../wire/options.ts";
import type { LiveOffer } from "../../wire/types.ts";
import { POLICY } from "../node/policy.ts";

/** The settings of a connection that begins now; `pex`: members exchange addresses of peers. */
export function linkSettings(
  context: SwarmContext,
  metainfo: LiveMetainfo,
  offer: LiveOffer,
  pex: boolean,
): LinkSettings {
  return {
    infohash: metainfo.infohash,
    peerId: context.peerId,
    dht: context.discovery?.dhtPort != null && !metainfo.isPrivate,
    pex,
    listenPort: context.listenPort(),
    infoBytes: metainfo.infoBytes,
    requestQueueLimit: POLICY.requestQueueLimit,
    live: offer,
  };
}
