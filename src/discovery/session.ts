/** Discovery for one swarm: all sources, or only the torrent's trackers when it is private (BEP 27). */
import type { Clock, Logger, SocketAddress } from "../ports.ts";
import type { DhtNode } from "./dht-node.ts";
import { DhtSearch } from "./dht-search.ts";
import type { LocalDiscovery, LsdMembership } from "./lsd.ts";
import { PeerSink } from "./peer-sink.ts";
import { type AnnouncerFactory, TrackerSet } from "./tracker-set.ts";
import type { DiscoveryRequest, DiscoverySession, DiscoverySourceStatus, ServerScope } from "./types.ts";

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

/** Discovery for one swarm, running as soon as it is constructed. */
export class SwarmDiscovery implements DiscoverySession {
  readonly #sink: PeerSink;
  readonly #trackers: TrackerSet;
  readonly #ended: () => void;
  #search: DhtSearch | null = null;
  #lsd: LsdMembership | null = null;
  #closing: Promise<void> | null = null;

  constructor(shared: SharedSources, request: DiscoveryRequest, ended: () => void) {
    const { clock, log, random, peerId, dht, lsd } = shared;
    const { infohash } = request;
    const peerPort = () => shared.peerPort();
    this.#ended = ended;
    this.#sink = new PeerSink(clock, (address, origin, source) => request.onPeer(address, origin, source));
    this.#trackers = new TrackerSet({
      clock,
      log,
      random,
      infohash,
      peerId,
      key: crypto.getRandomValues(new Uint32Array(1))[0]!,
      peerPort,
      state: () => request.state(),
      onPeers: (peers, from) => {
        for (const peer of peers) this.#sink.add(peer, "tracker", from);
      },
      createAnnouncer: shared.createAnnouncer,
    });
    this.#trackers.add(request.trackers, { scope: request.servers ?? "any" });
    if (request.isPrivate) return;
    this.#trackers.add(shared.extraTrackers.map((url) => [url]), { extra: true });
    if (dht !== null) {
      const onPeer = (peer: SocketAddress, node: string) => this.#sink.add(peer, "dht", node);
      this.#search = new DhtSearch({ clock, log, node: dht, infohash, peerPort, onPeer });
    }
    if (lsd !== null) this.#lsd = lsd.join(infohash, (peer) => this.#sink.add(peer, "lsd", peer.host));
  }

  /** True once `close` was called. */
  get closed(): boolean {
    return this.#closing !== null;
  }

  setPrivate(): void {
    this.#trackers.dropExtra();
    this.#dropPublic();
  }

  addTrackers(tiers: readonly (readonly string[])[], scope: ServerScope = "any"): void {
    this.#trackers.add(tiers, { scope });
  }

  needPeers(isUrgent = false): void {
    this.#trackers.needPeers(isUrgent);
    this.#search?.needPeers(isUrgent);
    this.#lsd?.needPeers();
  }

  completed(): void {
    this.#trackers.completed();
  }

  status(): readonly DiscoverySourceStatus[] {
    const lines = this.#trackers.status();
    if (this.#search !== null) lines.push(this.#search.status());
    if (this.#lsd !== null) lines.push(this.#lsd.status());
    return lines;
  }

  close(): Promise<void> {
    return this.#closing ??= this.#closeOnce();
  }

  async #closeOnce(): Promise<void> {
    this.#sink.close();
    this.#dropPublic();
    await this.#trackers.close();
    this.#ended();
  }

  #dropPublic(): void {
    this.#search?.close();
    this.#lsd?.close();
    this.#search = null;
    this.#lsd = null;
  }
}
