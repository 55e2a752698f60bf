/** All broadcasts of an engine, received and sent. */
import { MillraceError } from "../../errors.ts";
import type { Lease } from "../../swarm/leases.ts";
import type { TorrentSwarmManager } from "../../swarm/manager.ts";
import type { LiveMetainfo } from "../../metainfo/live.ts";
import type { HeaderSigner } from "../signer.ts";
import type { LiveSwarms, LiveTarget } from "./live-source.ts";
import { LiveSwarm } from "./live-swarm.ts";

/** Options of `LiveSwarmManager`. */
export interface LiveSwarmManagerOptions {
  /** Its table holds the broadcasts, too, and closes them. */
  readonly manager: Pick<TorrentSwarmManager, "contextOf" | "swarms">;
  /** A swarm was joined. */
  readonly joined?: (swarm: LiveSwarm) => void;
  /** Called after the swarm was left. */
  readonly left?: (swarm: LiveSwarm) => void;
}

/** Joins broadcasts, and shares them between leases. */
export class LiveSwarmManager implements LiveSwarms {
  readonly #options: LiveSwarmManagerOptions;

  constructor(options: LiveSwarmManagerOptions) {
    this.#options = options;
  }

  /** Running swarms. */
  list(): readonly LiveSwarm[] {
    return this.#options.manager.swarms.list().filter((swarm) => swarm instanceof LiveSwarm);
  }

  running(infohashHex: string): LiveMetainfo | null {
    return this.#find(infohashHex)?.metainfo ?? null;
  }

  acquire(target: LiveTarget): Lease<LiveSwarm> {
    const swarm = this.#find(target.metainfo.infohashHex) ?? this.#join(target, null, 0);
    swarm.learn(target);
    return this.#options.manager.swarms.lease(swarm);
  }

  /**
   * Joins as the broadcaster, whose key `signer` has. Throws `conflict` while the broadcast is being watched here: its
   * swarm would have to be left first.
   */
  broadcast(metainfo: LiveMetainfo, signer: HeaderSigner, uploadLimitBytesPerSecond: number): Lease<LiveSwarm> {
    const { swarms } = this.#options.manager;
    const running = this.#find(metainfo.infohashHex);
    if (running !== undefined && swarms.isLeased(running)) {
      throw new MillraceError("conflict", "this broadcast is being watched here");
    }
    if (running !== undefined) void swarms.leave(running);
    return swarms.lease(this.#join({ metainfo }, signer, uploadLimitBytesPerSecond));
  }

  #find(infohashHex: string): LiveSwarm | undefined {
    const swarm = this.#options.manager.swarms.get(infohashHex);
    return swarm instanceof LiveSwarm ? swarm : undefined;
  }

  #join(target: LiveTarget, signer: HeaderSigner | null, uploadLimitBytesPerSecond: number): LiveSwarm {
    const { manager, joined, left } = this.#options;
    const { swarms } = manager;
    const { metainfo, servers = "any" } = target;
    swarms.makeRoom();
    // A torrent swarm that found out that this is a broadcast passes on the peers that it learnt.
    const addresses = swarms.get(metainfo.infohashHex)?.peers.book.list() ?? [];
    const context = manager.contextOf(metainfo.infohashHex);
    const swarm = new LiveSwarm({ context, metainfo, servers, signer, uploadLimitBytesPerSecond });
    swarms.add(swarm, () => left?.(swarm));
    swarm.begin();
    for (const { address, origin } of addresses) swarm.peers.adopt(address, origin);
    joined?.(swarm);
    return swarm;
  }
}
