/** Sends the peers of one swarm each other's addresses (BEP 11). */
import { PEX_REACHABLE, PEX_SEED, PexBook } from "../discovery/pex-book.ts";
import type { SocketAddress } from "../ports.ts";
import type { ExtendedHandshake, PeerLink } from "../wire/types.ts";
import type { KnownAddress } from "./address-book.ts";

/** The part of a session that the exchange needs. */
export interface PexPartner {
  readonly id: number;
  readonly isReady: boolean;
  readonly isSeed: boolean;
  readonly address: KnownAddress | null;
  readonly link: PeerLink | null;
  readonly startedMs: number;
  readonly extensions: ExtendedHandshake | null;
  /** Nobody can connect to it, so its address is not passed on. Default false. */
  readonly isUnreachable?: boolean;
}

/** Peer exchange of one swarm; not for private torrents (BEP 27). Times are monotonic ms. */
export class PexRounds {
  private readonly firstMs: number;
  private readonly book = new PexBook();
  private known = new Map<string, SocketAddress>();

  /** `firstMs`: age at which a connection gets its first message. */
  constructor(firstMs: number) {
    this.firstMs = firstMs;
  }

  /** A session ended. */
  left(session: PexPartner): void {
    this.book.forget(String(session.id));
  }

  /** Sends the messages that are due. Call it about every second. */
  run(sessions: () => Iterable<PexPartner>, nowMs: number): void {
    const known = new Map<string, SocketAddress>();
    for (const session of sessions()) {
      const entry = session.address;
      if (!session.isReady || entry === null || session.isUnreachable === true) continue;
      known.set(entry.key, entry.address);
      const flags = (session.isSeed ? PEX_SEED : 0) | (session.link!.incoming ? 0 : PEX_REACHABLE);
      this.book.add(entry.address, flags);
    }
    for (const [key, address] of this.known) if (!known.has(key)) this.book.remove(address);
    this.known = known;
    for (const session of sessions()) {
      if (!session.isReady || nowMs - session.startedMs < this.firstMs) continue;
      if (!session.extensions?.extensions.includes("ut_pex")) continue;
      const message = this.book.messageFor(String(session.id), session.address?.address ?? null, nowMs);
      if (message !== null) session.link!.sendPeers(message.added, message.dropped);
    }
  }
}
