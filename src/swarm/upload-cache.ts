/**
 * Bytes on their way to peers. The medium is read in runs much larger than a block, each once for all peers that ask for
 * it, so that serving a block costs a memory copy instead of a disk read.
 */
import type { PieceBank } from "./piece-bank.ts";

/** Bytes read at once: large enough to make reads cheap, small enough to waste little on 16 MiB pieces. */
const RUN_BYTES = 1024 * 1024;

/** Memory for kept runs, bytes: enough for eight unchoked peers with deep queues. */
const LIMIT_BYTES = 24 * 1024 * 1024;

/** Up to this size the store itself loads a whole piece when one of its blocks is read: no second copy is kept. */
const SMALL_PIECE_BYTES = 2 * 1024 * 1024;

interface Run {
  readonly bytes: Uint8Array;
}

/** A bounded, least-recently-used cache of runs of one torrent. */
export class UploadCache {
  private readonly bank: PieceBank;
  private readonly pieceBytes: (piece: number) => number;
  private readonly runsPerPiece: number;
  private readonly smallPieces: boolean;
  private readonly runs = new Map<number, Run>();
  private readonly loading = new Map<number, Promise<void>>();
  private bytes = 0;

  constructor(bank: PieceBank, pieceLengthBytes: number, pieceBytes: (piece: number) => number) {
    this.bank = bank;
    this.pieceBytes = pieceBytes;
    this.smallPieces = pieceLengthBytes <= SMALL_PIECE_BYTES;
    this.runsPerPiece = Math.ceil(pieceLengthBytes / RUN_BYTES);
  }

  /** The bytes if they are in memory (never to be written to), else null. */
  peek(piece: number, offset: number, length: number): Uint8Array | null {
    if (this.smallPieces) return this.bank.peek(piece, offset, length);
    const run = Math.floor(offset / RUN_BYTES);
    const from = offset - run * RUN_BYTES;
    if (from + length <= RUN_BYTES) {
      const key = piece * this.runsPerPiece + run;
      const known = this.runs.get(key);
      if (known !== undefined) {
        this.runs.delete(key);
        this.runs.set(key, known);
        return known.bytes.subarray(from, from + length);
      }
    }
    return this.bank.peek(piece, offset, length);
  }

  /** Loads the run with these bytes into memory; rejects as `PieceBank.read` does. */
  load(piece: number, offset: number): Promise<void> {
    const run = this.smallPieces ? 0 : Math.floor(offset / RUN_BYTES);
    const key = piece * this.runsPerPiece + run;
    const under = this.loading.get(key);
    if (under !== undefined) return under;
    const from = run * RUN_BYTES;
    const length = Math.min(RUN_BYTES, this.pieceBytes(piece) - from);
    const read = this.smallPieces
      ? this.bank.read(piece, offset, 1).then(() => {})
      : this.bank.read(piece, from, length).then((bytes) => this.keep(key, bytes));
    const job = read.finally(() => this.loading.delete(key));
    this.loading.set(key, job);
    return job;
  }

  /** Starts to load what will be asked for next, unless it is in memory. A failure surfaces when it is asked for. */
  prefetch(piece: number, offset: number): void {
    if (this.loading.size >= 4 || this.peek(piece, offset, 1) !== null) return;
    this.load(piece, offset).catch(() => {});
  }

  /** Bytes that straddle two runs, or that do not fit the scheme. */
  read(piece: number, offset: number, length: number): Promise<Uint8Array> {
    return this.bank.read(piece, offset, length);
  }

  /** Whether a single run of this cache holds all of it. */
  fits(offset: number, length: number): boolean {
    return !this.smallPieces && Math.floor(offset / RUN_BYTES) === Math.floor((offset + length - 1) / RUN_BYTES);
  }

  /** Forgets a piece. */
  drop(piece: number): void {
    for (let run = 0; run < this.runsPerPiece; run++) this.remove(piece * this.runsPerPiece + run);
  }

  clear(): void {
    this.runs.clear();
    this.bytes = 0;
  }

  private keep(key: number, bytes: Uint8Array): void {
    this.remove(key);
    this.runs.set(key, { bytes });
    this.bytes += bytes.length;
    for (const oldest of this.runs.keys()) {
      if (this.bytes <= LIMIT_BYTES) break;
      this.remove(oldest);
    }
  }

  private remove(key: number): void {
    const run = this.runs.get(key);
    if (run === undefined) return;
    this.runs.delete(key);
    this.bytes -= run.bytes.length;
  }
}
