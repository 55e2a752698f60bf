/** Sends the peers of one swarm each other's addresses (BEP 11). */
import { PEX_REACHABLE, PEX_SEED, PexBook } from "../../discovery/pex-book.ts";
import type { SocketAddress } from "../../ports.ts";
import type { Neighbour } from "./neighbour.ts";

/** Peer exchange of one swarm; not for private torrents (BEP 27). Times are monotonic ms. */
export class PexRounds {
  readonly #firstMs: number;
  readonly #book = new PexBook();
  #known = new Map<string, SocketAddress>();

  /** `firstMs`: age at which a connection gets its first message. */
  constructor(firstMs: number) {
    this.#firstMs = firstMs;
  }

  /** A session ended. */
  left(session: Neighbour): void {
    this.#book.forget(String(session.id));
  }

  /** Sends `members` the messages that are due. Call it about every second. */
  run(members: readonly Neighbour[], nowMs: number): void {
    const known = new Map<string, SocketAddress>();
    for (const session of members) {
      const entry = session.address;
      if (entry === null || session.isUnreachable) continue;
      known.set(entry.key, entry.address);
      const flags = (session.isSeed ? PEX_SEED : 0) | (session.link!.incoming ? 0 : PEX_REACHABLE);
      this.#book.add(entry.address, flags);
    }
    for (const [key, address] of this.#known) if (!known.has(key)) this.#book.remove(address);
    this.#known = known;
    for (const session of members) {
      if (nowMs - session.startedMs < this.#firstMs) continue;
      if (!session.extensions?.extensions.includes("ut_pex")) continue;
      const message = this.#book.messageFor(String(session.id), session.address?.address ?? null, nowMs);
      if (message !== null) session.link!.sendPeers(message.added, message.dropped);
    }
  }
}
