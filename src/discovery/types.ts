/** Finding peers. */
import type { SocketAddress } from "../ports.ts";

/** Where a peer address came from. */
export type PeerOrigin = "tracker" | "dht" | "pex" | "lsd" | "magnet" | "incoming" | "manual";

/**
 * Which of the servers and peers that a torrent names may be asked: `public` are those of the public network alone, for
 * torrents that somebody elsewhere, or a web page, chose.
 */
export type ServerScope = "any" | "public";

/** Notes that `url` may be asked within `scope`; who may name private servers widens what others named. */
export function allowServer(scopes: Map<string, ServerScope>, url: string, scope: ServerScope): void {
  if (scope === "any" || !scopes.has(url)) scopes.set(url, scope);
}

/** What announcing needs to know of the swarm, asked at each announce. */
export interface AnnounceState {
  readonly uploadedBytes: number;
  readonly downloadedBytes: number;
  readonly leftBytes: number;
}

/** Discovery for one infohash, running until closed. */
export interface DiscoverySession {
  /** Private torrents (BEP 27) learn this late, with the metadata: DHT, LSD and PEX stop. */
  setPrivate(): void;
  /** Adds trackers learnt later (metadata, magnet). Of known ones `scope` alone counts, if it is wider. Default "any". */
  addTrackers(tiers: readonly (readonly string[])[], scope?: ServerScope): void;
  /** Asks every source again soon, respecting their minimum intervals (the swarm is short of peers). */
  needPeers(): void;
  /** Tells trackers that the download completed (BEP 3 `completed`). */
  completed(): void;
  /** One line a source, for stat and logs. */
  status(): readonly DiscoverySourceStatus[];
  /** Tells trackers `stopped`; resolves within 2 s whatever they do. */
  close(): Promise<void>;
}

/** How a source is doing. */
export interface DiscoverySourceStatus {
  readonly kind: PeerOrigin;
  readonly name: string;
  readonly peers: number;
  readonly seeders: number | null;
  readonly lastError: string | null;
  readonly nextAnnounceMs: number | null;
}

/** Options of `Discovery.start`. */
export interface DiscoveryRequest {
  readonly infohash: Uint8Array;
  readonly trackers: readonly (readonly string[])[];
  /** Of those trackers. Default "any". */
  readonly servers?: ServerScope;
  readonly isPrivate: boolean;
  /**
   * Called for each address found; duplicates are possible, own addresses are not filtered. `source`: literal address of the
   * tracker, DHT node or peer that told of it, null when that is not known.
   */
  onPeer(address: SocketAddress, origin: PeerOrigin, source: string | null): void;
  state(): AnnounceState;
}

/** Shared by all swarms: one DHT node, one LSD socket, tracker connections. */
export interface Discovery {
  start(request: DiscoveryRequest): DiscoverySession;
  /** A DHT node was named by a peer's PORT message or a torrent. */
  addDhtNode(address: SocketAddress): void;
  /** UDP port of the DHT node, for PORT messages; null when it is off. */
  readonly dhtPort: number | null;
  /** Whether DHT nodes answered within the last quarter of an hour. */
  dhtAnswers?(): boolean;
  /** BEP 44 immutable item by its SHA-1 target; null when nobody has it. */
  getImmutable(target: Uint8Array, signal: AbortSignal): Promise<Uint8Array | null>;
  /** Stores `value` (bencoded, ≤ 1000 bytes) as a BEP 44 immutable item; answers its target. */
  putImmutable(value: Uint8Array, signal: AbortSignal): Promise<Uint8Array>;
  close(): Promise<void>;
}
