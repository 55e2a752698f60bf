/** The storage interface that the swarm uses, implemented in memory and on disk. */
import type { Bitfield } from "../bytes/bitfield.ts";
import type { PieceSizes } from "../bytes/piece-shape.ts";
import type { Allocate } from "../bytes/source.ts";

/** Progress of hashing what is on the medium, in pieces. */
export interface CheckProgress {
  readonly done: number;
  readonly total: number;
}

/** The verified pieces of one torrent. */
export interface PieceStore {
  /** Pieces that are stored and verified. Read-only for users; eviction and loss clear bits. */
  readonly have: Bitfield;
  /**
   * Stores a piece whose hash was checked; sets its bit at once (reads are served from memory until it is on disk).
   * Takes ownership of `data`: neither the caller nor any holder of a view may touch it again, because a buffer of
   * `PieceCache.buffers` is reused for another piece once this one has left memory. Resolves when written; rejects with
   * `disk_full` or `io` and clears the bit (without `onLost`).
   */
  put(piece: number, data: Uint8Array): Promise<void>;
  /**
   * Bytes of one stored piece. Rejects with `not_found` when the piece is not here, or no longer; with `io`/`corrupt`
   * when the medium lost it: its bit is then cleared and `onLost` called, so that the swarm fetches it again. The bytes
   * are a copy that the caller may keep, in memory from `allocate` if given.
   */
  read(piece: number, offset: number, length: number, allocate?: Allocate): Promise<Uint8Array>;
  /** The same without waiting, if the bytes are in memory; otherwise null. Also a copy. */
  peek(piece: number, offset: number, length: number, allocate?: Allocate): Uint8Array | null;
  /** Pieces for which this returns true are never evicted (those that readers are about to need). Set by the swarm. */
  protect: (piece: number) => boolean;
  /** Called for each piece evicted or lost. */
  onLost: (piece: number, reason: "evicted" | "deleted" | "io") => void;
  /**
   * Called for each piece found on the medium after `open()` resolved: if a resume file claims many pieces that it may
   * not hold, they are hashed in the background. Optional; the bit in `have` is set in any case.
   */
  onFound?: (piece: number) => void;
  /** Progress of the hashing that `open()` began; null or absent: none is under way. */
  readonly checking?: CheckProgress | null;
  /** Buffered writes not yet on the medium, bytes (bounded; `put` waits above the bound). */
  readonly pendingBytes: number;
  /** Flushes, saves the resume file, releases handles. */
  close(): Promise<void>;
}

/** Reusable buffers for whole pieces: fresh ones cost page faults and garbage collection. */
export interface PieceBuffers {
  /** A buffer of exactly `sizeBytes` with undefined content. It belongs to the caller until `put` or `release`. */
  acquire(sizeBytes: number): Uint8Array<ArrayBuffer>;
  /** Returns a buffer of which no view is in use any more. Buffers from elsewhere and repeated calls are ignored. */
  release(buffer: Uint8Array): void;
}

/** What a cache holds of one torrent. */
export interface StoredTorrent {
  readonly infohashHex: string;
  readonly usedBytes: number;
  /** Of the whole torrent. */
  readonly totalBytes: number;
  /** Its pieces are read or fetched now. */
  readonly isOpen: boolean;
  /** Whether the torrent stays when room is needed. */
  readonly isKept: boolean;
}

/** All torrents' pieces under one byte limit. */
export interface PieceCache {
  /** Opens (or resumes) the store of a torrent. One at a time per infohash (`conflict`). */
  open(layout: TorrentLayout): Promise<PieceStore>;
  /** Provides buffers for incoming pieces; `put` returns them. Absent: allocate them. */
  readonly buffers?: PieceBuffers;
  /** Bytes stored now, over all torrents. */
  readonly usedBytes: number;
  /**
   * The limit; 0 = none. It is exceeded, by a bounded amount, only while everything stored is protected. Torrents that
   * a disk cache stored as ordinary files (when it had no limit) are neither evicted nor counted.
   */
  readonly limitBytes: number;
  /** What is stored, one entry per torrent, those that were used last first. */
  torrents(): readonly StoredTorrent[];
  /**
   * Lets a torrent stay when room is needed, or lets it go again; on disk that lasts. Rejects with `not_found` when nothing
   * of it is stored, with `too_large` when kept torrents, once whole, would need more than half of the limit. Without
   * effect on the user's own files (seeding).
   */
  keep(infohashHex: string, isKept: boolean): Promise<void>;
  /**
   * Changes the limit; a lower one evicts at once what is neither protected nor kept. On disk it lasts until the cache is
   * opened with another limit than this time. Rejects with `conflict` when kept torrents need more than half of it.
   * Without effect on the user's own files (seeding).
   */
  setLimit(limitBytes: number): Promise<void>;
  /** Removes everything stored for a torrent. Rejects with `conflict` while it is open. */
  remove(infohashHex: string): Promise<void>;
  close(): Promise<void>;
}

/** The facts about a torrent that storage needs. */
export interface TorrentLayout extends PieceSizes {
  readonly infohashHex: string;
  readonly name: string;
  readonly pieceCount: number;
  /** As in `Metainfo`, to check a resume file's claims when they look wrong. */
  readonly pieceHashes: Uint8Array;
  readonly files: readonly {
    readonly path: string;
    readonly sizeBytes: number;
    readonly offset: number;
    readonly padding?: boolean;
  }[];
  /** As in `Metainfo`; absent: several files, or one whose path isn't `name`. */
  readonly multiFile?: boolean;
}
