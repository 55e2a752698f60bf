/**
 * The data path of one torrent: scheduler, unfinished pieces, verification and the pieces we have. It knows peers and
 * web seeds only by number; the swarm maps numbers to connections.
 */
import { MillraceError } from "../../errors.ts";
import type { Clock, Ports, Timer } from "../../ports.ts";
import type { PieceStore } from "../../storage/piece-store.ts";
import type { Metainfo } from "../../metainfo/types.ts";
import { BLOCK_BYTES } from "../../wire/types.ts";
import type { BufferSource } from "./assembly.ts";
import { Ingest } from "./ingest.ts";
import { pieceBytes } from "./layout.ts";
import { PieceBank } from "./piece-bank.ts";
import { blockCheck, pieceCheck } from "./piece-check.ts";
import { PieceWaits } from "./piece-waits.ts";
import type { ForgetPiece, SchedulerApi, SchedulerShape } from "../scheduler/types.ts";
import type { Sources } from "./sources.ts";

/** The period of the scheduler's timer, ms: what its contract asks for while there is demand. */
const TICK_MS = 20;

/** Makes a scheduler. */
export type SchedulerFactory = (shape: SchedulerShape, sources: Sources, forgetPiece: ForgetPiece) => SchedulerApi;

/** What the data path reports to the swarm. */
export interface TransferEvents {
  /** A piece was verified. */
  verified(piece: number): void;
  /** A piece we had was lost. */
  lost(piece: number): void;
  /** Trouble that a user should know about; null when it is over. */
  trouble(message: string | null): void;
}

/** Options of a transfer. */
export interface TransferOptions {
  readonly metainfo: Metainfo;
  readonly store: PieceStore;
  readonly ports: Pick<Ports, "clock" | "sha1" | "sha256">;
  readonly buffers: BufferSource;
  /** SHA-256 of each block of a piece (BEP 52), proven; null when nobody sends them. Absent: there are none. */
  readonly leavesOf?: (piece: number) => Promise<Uint8Array | null>;
  readonly createScheduler: SchedulerFactory;
  readonly sources: Sources;
  readonly events: TransferEvents;
}

/** One torrent's data path, from metadata to close. */
export class Transfer {
  readonly metainfo: Metainfo;
  readonly bank: PieceBank;
  readonly scheduler: SchedulerApi;
  readonly waits = new PieceWaits();
  readonly #clock: Clock;
  readonly #sources: Sources;
  readonly #events: TransferEvents;
  readonly #ingest: Ingest;
  #downloadedBytes = 0;
  #timer: Timer | null = null;
  #dueMs = Infinity;
  #closed = false;
  readonly #wakeups = new Set<() => void>();

  constructor(options: TransferOptions) {
    const { metainfo, buffers, sources, ports: { clock, sha1, sha256 } } = options;
    this.metainfo = metainfo;
    this.#clock = clock;
    this.#sources = sources;
    this.#events = options.events;
    const shape = {
      pieceCount: metainfo.pieceCount,
      pieceLengthBytes: metainfo.pieceLengthBytes,
      totalBytes: metainfo.totalBytes,
      ...(metainfo.shortPieces === undefined ? {} : { shortPieces: metainfo.shortPieces }),
      blockBytes: BLOCK_BYTES,
    };
    const scheduler = options.createScheduler(shape, sources, (piece) => this.#ingest.forget(piece));
    const bank = new PieceBank(options.store, clock, {
      lost: (piece) => this.#lost(piece),
      found: (piece) => this.#announce(piece),
      trouble: (message) => this.#events.trouble(message),
    });
    bank.protect = (piece) => scheduler.wanted(piece);
    const { leavesOf } = options;
    this.#ingest = new Ingest({
      shape,
      clock,
      sha1,
      buffers,
      bank,
      scheduler,
      sources,
      matches: pieceCheck(metainfo, { sha1, sha256 }),
      ...(leavesOf === undefined ? {} : { wrongBlocks: blockCheck(leavesOf, sha256) }),
      events: { verified: (piece) => this.#verified(piece), wanted: () => this.kick() },
    });
    this.scheduler = scheduler;
    this.bank = bank;
    const have = this.bank.have;
    for (let piece = 0; piece < have.size; piece++) {
      if (have.has(piece)) this.scheduler.pieceVerified(piece, clock.monotonic());
    }
  }

  /** Verified payload since the start, bytes. */
  get downloadedBytes(): number {
    return this.#downloadedBytes;
  }

  /** Payload thrown away since the start, bytes. */
  get wastedBytes(): number {
    return this.#ingest.wastedBytes;
  }

