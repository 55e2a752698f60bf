/** The shared peer port: matches incoming connections to swarms by infohash. */
import { Allowances } from "../bytes/allowance.ts";
import type { Clock, SocketAddress, TcpConnection } from "../ports.ts";
import type { AcceptPeerOptions, AcceptTarget, EncryptionMode } from "../wire/options.ts";
import type { PeerLink, PeerLinkHandlers } from "../wire/types.ts";
import { hostKey } from "./address.ts";
import type { BanList } from "./bans.ts";
import { displacedBy, type Holder } from "./places.ts";
import type { Reachability } from "./reachability.ts";

/** Incoming connections whose torrent is not known yet: over all hosts, and per host. */
const MAX_PENDING = 64;
const MAX_PENDING_PER_HOST = 16;

/**
 * Connections of one host, per second and at once. Viewers that share a router may all come back at the same moment.
 */
const MAX_RATE = 100;
const MAX_BURST = 200;

/** Hosts whose rate is remembered. */
const MAX_HOSTS = 1024;

/** What the acceptor asks of the manager. */
export interface AcceptorHost {
  readonly clock: Clock;
  readonly encryption: EncryptionMode;
  readonly bans: BanList;
  /** Learns of every connection. */
  readonly reachability: Reachability;
  infohashes(): Iterable<string>;
  lookup(infohashHex: string, remote: SocketAddress): AcceptTarget | null;
  accept(connection: TcpConnection, options: AcceptPeerOptions): { close(): void };
}

interface Pending extends Holder {
  close(): void;
}

/** Takes connections until closed. */
export class Acceptor {
  private readonly host: AcceptorHost;
  /** In order of arrival. */
  private readonly pending = new Set<Pending>();
  private readonly rates: Allowances;
  private closed = false;

  constructor(host: AcceptorHost) {
    this.host = host;
    const nowMs = () => host.clock.monotonic();
    this.rates = new Allowances({ perSecond: MAX_RATE, most: MAX_BURST, limit: MAX_HOSTS, nowMs });
  }

  /** Takes an incoming connection; a refused one is dropped at once. */
  take(connection: TcpConnection): void {
    const from = hostKey(connection.remote.host);
    const { bans, clock, reachability } = this.host;
    reachability.incoming(from);
    if (!this.rates.take(from)) return connection.abort();
    let sameHost = 0;
    for (const { host } of this.pending) if (host === from) sameHost++;
    if (this.closed || sameHost >= MAX_PENDING_PER_HOST || bans.has(from, clock.monotonic()) || !this.makeRoom(from)) {
      return connection.abort();
    }
    // `failed` may be called before `accept` returns its handle, so the entry is made first.
    const entry: Pending = { host: from, isProven: false, close: () => {} };
    this.pending.add(entry);
    const settled = () => void this.pending.delete(entry);
    const handle = this.host.accept(connection, {
      clock,
      encryption: this.host.encryption,
      candidates: () => this.host.infohashes(),
      lookup: (infohashHex, remote) => {
        const target = this.host.lookup(infohashHex, remote);
        if (target === null) return null;
        return { ...target, attach: (link: PeerLink): PeerLinkHandlers => (settled(), target.attach(link)) };
      },
      failed: settled,
    });
    entry.close = () => handle.close();
  }

  close(): void {
    this.closed = true;
    for (const entry of [...this.pending]) entry.close();
    this.pending.clear();
  }

  /** Whether there is a place for `host`; displaces another connection if it must. */
  private makeRoom(host: string): boolean {
    if (this.pending.size < MAX_PENDING) return true;
    const displaced = displacedBy(this.pending, host);
    if (displaced === null) return false;
    this.pending.delete(displaced);
    displaced.close();
    return true;
  }
}
