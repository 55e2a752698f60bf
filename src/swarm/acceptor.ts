/** The shared peer port: incoming connections find their swarm by infohash. */
import type { Clock, SocketAddress, TcpConnection } from "../ports.ts";
import type { AcceptPeerOptions, AcceptTarget, EncryptionMode } from "../wire/options.ts";
import type { PeerLink, PeerLinkHandlers } from "../wire/types.ts";
import { hostKey } from "./address.ts";
import type { BanList } from "./bans.ts";

/** Incoming connections whose torrent is not known yet, over all hosts and for each. */
const MAX_PENDING = 64;
const MAX_PENDING_PER_HOST = 16;

/** What the acceptor asks of the manager. */
export interface AcceptorHost {
  readonly clock: Clock;
  readonly encryption: EncryptionMode;
  readonly bans: BanList;
  infohashes(): Iterable<string>;
  lookup(infohashHex: string, remote: SocketAddress): AcceptTarget | null;
  accept(connection: TcpConnection, options: AcceptPeerOptions): { close(): void };
}

/** Takes connections until closed. */
export class Acceptor {
  private readonly host: AcceptorHost;
  private readonly pending = new Map<{ close(): void }, string>();
  private closed = false;

  constructor(host: AcceptorHost) {
    this.host = host;
  }

  /** A connection came in; refused ones are dropped at once. */
  take(connection: TcpConnection): void {
    const from = hostKey(connection.remote.host);
    const { bans, clock } = this.host;
    let sameHost = 0;
    for (const host of this.pending.values()) if (host === from) sameHost++;
    if (
      this.closed || this.pending.size >= MAX_PENDING || sameHost >= MAX_PENDING_PER_HOST ||
      bans.has(from, clock.monotonic())
    ) {
      return connection.abort();
    }
    // Settling may happen before `accept` has answered, hence the handle of our own.
    const entry = { close: () => {} };
    this.pending.set(entry, from);
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
    for (const entry of [...this.pending.keys()]) entry.close();
    this.pending.clear();
  }
}
