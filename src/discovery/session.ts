/** Discovery for one swarm: all sources, or only the torrent's trackers when it is private (BEP 27). */
import { equalBytes } from "../bytes/hex.ts";
import { type NameParts, NameSearch, type SharedSources } from "./name-search.ts";
import { PeerSink } from "./peer-sink.ts";
import type { DiscoveryRequest, DiscoverySession, DiscoverySourceStatus, ServerScope } from "./types.ts";

/**
 * Trackers asked at a time by a torrent's second name. Clients that know a hybrid announce it by both names; all trackers
 * once more would double what a torrent of forty trackers costs.
 */
const SECOND_NAME_TRACKERS = 16;

/** Discovery for one swarm, running as soon as it is constructed. */
export class SwarmDiscovery implements DiscoverySession {
  readonly #sink: PeerSink;
  readonly #parts: NameParts;
  readonly #first: NameSearch;
  /** By the torrent's other infohash. */
  #second: NameSearch | null = null;
  #isPrivate: boolean;
  readonly #ended: () => void;
  #closing: Promise<void> | null = null;

  constructor(shared: SharedSources, request: DiscoveryRequest, ended: () => void) {
    this.#ended = ended;
    this.#isPrivate = request.isPrivate;
    this.#sink = new PeerSink(shared.clock, (address, origin, source) => request.onPeer(address, origin, source));
    this.#parts = {
      shared,
      key: crypto.getRandomValues(new Uint32Array(1))[0]!,
      state: () => request.state(),
      sink: this.#sink,
    };
    this.#first = new NameSearch(this.#parts, request.infohash);
    this.#first.trackers.add(request.trackers, { scope: request.servers ?? "any" });
    if (request.isPrivate) return;
    this.#first.trackers.add(shared.extraTrackers.map((url) => [url]), { extra: true });
    this.#first.goPublic();
  }

  /** True once `close` was called. */
  get closed(): boolean {
    return this.#closing !== null;
  }

  addName(infohash: Uint8Array): void {
    if (this.#isPrivate || this.closed || this.#names.some((name) => equalBytes(name.infohash, infohash))) return;
    void this.#second?.close();
    this.#second = new NameSearch(this.#parts, infohash, SECOND_NAME_TRACKERS);
    for (const [url, scope] of this.#first.trackers.known()) this.#second.trackers.add([[url]], { scope });
    this.#second.goPublic();
  }

  setPrivate(): void {
    this.#isPrivate = true;
    this.#first.trackers.dropExtra();
    this.#first.leavePublic();
    // Such trackers keep an account of what their users send: it must not be stated twice.
    void this.#second?.close();
    this.#second = null;
  }

  addTrackers(tiers: readonly (readonly string[])[], scope: ServerScope = "any"): void {
    for (const { trackers } of this.#names) trackers.add(tiers, { scope });
  }

  needPeers(isUrgent = false): void {
    for (const name of this.#names) name.needPeers(isUrgent);
  }

  completed(): void {
    for (const { trackers } of this.#names) trackers.completed();
  }

  status(): readonly DiscoverySourceStatus[] {
    const first = this.#first.status();
    const second = this.#second?.status() ?? [];
    return first.map((line) => {
      const other = second.findIndex(({ kind, name }) => kind === line.kind && name === line.name);
      return other < 0 ? line : joined(line, second.splice(other, 1)[0]!);
    });
  }

  close(): Promise<void> {
    return this.#closing ??= this.#closeOnce();
  }

  get #names(): NameSearch[] {
    return this.#second === null ? [this.#first] : [this.#first, this.#second];
  }

  async #closeOnce(): Promise<void> {
    this.#sink.close();
    await Promise.all(this.#names.map((name) => name.close()));
    this.#ended();
  }
}

/** One source, asked by both names: most peers of a hybrid are there by both. It works when one name gets an answer. */
function joined(first: DiscoverySourceStatus, second: DiscoverySourceStatus): DiscoverySourceStatus {
  const { kind, name } = first;
  const working = [first, second].filter(({ lastError }) => lastError === null);
  const seeders = [first.seeders, second.seeders].filter((count) => count !== null);
  return {
    kind,
    name,
    peers: Math.max(first.peers, second.peers),
    seeders: seeders.length === 0 ? null : Math.max(...seeders),
    lastError: working.length > 0 ? null : first.lastError,
    // As long as one of them is under way, the source is being asked.
    nextAnnounceMs: first.nextAnnounceMs === null || second.nextAnnounceMs === null
      ? null
      : Math.min(first.nextAnnounceMs, second.nextAnnounceMs),
  };
}
