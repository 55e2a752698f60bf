/** Swarms as playback sees them. */
import type { ByteSource } from "../bytes/source.ts";
import type { DiscoverySourceStatus, ServerScope } from "../discovery/types.ts";
import type { AnyMetainfo } from "../metainfo/live.ts";
import type { Magnet, Metainfo } from "../metainfo/types.ts";
import type { Lease } from "./leases.ts";
import type { SwarmPicture } from "./data/picture.ts";

/** Why a reader waits. `source_silent`: all of a broadcast that any peer has announced is already here. */
export type StallReason = "no_peers" | "no_metadata" | "slow_peers" | "missing_piece" | "choked" | "source_silent";

/** Figures for stat. Rates are means over the last 2 s. */
export interface SwarmStatus {
  /** Peers with a finished handshake. */
  readonly peers: number;
  readonly downloadBytesPerSecond: number;
  readonly uploadBytesPerSecond: number;
  /** Verified payload since the swarm was opened. */
  readonly downloadedBytes: number;
  readonly uploadedBytes: number;
  /** Bytes received that were thrown away (hash failures, duplicates). */
  readonly wastedBytes: number;
  /** Pieces with a wrong hash; for a broadcast, blocks and headers. */
  readonly failedPieces: number;
  readonly havePieces: number;
  readonly sources: readonly DiscoverySourceStatus[];
  /** Newest trouble that a user should know about (disk full, all trackers failing), else null. */
  readonly message: string | null;
}

/**
 * Reads one file of a torrent, waiting for pieces if necessary. Each reader has its own deadlines; none slows another.
 */
export interface SwarmReader extends ByteSource {
  readonly fileIndex: number;
  /** Media bitrate, once known, for deadlines and read-ahead. */
  setBitrate(bytesPerSecond: number): void;
  /** Has this many bytes fetched ahead of its reads; returns how many will be, which are fewer when the cache has less room. */
  setReadAhead(bytes: number): number;
  /** Bytes verified and stored contiguously from `offset`, at most `maxBytes` looked at. */
  availableFrom(offset: number, maxBytes: number): number;
  /** Where the piece that holds the byte at `offset` ends, at most `sizeBytes`: what a read waits for arrives up to there. */
  pieceEnd(offset: number): number;
  /** Whether a read waits for bytes that are not here. */
  isWaiting(): boolean;
  /** Why the current read waits; null when none waits or it is not late. */
  stallReason(): StallReason | null;
  /** Ends all its reads with `closed` and its demand at once. */
  close(): void;
}

/** Options of a reader. */
export interface ReaderOptions {
  /** null (default): by bitrate. 0: only the requested bytes (index reading). */
  readonly readAheadBytes?: number | null;
  /** As in `ReaderDemand`. Default 0. */
  readonly yieldMs?: number;
}

/** One torrent's swarm. */
export interface Swarm {
  readonly infohashHex: string;
  /** Aborted when the swarm is left, with the reason. */
  readonly ending: AbortSignal;
  /** null until the metadata is known. */
  readonly metainfo: Metainfo | null;
  /**
   * Resolves with the metadata; rejects with the signal's reason (`start_timeout`, `aborted`) or `closed`. If it
   * describes a broadcast, this swarm's work ends and `LiveSwarms` takes over.
   */
  metadata(signal: AbortSignal): Promise<AnyMetainfo>;
  /** Throws `conflict` before the metadata is known. */
  openReader(fileIndex: number, options?: ReaderOptions): SwarmReader;
  /** Downloads everything in the background (seeding, the `download` command). */
  setDownloadAll(value: boolean): void;
  /** Resolves when every piece is stored and verified. */
  completed(signal: AbortSignal): Promise<void>;
  status(): SwarmStatus;
  /** A snapshot to show to people, with the pieces of one file. */
  picture(fileIndex: number): SwarmPicture;
}

/** What to join. Metainfo wins over magnet; a bare infohash is a magnet without trackers. */
export interface SwarmTarget {
  readonly metainfo?: Metainfo;
  readonly magnet?: Magnet;
  /** Scope of the trackers, web seeds and peers in either. Default "any". */
  readonly servers?: ServerScope;
  /**
   * This lease needs no peers. While that is true of all leases, the swarm has none and reads only from web seeds.
   * Default false.
   */
  readonly withoutPeers?: boolean;
}

/** All swarms of an engine. */
export interface SwarmManager {
  /** Joins, or shares the running swarm of that infohash (adding trackers and peers learnt). */
  acquire(target: SwarmTarget): Lease<Swarm>;
  /** Running swarms. */
  list(): readonly Swarm[];
  /** Port that accepts peers, after `listen`. */
  readonly peerAddress: { host: string; port: number } | null;
  /** Leaves every swarm and notifies trackers; resolves within 2.5 s. */
  close(): Promise<void>;
}
