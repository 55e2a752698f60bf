/** What the swarm asks of storage. RAM and disk implement the same. */
import type { Bitfield } from "../bytes/bitfield.ts";
import type { Allocate } from "../bytes/source.ts";

/** The verified pieces of one torrent. */
export interface PieceStore {
  /** Pieces that are stored and verified. Read-only for users; eviction and loss clear bits. */
  readonly have: Bitfield;
  /**
   * Stores a piece whose hash was checked; sets its bit at once (reads are served from memory until it is on disk).
   * Takes ownership of `data`: neither the caller nor anybody who kept a view may touch it again, for a buffer of
   * `PieceCache.buffers` is used for another piece after this one left memory. Resolves when written; rejects with
   * `disk_full` or `io` and clears the bit (without `onLost`).
   */
  put(piece: number, data: Uint8Array): Promise<void>;
  /**
   * Bytes of one stored piece. Rejects with `not_found` when the piece is not (or no longer) here, `io`/`corrupt` when
   * the medium lost it; the bit is cleared then and `onLost` fires, so that the swarm fetches it again. The bytes are a
   * copy and the caller's to keep, in memory from `allocate` if there is one.
   */
  read(piece: number, offset: number, length: number, allocate?: Allocate): Promise<Uint8Array>;
  /** The same without waiting, when the bytes happen to be in memory; else null. Also a copy. */
  peek(piece: number, offset: number, length: number, allocate?: Allocate): Uint8Array | null;
  /** Pieces for which this answers true are never evicted (what readers are about to need). Set by the swarm. */
  protect: (piece: number) => boolean;
  /** Called for each piece evicted or lost. */
  onLost: (piece: number, reason: "evicted" | "deleted" | "io") => void;
  /**
   * Called for each piece that was found on the medium after `open()` answered: what a resume file claims but may not
   * hold is hashed in the background when it is a lot. Optional; the bit in `have` is set in any case.
   */
  onFound?: (piece: number) => void;
  /** Buffered writes not yet on the medium, bytes (bounded; `put` waits above the bound). */
  readonly pendingBytes: number;
  /** Flushes, saves the resume file, releases handles. */
  close(): Promise<void>;
}

/** Buffers for whole pieces, used again and again: fresh ones cost page faults and garbage collection. */
export interface PieceBuffers {
  /** A buffer of exactly `sizeBytes`; its content is undefined. It is the caller's until `put` or `release`. */
  acquire(sizeBytes: number): Uint8Array<ArrayBuffer>;
  /** Gives back a buffer that no view of is in use any more. Buffers from elsewhere and repetitions are ignored. */
  release(buffer: Uint8Array): void;
}

/** All torrents' pieces under one byte limit. */
export interface PieceCache {
  /** Opens (or resumes) the store of a torrent. One at a time per infohash (`conflict`). */
  open(layout: TorrentLayout): Promise<PieceStore>;
  /** Where to take the buffers for incoming pieces from; `put` gives them back. Absent: allocate. */
  readonly buffers?: PieceBuffers;
  /** Bytes stored now, all torrents. */
  readonly usedBytes: number;
  /**
   * The limit; 0 = none. Exceeded, by a bounded amount, only while all that is stored is protected. Torrents that a disk
   * cache stored as ordinary files (it had no limit then) are neither evicted nor held against the limit.
   */
  readonly limitBytes: number;
  /** Removes everything stored of a torrent that is not open. */
  remove(infohashHex: string): Promise<void>;
  close(): Promise<void>;
}

/** The shape storage needs of a torrent. */
export interface TorrentLayout {
  readonly infohashHex: string;
  readonly name: string;
  readonly pieceLengthBytes: number;
  readonly pieceCount: number;
  readonly totalBytes: number;
  /** SHA-1 of all pieces, to check what a resume file claims when it looks wrong. */
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
