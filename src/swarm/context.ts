/** What all swarms of an engine share. */
import type { ExternalAddresses } from "../discovery/external-addresses.ts";
import type { Discovery } from "../discovery/types.ts";
import type { Ports, TcpConnection } from "../ports.ts";
import type { PieceCache } from "../storage/piece-store.ts";
import type { ConnectPeerOptions, EncryptionMode } from "../wire/options.ts";
import type { PeerLink } from "../wire/types.ts";
import type { BufferSource } from "./assembly.ts";
import type { BanList } from "./bans.ts";
import type { DialRule } from "./dial-rule.ts";
import type { DialSlots } from "./dial-slots.ts";
import type { MetadataBudget } from "./metadata-fetch.ts";
import type { Reachability } from "./reachability.ts";
import type { TransportFileFetch } from "./transport-sources.ts";
import type { UtpEndpoint } from "../utp/utp-endpoint.ts";
import type { TokenBucket } from "./token-bucket.ts";
import type { SchedulerFactory } from "./transfer.ts";

/** Made by the manager, used by its swarms. */
export interface SwarmContext {
  readonly ports: Ports;
  readonly cache: PieceCache;
  readonly discovery: Discovery | null;
  /** Fetches from web seeds of the scope "public", and follows redirects of the others. */
  readonly publicFetch: typeof fetch;
  /** For the sources of magnets. */
  readonly transportFileFetch: TransportFileFetch;
  readonly peerId: Uint8Array;
  readonly encryption: EncryptionMode;
  readonly pex: boolean;
  readonly maxPeersPerSwarm: number;
  readonly uploadSlots: number;
  readonly metadataBudget: MetadataBudget;
  readonly bans: BanList;
  readonly dialRule: DialRule;
  /** Learns our own addresses as peers see them. */
  readonly externalAddresses: ExternalAddresses;
  /** Whether strangers can connect to `listenPort`. */
  readonly reachability: Reachability;
  /** As `NetworkSurroundings.isNear`. */
  readonly isNear: (host: string) => boolean;
  readonly slots: DialSlots;
  readonly downloadBucket: TokenBucket;
  readonly uploadBucket: TokenBucket;
  readonly buffers: BufferSource;
  readonly createScheduler: SchedulerFactory;
  /** Connections over UDP: to peers of torrents with `usesUtp`, and to those that only a common neighbour can bring together with us. */
  readonly utp: UtpEndpoint;
  readonly usesUtp: boolean;
  readonly connectPeer: (connection: TcpConnection, options: ConnectPeerOptions) => PeerLink;
  /**
   * The metadata of the swarm of this infohash has arrived. Resolves when no other swarm of the torrent is announced any more:
   * that of its other name, if one ran, was taken over.
   */
  described(infohashHex: string): Promise<void>;
  /** An exception of ours outside a timer: ends the swarm whose context this is, with a reason. */
  failed(error: unknown): void;
  /** Port by which others reach us, as far as we know; null when none accepts peers. */
  listenPort(): number | null;
  /** UDP port by which others reach `utp`, as far as we know. Rejects when there is no UDP. */
  utpPort(): Promise<number>;
  /** How many more peers all swarms together may have. */
  globalRoom(): number;
  /** Bytes that each reader may have fetched ahead so that all readers together fit the cache; Infinity without a limit. */
  readAheadRoom(): number;
}
