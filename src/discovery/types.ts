/** The interface of peer discovery. */
import type { SocketAddress, UdpSocket } from "../ports.ts";
import type { MutableName } from "./dht-mutable.ts";

/** Origin of a peer address. */
export type PeerOrigin = "tracker" | "dht" | "pex" | "lsd" | "magnet" | "incoming" | "manual";

/**
 * Limits which of a torrent's servers and peers may be asked: `public` means only those on the public network, for
 * torrents chosen by a remote caller or a web page.
 */
export type ServerScope = "any" | "public";

/** Scope of the servers that a description names, when a caller of `scope` has it. */
export function scopeIn(description: { readonly isFromPublic?: boolean }, scope: ServerScope): ServerScope {
  return description.isFromPublic === true ? "public" : scope;
}

/** Notes that `url` may be asked within `scope`; a caller that may name private servers widens what others named. */
export function allowServer(scopes: Map<string, ServerScope>, url: string, scope: ServerScope): void {
  if (scope === "any" || !scopes.has(url)) scopes.set(url, scope);
}

/** Facts about the swarm that each announce carries, read each time. */
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
   * The torrent has this infohash, too (BEP 52): it is announced and looked for by both. It replaces an earlier one; a private
   * torrent has only its first.
   */
  addName(infohash: Uint8Array): void;
  /**
   * Asks every source again as soon as its minimum interval allows (the swarm is short of peers). `isUrgent`: nobody can
   * connect to us and we have no peers, so only asking brings any; sources are then asked after only a few seconds.
   */
  needPeers(isUrgent?: boolean): void;
  /** Reports to the trackers that the download completed (BEP 3 `completed`). */
  completed(): void;
  /** One entry per source, for stat and logs. */
  status(): readonly DiscoverySourceStatus[];
  /** Sends `stopped` to the trackers; resolves within 2 s whatever they do. */
  close(): Promise<void>;
}

/** State of a source. */
export interface DiscoverySourceStatus {
  readonly kind: PeerOrigin;
  readonly name: string;
  readonly peers: number;
  readonly seeders: number | null;
  readonly lastError: string | null;
  readonly nextAnnounceMs: number | null;
}

/** Text for the user when no tracker works, with the first one's error; else null. */
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
  /** Receives the datagrams at that port that are not of the DHT, for its other users; null or absent when the DHT is off. */
  readonly peerDatagrams?: UdpSocket | null;
  /** True when DHT nodes replied within the last quarter of an hour. */
  dhtAnswers?(): boolean;
  /** BEP 44 immutable item by its SHA-1 target; null when nobody has it. */
  getImmutable(target: Uint8Array, signal: AbortSignal): Promise<Uint8Array | null>;
  /** BEP 44 mutable item, the newest that its key has signed; null when nobody has it. */
  getMutable(name: MutableName, signal: AbortSignal): Promise<Uint8Array | null>;
  /** Stores `value` (bencoded, ≤ 1000 bytes) as a BEP 44 immutable item; returns its target. */
  putImmutable(value: Uint8Array, signal: AbortSignal): Promise<Uint8Array>;
  close(): Promise<void>;
}
