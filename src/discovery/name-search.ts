/** The sources of one infohash of a swarm: a torrent of both versions (BEP 52) has two of them. */
import type { Clock, Logger, SocketAddress } from "../ports.ts";
import type { DhtNode } from "./dht-node.ts";
import { DhtSearch } from "./dht-search.ts";
import type { LocalDiscovery, LsdMembership } from "./lsd.ts";
import type { PeerSink } from "./peer-sink.ts";
import { type AnnouncerFactory, TrackerSet } from "./tracker-set.ts";
import type { AnnounceState, DiscoverySourceStatus } from "./types.ts";

/** The sources and settings that all swarms share. */
export interface SharedSources {
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly peerId: Uint8Array;
  peerPort(): number;
  readonly extraTrackers: readonly string[];
  readonly createAnnouncer: AnnouncerFactory;
  readonly dht: DhtNode | null;
  readonly lsd: LocalDiscovery | null;
}

/** What the names of a swarm share. */
export interface NameParts {
  readonly shared: SharedSources;
  /** Lets trackers recognise a peer whose address changed. */
  readonly key: number;
  state(): AnnounceState;
  readonly sink: PeerSink;
}

/** Announces the swarm by one infohash, and finds others who do. It begins with trackers alone, and has none. */
export class NameSearch {
  readonly infohash: Uint8Array;
  readonly trackers: TrackerSet;
  readonly #parts: NameParts;
  #search: DhtSearch | null = null;
  #lsd: LsdMembership | null = null;

  /** `mostTrackers`: asked at a time; default as in `TrackerSet`. */
  constructor(parts: NameParts, infohash: Uint8Array, mostTrackers?: number) {
    const { shared: { clock, log, random, peerId, createAnnouncer }, key, sink } = parts;
    this.#parts = parts;
    this.infohash = infohash;
    this.trackers = new TrackerSet({
      ...{ clock, log, random, infohash, peerId, key, createAnnouncer },
      ...(mostTrackers === undefined ? {} : { mostInUse: mostTrackers }),
      peerPort: () => parts.shared.peerPort(),
      state: () => parts.state(),
      onPeers: (peers, from) => {
        for (const peer of peers) sink.add(peer, "tracker", from);
      },
    });
  }

  /** Uses the DHT and the local network, too. */
  goPublic(): void {
    const { shared: { clock, log, dht, lsd, ...shared }, sink } = this.#parts;
    const { infohash } = this;
    if (dht !== null) {
      const onPeer = (peer: SocketAddress, node: string) => sink.add(peer, "dht", node);
      const peerPort = () => shared.peerPort();
      this.#search = new DhtSearch({ clock, log, node: dht, infohash, peerPort, onPeer });
    }
    if (lsd !== null) this.#lsd = lsd.join(infohash, (peer) => sink.add(peer, "lsd", peer.host));
  }

  /** Uses them no longer. */
  leavePublic(): void {
    this.#search?.close();
    this.#lsd?.close();
    this.#search = null;
    this.#lsd = null;
  }

  needPeers(isUrgent: boolean): void {
    this.trackers.needPeers(isUrgent);
    this.#search?.needPeers(isUrgent);
    this.#lsd?.needPeers();
  }

  status(): DiscoverySourceStatus[] {
    const lines = this.trackers.status();
    if (this.#search !== null) lines.push(this.#search.status());
    if (this.#lsd !== null) lines.push(this.#lsd.status());
    return lines;
  }

  /** Sends `stopped` to the trackers; resolves within 1.5 s. */
  async close(): Promise<void> {
    this.leavePublic();
    await this.trackers.close();
  }
}
