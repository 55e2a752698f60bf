/** Collects one swarm's peer addresses from all sources. */
import type { Clock, SocketAddress } from "../ports.ts";
import { addressKey, canonicalHost, isPublicHost, isUsable } from "./addresses.ts";
import type { DiscoveryRequest, PeerOrigin } from "./types.ts";

/** Addresses remembered; the oldest is dropped first. Far more than a swarm connects to. */
const MAX_REMEMBERED = 2_000;

/**
 * An address is passed on again only after this time: long enough to merge reports of the same peer by dozens of DHT
 * nodes in one lookup, short enough that the next round finds a peer that is back at its old address.
 */
const REPEAT_AFTER_MS = 30_000;

/** Passes each address on once per period; drops those where no peer can listen. */
export class PeerSink {
  readonly #seen = new Map<string, number>();
  readonly #clock: Clock;
  readonly #report: DiscoveryRequest["onPeer"];
  #closed = false;

  constructor(clock: Clock, report: DiscoveryRequest["onPeer"]) {
    this.#clock = clock;
    this.#report = report;
  }

  /** `source` as in `DiscoveryRequest.onPeer`. */
  add(address: SocketAddress, origin: PeerOrigin, source: string | null): void {
    if (this.#closed || !isUsable(address)) return;
    const peer = { host: canonicalHost(address.host)!, port: address.port };
    // Whether a private address is dialled depends on its source: one source must not suppress another.
    const key = isPublicHost(peer.host) ? addressKey(peer) : `${addressKey(peer)} ${origin} ${source}`;
    const nowMs = this.#clock.monotonic();
    const lastMs = this.#seen.get(key);
    if (lastMs !== undefined && nowMs - lastMs < REPEAT_AFTER_MS) return;
    this.#seen.delete(key);
    this.#seen.set(key, nowMs);
    if (this.#seen.size > MAX_REMEMBERED) this.#seen.delete(this.#seen.keys().next().value!);
    this.#report(peer, origin, source);
  }

  close(): void {
    this.#closed = true;
    this.#seen.clear();
  }
}
