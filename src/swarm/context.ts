/** What all swarms of an engine share. */
import type { PieceCache } from "../storage/piece-store.ts";
import type { BufferSource } from "./data/assembly.ts";
import type { NeighbourhoodContext } from "./neighbours/neighbourhood-context.ts";
import type { MetadataBudget } from "./metadata/metadata-fetch.ts";
import type { Reachability } from "./neighbours/reachability.ts";
import type { TransportFileFetch } from "./metadata/transport-sources.ts";
import type { UtpEndpoint } from "../utp/utp-endpoint.ts";
import type { TokenBucket } from "./token-bucket.ts";
import type { SchedulerFactory } from "./data/transfer.ts";

/** Made by the manager, used by its swarms. */
export interface SwarmContext extends NeighbourhoodContext {
  readonly cache: PieceCache;
  /** Fetches from web seeds of the scope "public", and follows redirects of the others. */
  readonly publicFetch: typeof fetch;
  /** For the sources of magnets. */
  readonly transportFileFetch: TransportFileFetch;
  readonly maxPeersPerSwarm: number;
  readonly uploadSlots: number;
  readonly metadataBudget: MetadataBudget;
  /** Whether strangers can connect to `listenPort`. */
  readonly reachability: Reachability;
  /** As `NetworkSurroundings.isNear`. */
  readonly isNear: (host: string) => boolean;
  readonly uploadBucket: TokenBucket;
  readonly buffers: BufferSource;
  readonly createScheduler: SchedulerFactory;
  /** Connections over UDP: to peers of torrents with `usesUtp`, and to those that only a common neighbour can bring together with us. */
  readonly utp: UtpEndpoint;
  readonly usesUtp: boolean;
  /**
   * The metadata of the swarm of this infohash has arrived. Resolves when no other swarm of the torrent is announced any more:
   * that of its other name, if one ran, was taken over.
   */
  described(infohashHex: string): Promise<void>;
  /** UDP port by which others reach `utp`, as far as we know. Rejects when there is no UDP. */
  utpPort(): Promise<number>;
  /** Bytes that each reader may have fetched ahead so that all readers together fit the cache; Infinity without a limit. */
  readAheadRoom(): number;
}
