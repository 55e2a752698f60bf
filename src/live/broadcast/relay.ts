/** A support node: stays in the swarm of a broadcast and passes it on, without a reader. */
import { MillraceError } from "../../errors.ts";
import { contentId } from "../../metainfo/content-id.ts";
import { type AnyMetainfo, isLive } from "../../metainfo/live.ts";
import type { Magnet } from "../../metainfo/types.ts";
import type { Relay } from "./broadcast-types.ts";
import type { LiveSwarmManager } from "../swarm/live-swarms.ts";

/** Joins; `engine.relay`. Rejects with `invalid_argument` when `metainfo` is not that of a broadcast. */
export async function startRelay(
  swarms: LiveSwarmManager,
  { metainfo, magnet }: { readonly metainfo: AnyMetainfo; readonly magnet?: Magnet },
): Promise<Relay> {
  if (!isLive(metainfo)) throw new MillraceError("invalid_argument", "this is no broadcast: only those can be relayed");
  const id = await contentId(metainfo);
  const lease = swarms.acquire({ metainfo, ...(magnet && { magnet }) });
  return {
    metainfo,
    contentId: id,
    status: () => lease.swarm.status(),
    close: () => {
      lease.release();
      return Promise.resolve();
    },
  };
}
