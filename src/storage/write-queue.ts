/** Writes pieces with as few calls as possible: small neighbouring pieces are written together. */
import { pieceBytes } from "../bytes/piece-shape.ts";
import type { Medium } from "./medium.ts";
import type { WindowEntry } from "./piece-window.ts";
import type { TorrentLayout } from "./piece-store.ts";

/** Concurrent writes: the disk stays busy while the next call is prepared. */
const CONCURRENCY = 2;

/** Pieces of at least this size are written alone: copying them together costs more than a call. */
const SMALL_PIECE_BYTES = 256 * 1024;

/** Most bytes of small pieces per write. */
const RUN_BYTES = 1024 * 1024;

interface Job {
  readonly entry: WindowEntry;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** The dirty pieces of one torrent. */
export class WriteQueue {
  readonly #layout: TorrentLayout;
  readonly #medium: Medium;
  readonly #queued = new Map<number, Job>();
  readonly #staging: Uint8Array[] = [];
  #active = 0;
  #bytes = 0;
  #idleWaiters: (() => void)[] = [];

  constructor(layout: TorrentLayout, medium: Medium) {
    this.#layout = layout;
    this.#medium = medium;
  }

  /** Bytes queued and being written. */
  get pendingBytes(): number {
    return this.#bytes;
  }

  /** Resolves when the piece is written; rejects with the medium's error. */
  push(entry: WindowEntry): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#queued.set(entry.piece, { entry, resolve, reject });
      this.#bytes += entry.data.length;
      this.#pump();
    });
  }

  /** Resolves when nothing is queued or being written. */
  async idle(): Promise<void> {
    if (this.#active > 0 || this.#queued.size > 0) await new Promise<void>((done) => this.#idleWaiters.push(done));
  }

  #pump(): void {
    while (this.#active < CONCURRENCY && this.#queued.size > 0) {
      const run = this.#takeRun();
      this.#active++;
      void this.#write(run).finally(() => {
        this.#active--;
        this.#pump();
      });
    }
    if (this.#active === 0 && this.#queued.size === 0) {
      const waiters = this.#idleWaiters;
      this.#idleWaiters = [];
      for (const done of waiters) done();
    }
  }

  /** The oldest queued piece, with its queued neighbours when it is small. */
  #takeRun(): Job[] {
    const [first] = this.#queued.keys();
    let from = first!;
    let end = from + 1;
    if (this.#layout.pieceLengthBytes < SMALL_PIECE_BYTES) {
      const most = Math.floor(RUN_BYTES / this.#layout.pieceLengthBytes);
      const reachesOn = (piece: number) => pieceBytes(this.#layout, piece) === this.#layout.pieceLengthBytes;
      while (end - from < most && this.#queued.has(end) && reachesOn(end - 1)) end++;
      while (end - from < most && this.#queued.has(from - 1) && reachesOn(from - 1)) from--;
    }
    const run: Job[] = [];
    for (let piece = from; piece < end; piece++) {
      run.push(this.#queued.get(piece)!);
      this.#queued.delete(piece);
    }
    return run;
  }

  async #write(run: Job[]): Promise<void> {
    const staging = run.length > 1 ? this.#staging.pop() ?? new Uint8Array(RUN_BYTES) : null;
    let failure: unknown = null;
    try {
      let data = run[0]!.entry.data;
      if (staging !== null) {
        let at = 0;
        for (const { entry } of run) {
          staging.set(entry.data, at);
          at += entry.data.length;
        }
        data = staging.subarray(0, at);
      }
      await this.#medium.write(run[0]!.entry.piece * this.#layout.pieceLengthBytes, data);
    } catch (error) {
      failure = error;
    }
    if (staging !== null) this.#staging.push(staging);
    for (const job of run) {
      this.#bytes -= pieceBytes(this.#layout, job.entry.piece);
      if (failure === null) job.resolve();
      else job.reject(failure);
    }
  }
}
