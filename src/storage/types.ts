/** What the swarm asks of storage. RAM and disk implement the same. */
import type { Bitfield } from "../bytes/bitfield.ts";

/** The verified pieces of one torrent. */
export interface PieceStore {
  /** Pieces that are stored and verified. Read-only for users; eviction and loss clear bits. */
  readonly have: Bitfield;
  /**
   * Stores a piece whose hash was checked; sets its bit at once (reads are served from memory until it is on disk).
   * Takes ownership of `data`. Resolves when written; rejects with `disk_full` or `io` and clears the bit.
   */
  put(piece: number, data: Uint8Array): Promise<void>;
  /**
   * Bytes of one stored piece. Rejects with `not_found` when the piece is not (or no longer) here, `io`/`corrupt` when
   * the medium lost it; the bit is cleared then and `onLost` fires, so that the swarm fetches it anew.
   */
  read(piece: number, offset: number, length: number): Promise<Uint8Array>;
  /** The same without waiting, when the bytes happen to be in memory; else null. */
  peek(piece: number, offset: number, length: number): Uint8Array | null;
  /** Pieces for which this answers true are never evicted (what readers are about to need). Set by the swarm. */
  protect: (piece: number) => boolean;
  /** Called for each piece evicted or lost. */
  onLost: (piece: number, reason: "evicted" | "deleted" | "io") => void;
  /** Buffered writes not yet on the medium, bytes (bounded; `put` waits above the bound). */
  readonly pendingBytes: number;
  /** Flushes, saves the resume file, releases handles. */
  close(): Promise<void>;
}

/** All torrents' pieces under one byte limit. */
export interface PieceCache {
  /** Opens (or resumes) the store of a torrent. One at a time per infohash (`conflict`). */
  open(layout: TorrentLayout): Promise<PieceStore>;
  /** Bytes stored now, all torrents. */
  readonly usedBytes: number;
  /** The limit; 0 = none. */
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
  readonly files: readonly { readonly path: string; readonly sizeBytes: number; readonly offset: number }[];
}
