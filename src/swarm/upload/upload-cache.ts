/**
 * Bytes on their way to peers. The medium is read in runs much larger than a block, each once for all peers that ask
 * for it. A run is kept as the messages that carry its blocks, so that serving adjacent blocks costs one write and no
 * copy.
 */
import { BLOCK_BYTES } from "../../wire/types.ts";
import { blocksOf, makeMessages, messagesBytes } from "../../wire/piece-messages.ts";
import type { PieceBank } from "../data/piece-bank.ts";
import { UploadRun } from "./upload-run.ts";

/** Bytes read at once: large enough to make reads cheap, small enough to waste little on 16 MiB pieces. */
const RUN_BYTES = 1024 * 1024;

/** Memory for kept runs, bytes: two for each of eight unchoked peers, the one it gets and the one it gets next. */
const LIMIT_BYTES = 16 * 1024 * 1024;

/** Runs loaded ahead at once. */
const MAX_PREFETCHES = 4;

/**
 * Runs that left the cache and whose memory is used again. Links may still send from them. Fresh memory costs page
 * faults and collections.
 */
const MAX_RETIRED_RUNS = 4;

/** A bounded, least-recently-used cache of runs of one torrent. */
export class UploadCache {
  readonly #bank: PieceBank;
  readonly #pieceBytes: (piece: number) => number;
  readonly #runsPerPiece: number;
  /** Least recently used first. */
  readonly #runs = new Map<number, UploadRun>();
  readonly #loading = new Map<number, Promise<UploadRun>>();
  #retired: UploadRun[] = [];
  #bytes = 0;

  constructor(bank: PieceBank, pieceLengthBytes: number, pieceBytes: (piece: number) => number) {
    this.#bank = bank;
    this.#pieceBytes = pieceBytes;
    this.#runsPerPiece = Math.ceil(pieceLengthBytes / RUN_BYTES);
  }

  /** Whether a run holds the request as one of its blocks; other requests need `read`. */
  holds(piece: number, offset: number, length: number): boolean {
    return offset % BLOCK_BYTES === 0 && length === Math.min(BLOCK_BYTES, this.#pieceBytes(piece) - offset);
  }

  /** Whether one run holds both blocks of a piece. */
  sameRun(offset: number, other: number): boolean {
    return Math.floor(offset / RUN_BYTES) === Math.floor(other / RUN_BYTES);
  }

  /** The run with this block if it is in memory, else null. */
  peek(piece: number, offset: number): UploadRun | null {
    const key = this.#key(piece, offset);
    const run = this.#runs.get(key);
    if (run === undefined) return null;
    this.#runs.delete(key);
    this.#runs.set(key, run);
    return run;
  }

  /** Loads the run with this block into memory; rejects as `PieceBank.read` does. */
  load(piece: number, offset: number): Promise<UploadRun> {
    const key = this.#key(piece, offset);
    let job = this.#loading.get(key);
    if (job === undefined) {
      job = this.#load(piece, Math.floor(offset / RUN_BYTES) * RUN_BYTES, key).finally(() => this.#loading.delete(key));
      this.#loading.set(key, job);
    }
    return job;
  }

  /** Starts to load the run with this block unless it is in memory. A failure surfaces when the run is requested. */
  prefetch(piece: number, offset: number): void {
    const key = this.#key(piece, offset);
    if (this.#loading.size >= MAX_PREFETCHES || this.#runs.has(key) || this.#loading.has(key)) return;
    this.load(piece, offset).catch(() => {});
  }

  /** A copy of bytes that no run holds as one of its blocks; zeros after the end of the piece. */
  async read(piece: number, offset: number, length: number): Promise<Uint8Array> {
    const here = Math.min(length, this.#pieceBytes(piece) - offset);
    if (here === length) return await this.#bank.read(piece, offset, length);
    const bytes = new Uint8Array(length);
    if (here > 0) bytes.set(await this.#bank.read(piece, offset, here));
    return bytes;
  }

  /** Forgets a piece. */
  drop(piece: number): void {
    for (let run = 0; run < this.#runsPerPiece; run++) this.#remove(piece * this.#runsPerPiece + run);
  }

  /** Forgets everything. */
  clear(): void {
    this.#runs.clear();
    this.#retired = [];
    this.#bytes = 0;
  }

  #key(piece: number, offset: number): number {
    return piece * this.#runsPerPiece + Math.floor(offset / RUN_BYTES);
  }

  async #load(piece: number, from: number, key: number): Promise<UploadRun> {
    const length = Math.min(RUN_BYTES, this.#pieceBytes(piece) - from);
    const memory = this.#memory(messagesBytes(length));
    const target = blocksOf(memory, length);
    const bytes = await this.#bank.read(piece, from, length, () => target);
    if (bytes !== target) target.set(bytes);
    makeMessages(memory, piece, from);
    const run = new UploadRun(piece, from, memory);
    this.#keep(key, run);
    return run;
  }

  /** Memory of a retired run that no link sends from any more, else fresh. */
  #memory(sizeBytes: number): Uint8Array {
    const found = this.#retired.findIndex((run) => run.memory.length === sizeBytes && !run.isLent);
    return found < 0 ? new Uint8Array(sizeBytes) : this.#retired.splice(found, 1)[0]!.memory;
  }

  #keep(key: number, run: UploadRun): void {
    this.#remove(key);
    this.#runs.set(key, run);
    this.#bytes += run.memory.length;
    for (const oldest of this.#runs.keys()) {
      if (this.#bytes <= LIMIT_BYTES) break;
      this.#remove(oldest);
    }
  }

  #remove(key: number): void {
    const run = this.#runs.get(key);
    if (run === undefined) return;
    this.#runs.delete(key);
    this.#bytes -= run.memory.length;
    this.#retired.push(run);
    // A run that leaves the cache here may still be lent. It is never written to again, and freed when its links are
    // done.
    if (this.#retired.length > MAX_RETIRED_RUNS) this.#retired.shift();
  }
}
