/** All broadcasts of an engine, received and sent: leases and lingering. */
import { MillraceError } from "../../errors.ts";
import type { Timer } from "../../ports.ts";
import type { GuestPlace, TorrentSwarmManager } from "../../swarm/manager.ts";
import type { LiveMetainfo } from "../../metainfo/live.ts";
import type { HeaderSigner } from "../signer.ts";
import type { LiveLease, LiveSwarms, LiveTarget } from "./live-source.ts";
import { closedError, LiveSwarm } from "./live-swarm.ts";

/** Linger of a swarm, ms: a player that is restarted still finds its peers and the window. */
const DEFAULT_LINGER_MS = 30_000;
/** `close` resolves within this, ms. */
const CLOSE_TIMEOUT_MS = 2_500;

/** Options of `LiveSwarmManager`. */
export interface LiveSwarmManagerOptions {
  readonly manager: Pick<TorrentSwarmManager, "context" | "host">;
  /** How long a swarm stays after its last lease, ms. Default 30 000. */
  readonly lingerMs?: number;
  /** A swarm was joined. */
  readonly joined?: (swarm: LiveSwarm) => void;
  /** It was left. */
  readonly left?: (swarm: LiveSwarm) => void;
}

/** A lease that exposes the whole swarm. */
export interface LiveSwarmLease extends LiveLease {
  readonly source: LiveSwarm;
  /** `atOnce`: the last lease leaves without lingering. Default false. */
  release(options?: { readonly atOnce?: boolean }): void;
}

interface Entry {
  readonly swarm: LiveSwarm;
  readonly place: GuestPlace;
  leases: number;
  linger: Timer | null;
}

/** Joins broadcasts, shares them between leases, and leaves them after lingering. */
export class LiveSwarmManager implements LiveSwarms {
  private readonly options: LiveSwarmManagerOptions;
  private readonly entries = new Map<string, Entry>();
  private readonly leaving = new Set<Promise<void>>();
  private closing: Promise<void> | null = null;

  constructor(options: LiveSwarmManagerOptions) {
    this.options = options;
  }

  /** Running swarms. */
  list(): readonly LiveSwarm[] {
    return [...this.entries.values()].map(({ swarm }) => swarm);
  }

  running(infohashHex: string): LiveMetainfo | null {
    return this.entries.get(infohashHex)?.swarm.metainfo ?? null;
  }

  acquire(target: LiveTarget): LiveSwarmLease {
    const entry = this.entries.get(target.metainfo.infohashHex) ?? this.join(target, null, 0);
    entry.swarm.learn(target);
    return this.lease(entry);
  }

  /**
   * Joins as the broadcaster, whose key `signer` has. Throws `conflict` while the broadcast is being watched here: its swarm would have to be
   * left first.
   */
  broadcast(metainfo: LiveMetainfo, signer: HeaderSigner, uploadLimitBytesPerSecond: number): LiveSwarmLease {
    const running = this.entries.get(metainfo.infohashHex);
    if (running !== undefined && running.leases === 0) this.leave(metainfo.infohashHex, running);
    else if (running !== undefined) throw new MillraceError("conflict", "this broadcast is being watched here");
    return this.lease(this.join({ metainfo }, signer, uploadLimitBytesPerSecond));
  }

  /** Leaves every swarm and notifies trackers; resolves within 2.5 s. */
  close(): Promise<void> {
    return this.closing ??= this.shutDown();
  }

  private async shutDown(): Promise<void> {
    const { clock } = this.options.manager.context.ports;
    for (const [infohashHex, entry] of [...this.entries]) this.leave(infohashHex, entry);
    let timer: Timer | undefined;
    const late = new Promise<void>((resolve) => {
      timer = clock.setTimeout(resolve, CLOSE_TIMEOUT_MS);
    });
    await Promise.race([Promise.all(this.leaving), late]);
    timer?.cancel();
  }

  private join(target: LiveTarget, signer: HeaderSigner | null, uploadLimitBytesPerSecond: number): Entry {
    if (this.closing !== null) throw closedError();
    const { manager } = this.options;
    const { metainfo, servers = "any" } = target;
    const swarm = new LiveSwarm({ context: manager.context, metainfo, servers, signer, uploadLimitBytesPerSecond });
    try {
      const place = manager.host(metainfo.infohashHex, swarm);
      const entry = { swarm, place, leases: 0, linger: null };
      this.entries.set(metainfo.infohashHex, entry);
      swarm.begin();
      for (const { address, origin } of place.addresses) swarm.peers.adopt(address, origin);
      this.options.joined?.(swarm);
      return entry;
    } catch (error) {
      void swarm.close();
      throw error;
    }
  }

  private lease(entry: Entry): LiveSwarmLease {
    entry.leases++;
    entry.linger?.cancel();
    entry.linger = null;
    let released = false;
    const release: LiveSwarmLease["release"] = ({ atOnce = false } = {}) => {
      if (released) return;
      released = true;
      if (--entry.leases > 0 || this.closing !== null) return;
      // A broadcaster that stopped has no reason to linger.
      if (atOnce || entry.swarm.role === "source") this.leave(entry.swarm.metainfo.infohashHex, entry);
      else this.linger(entry);
    };
    return { source: entry.swarm, release };
  }

  private linger(entry: Entry): void {
    const { infohashHex } = entry.swarm.metainfo;
    const { clock } = this.options.manager.context.ports;
    const lingerMs = this.options.lingerMs ?? DEFAULT_LINGER_MS;
    entry.linger = clock.setTimeout(() => this.leave(infohashHex, entry), lingerMs);
  }

  private leave(infohashHex: string, entry: Entry): void {
    if (this.entries.get(infohashHex) !== entry) return;
    this.entries.delete(infohashHex);
    entry.linger?.cancel();
    entry.place.release();
    this.options.left?.(entry.swarm);
    const job: Promise<void> = entry.swarm.close().finally(() => this.leaving.delete(job));
    this.leaving.add(job);
  }
}
