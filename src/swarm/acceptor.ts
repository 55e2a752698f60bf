/** The shared peer port: matches incoming connections to swarms by infohash. */
import { Allowances } from "../bytes/allowance.ts";
import { fromHex } from "../bytes/hex.ts";
import { machineKey } from "../bytes/machine-key.ts";
import type { TcpConnection } from "../ports.ts";
import { acceptPeer } from "../wire/mod.ts";
import type { PeerLink, PeerLinkHandlers } from "../wire/types.ts";
import { hostKey } from "./neighbours/address.ts";
import type { SwarmContext } from "./context.ts";
import type { LeasedSwarms } from "./leases.ts";
import { displacedBy, type Holder } from "./neighbours/places.ts";
import type { Transport } from "./neighbours/transports.ts";

/** Incoming connections whose torrent is not known yet: over all hosts, and per host (`machineKey`). */
const MAX_PENDING = 64;
const MAX_PENDING_PER_HOST = 16;

/**
 * Connections of one host, per second and at once. Viewers that share a router may all come back at the same moment.
 */
const MAX_RATE = 100;
const MAX_BURST = 200;

/** Hosts whose rate is remembered. */
const MAX_HOSTS = 1024;

interface Pending extends Holder {
  close(): void;
}

/** Takes connections until closed. */
export class Acceptor {
  readonly #context: SwarmContext;
  readonly #swarms: LeasedSwarms;
  /** In order of arrival. */
  readonly #pending = new Set<Pending>();
  readonly #rates: Allowances;
  #closed = false;

  /** `swarms`: those that a peer may name. */
  constructor(context: SwarmContext, swarms: LeasedSwarms) {
    this.#context = context;
    this.#swarms = swarms;
    const nowMs = () => context.ports.clock.monotonic();
    this.#rates = new Allowances({ perSecond: MAX_RATE, most: MAX_BURST, limit: MAX_HOSTS, nowMs });
  }

  /** Takes an incoming connection, or one to a web browser; a refused one is dropped at once. */
  take(connection: TcpConnection, transport: Transport | "webrtc"): void {
    const from = hostKey(connection.remote.host);
    const { bans, encryption, ports: { clock }, reachability } = this.#context;
    // A datagram that gets in says nothing about the TCP port.
    if (transport === "tcp") reachability.incoming(from);
    const machine = machineKey(from);
    if (!this.#rates.take(machine)) return connection.abort();
    let sameHost = 0;
    for (const { host } of this.#pending) if (machineKey(host) === machine) sameHost++;
    if (
      this.#closed || sameHost >= MAX_PENDING_PER_HOST || bans.hasAddress(from, clock.monotonic()) ||
      !this.#makeRoom(from)
    ) {
      return connection.abort();
    }
    // `failed` may be called before `acceptPeer` returns its handle, so the entry is made first.
    const entry: Pending = { host: from, isProven: false, close: () => {} };
    this.#pending.add(entry);
    const settled = () => void this.#pending.delete(entry);
    const handle = acceptPeer(connection, {
      clock,
      encryption,
      candidates: () =>
        this.#swarms.list().flatMap((swarm) => [swarm.infohashHex, swarm.otherInfohashHex ?? []].flat()),
      lookup: (infohashHex, remote) => {
        const swarm = this.#swarms.get(infohashHex);
        const target = swarm?.peers.admit(remote) ?? null;
        if (target === null) return null;
        // A torrent of both versions is called by either name and answers by the same; one of them is that of version 2.
        const isOther = swarm!.infohashHex !== infohashHex;
        const named = isOther ? { infohash: fromHex(infohashHex), v2: target.v2 !== true } : {};
        return { ...target, ...named, attach: (link: PeerLink): PeerLinkHandlers => (settled(), target.attach(link)) };
      },
      failed: settled,
    });
    entry.close = () => handle.close();
  }

  close(): void {
    this.#closed = true;
    for (const entry of [...this.#pending]) entry.close();
    this.#pending.clear();
  }

  /** Whether there is a place for `host`; displaces another connection if it must. */
  #makeRoom(host: string): boolean {
    if (this.#pending.size < MAX_PENDING) return true;
    const displaced = displacedBy(this.#pending, host);
    if (displaced === null) return false;
    this.#pending.delete(displaced);
    displaced.close();
    return true;
  }
}