  /** Every piece is stored and verified. */
  get complete(): boolean {
    return this.bank.have.full;
  }

  /** Pieces with a wrong hash since the start. */
  get failedPieces(): number {
    return this.#ingest.failedPieces;
  }

  /** Unfinished pieces. */
  get underWay(): Iterable<number> {
    return this.#ingest.underWay;
  }

  /** Bytes that are still missing. */
  get leftBytes(): number {
    const { have } = this.bank;
    const { pieceCount, pieceLengthBytes, totalBytes, shortPieces = [] } = this.metainfo;
    if (have.full) return 0;
    const lastBytes = totalBytes - (pieceCount - 1) * pieceLengthBytes;
    const short = have.has(pieceCount - 1) ? pieceLengthBytes - lastBytes : 0;
    let left = totalBytes - (have.count * pieceLengthBytes - short);
    for (const [piece, bytes] of shortPieces) if (!have.has(piece)) left -= pieceLengthBytes - bytes;
    return left;
  }

  /**
   * Fetches everything, or only what readers want. Returns false when everything is wanted but the cache is too small for
   * it: a full download would forever fetch evicted pieces.
   */
  setBackground(isAll: boolean, cacheLimitBytes: number): boolean {
    const { totalBytes, pieceCount } = this.metainfo;
    const fits = cacheLimitBytes === 0 || totalBytes <= cacheLimitBytes;
    const range = isAll && fits ? { firstPiece: 0, endPiece: pieceCount } : null;
    this.scheduler.setBackground(range, this.#clock.monotonic());
    this.kick();
    return fits || !isAll;
  }

  /** Where an arriving block goes (see `Ingest.target`). */
  blockTarget(source: number, piece: number, offset: number, length: number): Uint8Array | null {
    return this.#closed ? null : this.#ingest.target(source, piece, offset, length);
  }

  /** A block arrived; returns how many bytes were of use. */
  blockArrived(source: number, piece: number, offset: number, length: number, kept: boolean): number {
    if (this.#closed) return 0;
    const used = this.#ingest.deliver(source, piece, offset, length, kept);
    this.kick();
    return used;
  }

  /** A peer choked us. */
  sourceChoked(source: number): void {
    this.#ingest.sourceChoked(source);
  }

  /** A peer refused a block (see `Ingest.sourceRefused`). */
  sourceRefused(source: number, piece: number): boolean {
    return this.#ingest.sourceRefused(source, piece);
  }

  /** A source left for good. */
  sourceLeft(source: number): void {
    this.#ingest.sourceLeft(source);
  }

  /** A source gave up the block it was delivering. */
  abandonBlock(source: number): void {
    this.#ingest.leave(source);
  }

  /** Calls `fn` after each change that may give a web seed work, until the returned function is called. */
  onWork(fn: () => void): () => void {
    this.#wakeups.add(fn);
    return () => this.#wakeups.delete(fn);
  }

  /** Something changed: the scheduler's timer will run soon. */
  kick(): void {
    const now = this.#clock.monotonic();
    if (this.#closed || this.#dueMs <= now + TICK_MS) return;
    this.#arm(TICK_MS, now);
  }

  /** Ends it: waiting readers reject with `error`. The caller closes the store. */
  close(error: MillraceError = new MillraceError("closed", "the swarm was closed")): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#timer?.cancel();
    this.#ingest.close();
    this.#wakeups.clear();
    this.waits.failAll(error);
  }

  #arm(delayMs: number, nowMs: number): void {
    this.#timer?.cancel();
    this.#dueMs = nowMs + delayMs;
    this.#timer = this.#clock.setTimeout(() => this.#tick(), delayMs);
  }

  #tick(): void {
    this.#timer = null;
    this.#dueMs = Infinity;
    const now = this.#clock.monotonic();
    this.#sources.reportProgress(now);
    const next = this.scheduler.tick(now);
    for (const fn of this.#wakeups) fn();
    if (next !== null && !this.#closed && this.#timer === null) this.#arm(Math.max(1, next), now);
  }

  #verified(piece: number): void {
    this.#downloadedBytes += pieceBytes(this.metainfo, piece);
    this.#announce(piece);
  }

  /** Notifies the scheduler, readers and peers of a piece that is now downloaded. */
  #announce(piece: number): void {
    this.scheduler.pieceVerified(piece, this.#clock.monotonic());
    this.waits.wake(piece);
    this.#events.verified(piece);
    this.kick();
  }

  #lost(piece: number): void {
    this.scheduler.pieceLost(piece, this.#clock.monotonic());
    this.#events.lost(piece);
    // Readers that wait for it check again and continue to wait; readers that were reading it fetch it again.
    this.kick();
  }
}
