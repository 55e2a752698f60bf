/** The interface of peer discovery. */
import type { SocketAddress, UdpSocket } from "../ports.ts";

/** Where a peer address came from. */
export type PeerOrigin = "tracker" | "dht" | "pex" | "lsd" | "magnet" | "incoming" | "manual";

/**
 * Which of a torrent's servers and peers may be asked: `public` means only those on the public network, for
 * torrents chosen by a remote caller or a web page.
 */
export type ServerScope = "any" | "public";

/** Notes that `url` may be asked within `scope`; a caller that may name private servers widens what others named. */
export function allowServer(scopes: Map<string, ServerScope>, url: string, scope: ServerScope): void {
  if (scope === "any" || !scopes.has(url)) scopes.set(url, scope);
}

/** What an announce needs to know of the swarm, asked each time. */
export interface AnnounceState {
  readonly uploadedBytes: number;
  readonly downloadedBytes: number;
  readonly leftBytes: number;
}

/** Discovery for one infohash, running until closed. */
export interface DiscoverySession {
  /** A private torrent (BEP 27) is recognised only now, with its metadata: DHT, LSD and PEX stop. */
  setPrivate(): void;
  /** Adds trackers learnt later (metadata, magnet). For known ones only a wider `scope` has an effect. Default "any". */
  addTrackers(tiers: readonly (readonly string[])[], scope?: ServerScope): void;
  /**
   * Asks every source again as soon as its minimum interval allows (the swarm is short of peers). `isUrgent`: nobody can
   * connect to us and we have nobody, so that only asking brings anyone; sources are then asked after a few seconds already.
   */
  needPeers(isUrgent?: boolean): void;
  /** Reports to the trackers that the download completed (BEP 3 `completed`). */
  completed(): void;
  /** One entry per source, for stat and logs. */
  status(): readonly DiscoverySourceStatus[];
  /** Sends `stopped` to the trackers; resolves within 2 s whatever they do. */
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

/** What a user should know about the trackers: that none of them works, and one of their errors; else null. */
export function trackerTrouble(sources: readonly DiscoverySourceStatus[]): string | null {
  const trackers = sources.filter(({ kind }) => kind === "tracker");
  const failing = trackers.length > 0 && trackers.every(({ lastError }) => lastError !== null);
  return failing ? `no tracker answers: ${trackers[0]!.lastError}` : null;
}

/** Options of `Discovery.start`. */
export interface DiscoveryRequest {
  readonly infohash: Uint8Array;
  readonly trackers: readonly (readonly string[])[];
  /** Scope of those trackers. Default "any". */
  readonly servers?: ServerScope;
  readonly isPrivate: boolean;
  /**
   * Called for each address found; duplicates are possible, our own addresses are not filtered. `source`: literal
   * address of the tracker, DHT node or peer that reported it; null when unknown.
   */
  onPeer(address: SocketAddress, origin: PeerOrigin, source: string | null): void;
  state(): AnnounceState;
}

/** Discovery shared by all swarms: one DHT node, one LSD socket, tracker connections. */
export interface Discovery {
  start(request: DiscoveryRequest): DiscoverySession;
  /** Reports a DHT node named by a peer's PORT message or a torrent. */
  addDhtNode(address: SocketAddress): void;
  /** UDP port of the DHT node, for PORT messages; null when it is off. */
  readonly dhtPort: number | null;
  /** What arrives at that port and is not of the DHT, for other users of the port; null or absent when the DHT is off. */
  readonly peerDatagrams?: UdpSocket | null;
  /** Whether DHT nodes replied within the last quarter of an hour. */
  dhtAnswers?(): boolean;
  /** BEP 44 immutable item by its SHA-1 target; null when nobody has it. */
  getImmutable(target: Uint8Array, signal: AbortSignal): Promise<Uint8Array | null>;
  /** Stores `value` (bencoded, ≤ 1000 bytes) as a BEP 44 immutable item; returns its target. */
  putImmutable(value: Uint8Array, signal: AbortSignal): Promise<Uint8Array>;
  close(): Promise<void>;
}
