/** Reads one file of a torrent, waiting for bytes that are not downloaded yet. */
import { abortError, hasCode, MillraceError } from "../../errors.ts";
import type { Allocate, ReadOptions } from "../../bytes/source.ts";
import { noteTurn } from "../../bytes/turn.ts";
import { defaultTuning } from "../scheduler/tuning.ts";
import type { ReaderDemand } from "../scheduler/types.ts";
import type { SharedReads } from "./shared-reads.ts";
import type { Transfer } from "../data/transfer.ts";
import type { StallReason, SwarmReader } from "../types.ts";

/** Largest single read, bytes: players and media code read far less, and memory must stay bounded. */
export const MAX_READ_BYTES = 64 * 1024 * 1024;

/** How many times a piece may vanish from the cache during a read before the read fails. */
const MAX_REFETCHES = 8;

/** Most pieces on disk that one read reads side by side: a read of media reaches into two. */
const MAX_PIECES_AT_ONCE = 4;

/** A wait shorter than this is not a stall, ms. */
const LATE_MS = 500;

/** What a reader needs of its swarm. */
export interface ReaderHost {
  readonly transfer: Transfer;
  /** Shared by all readers of the torrent. */
  readonly sharedReads: SharedReads;
  now(): number;
  /** No peer is connected. */
  stallWithoutPeers(): boolean;
  /** Bytes of cache available to this reader's read-ahead. */
  readAheadRoom(): number;
  closed(reader: TorrentReader): void;
}

/** Options of a reader. */
export interface TorrentReaderOptions {
  readonly handle: number;
  readonly fileIndex: number;
  /** Offset of the file in the torrent, bytes. */
  readonly fileOffset: number;
  readonly sizeBytes: number;
  readonly readAheadBytes: number | null;
  readonly yieldMs: number;
}

interface PendingRead {
  position: number;
  readonly end: number;
  readonly sinceMs: number;
}

/** `SwarmReader` over a transfer. */
export class TorrentReader implements SwarmReader {
  readonly fileIndex: number;
  readonly sizeBytes: number;
  readonly #host: ReaderHost;
  readonly #handle: number;
  readonly #base: number;
  readonly #demand: ReaderDemand;
  readonly #pending = new Set<PendingRead>();
  readonly #ending = new AbortController();
  #isClosed = false;
  #announced = false;

  constructor(host: ReaderHost, options: TorrentReaderOptions) {
    this.#host = host;
    this.#handle = options.handle;
    this.fileIndex = options.fileIndex;
    this.#base = options.fileOffset;
    this.sizeBytes = options.sizeBytes;
    host.sharedReads.join();
    this.#demand = {
      position: this.#base,
      end: this.#base + this.sizeBytes,
      bytesPerSecond: null,
      readAheadBytes: options.readAheadBytes,
      waitingEnd: this.#base,
      yieldMs: options.yieldMs,
    };
  }

  /** Whether the scheduler fetches ahead of it (once it has read something). */
  get readsAhead(): boolean {
    return this.#announced && this.#demand.readAheadBytes !== 0;
  }

  /** Its position, bytes from the beginning of the torrent. */
  get position(): number {
    return this.#demand.position;
  }

  setBitrate(bytesPerSecond: number): void {
    this.#demand.bytesPerSecond = bytesPerSecond > 0 ? bytesPerSecond : null;
    if (this.#announced) this.#tell();
  }

  setReadAhead(bytes: number): number {
    this.#demand.readAheadBytes = bytes;
    if (this.#announced) this.#tell();
    return this.#readAhead() ?? bytes;
  }

  read(offset: number, length: number, options: ReadOptions): Promise<Uint8Array> {
    if (this.#isClosed) return Promise.reject(closedError());
    if (options.signal.aborted) return Promise.reject(abortError(options.signal));
    if (!(offset >= 0 && length >= 0 && offset + length <= this.sizeBytes)) {
      return Promise.reject(new MillraceError("invalid_argument", `range ${offset}+${length} is outside the file`));
    }
    if (length > MAX_READ_BYTES) {
      return Promise.reject(new MillraceError("too_large", `reads are limited to ${MAX_READ_BYTES} bytes`));
    }
    if (length === 0) return Promise.resolve(new Uint8Array(0));
    return options.shared === true && this.#host.sharedReads.worthwhile
      ? this.#readShared(this.#base + offset, length, options.signal)
      : this.#readOwn(this.#base + offset, length, options.signal, options.allocate);
  }

  #readOwn(start: number, length: number, signal: AbortSignal, allocate?: Allocate): Promise<Uint8Array> {
    const ready = this.#peek(start, length, allocate);
    if (ready === null) return this.#fromStore(start, length, signal, allocate);
    this.#moveTo(start + length);
    return Promise.resolve(ready);
  }

  /** Bytes of a few pieces that are downloaded are read side by side, without telling the scheduler; all other reads are collected. */
  async #fromStore(
    start: number,
    length: number,
    signal: AbortSignal,
    allocate?: Allocate,
  ): Promise<Uint8Array> {
    const { bank, metainfo: { pieceLengthBytes } } = this.#host.transfer;
    const first = Math.floor(start / pieceLengthBytes);
    const last = Math.floor((start + length - 1) / pieceLengthBytes);
    let isHere = last - first < MAX_PIECES_AT_ONCE;
    for (let piece = first; isHere && piece <= last; piece++) isHere = bank.have.has(piece);
    if (!isHere) return this.#collect(start, length, signal, allocate);
    let bytes: Uint8Array;
    try {
      bytes = first === last
        ? await bank.read(first, start - first * pieceLengthBytes, length, allocate)
        : await this.#readPieces(first, start, allocate?.(length) ?? new Uint8Array(length));
    } catch {
      return this.#collect(start, length, signal, allocate);
    }
    if (signal.aborted) throw abortError(signal);
    if (this.#isClosed) throw closedError();
    this.#moveTo(start + length);
    return bytes;
  }

  /** Fills `out` from `start` on, which is in piece `first`. After a failure other parts may still be written to. */
  async #readPieces(first: number, start: number, out: Uint8Array): Promise<Uint8Array> {
    const { bank, metainfo: { pieceLengthBytes } } = this.#host.transfer;
    const parts: Promise<void>[] = [];
    for (let piece = first, at = 0; at < out.length; piece++) {
      const from = start + at - piece * pieceLengthBytes;
      const into = out.subarray(at, at + pieceLengthBytes - from);
      parts.push(bank.read(piece, from, into.length, () => into).then((bytes) => put(bytes, into)));
      at += into.length;
    }
    await Promise.all(parts);
    return out;
  }

  async #readShared(start: number, length: number, signal: AbortSignal): Promise<Uint8Array> {
    const shared = this.#host.sharedReads;
    const own = () => this.#readOwn(start, length, signal);
    const kept = shared.get(start, length);
    // Bytes not downloaded yet are not shared: each reader waits with its own deadline.
    const bytes = kept ??
      (this.availableFrom(start - this.#base, length) < length
        ? await own()
        : await shared.through(start, length, own));
    if (this.#isClosed) throw closedError();
    if (this.#demand.position !== start + length) this.#moveTo(start + length);
    return bytes;
  }

  availableFrom(offset: number, maxBytes: number): number {
    const { have } = this.#host.transfer.bank;
    const pieceLength = this.#host.transfer.metainfo.pieceLengthBytes;
    const start = this.#base + Math.max(0, offset);
    const end = Math.min(this.#base + this.sizeBytes, start + maxBytes);
    let at = start;
    while (at < end) {
      const piece = Math.floor(at / pieceLength);
      if (!have.has(piece)) break;
      at = Math.min(end, (piece + 1) * pieceLength);
    }
    return Math.max(0, at - start);
  }

  pieceEnd(offset: number): number {
    const { pieceLengthBytes } = this.#host.transfer.metainfo;
    const end = (Math.floor((this.#base + offset) / pieceLengthBytes) + 1) * pieceLengthBytes;
    return Math.min(this.sizeBytes, end - this.#base);
  }

  isWaiting(): boolean {
    return this.#pending.size > 0;
  }

  stallReason(): StallReason | null {
    const first = this.#pending.values().next().value;
    if (first === undefined || this.#host.now() - first.sinceMs < LATE_MS) return null;
    if (this.#host.stallWithoutPeers()) return "no_peers";
    return this.#host.transfer.scheduler.stallReason(this.#handle, this.#host.now());
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#ending.abort(closedError());
    if (this.#announced) this.#host.transfer.scheduler.removeReader(this.#handle, this.#host.now());
    this.#host.transfer.kick();
    this.#host.sharedReads.leave();
    this.#host.closed(this);
  }

  /** A copy if all of it is in memory now, else null. */
  #peek(start: number, length: number, allocate?: Allocate): Uint8Array | null {
    const { bank, metainfo } = this.#host.transfer;
    const pieceLength = metainfo.pieceLengthBytes;
    const first = Math.floor(start / pieceLength);
    const offset = start - first * pieceLength;
    if (offset + length <= pieceLength) return bank.peek(first, offset, length, allocate);
    const last = Math.floor((start + length - 1) / pieceLength);
    // Check before allocating: most of what is read again is on disk by now.
    for (let piece = first; piece <= last; piece++) if (bank.peek(piece, 0, 0) === null) return null;
    const out = allocate?.(length) ?? new Uint8Array(length);
    for (let at = 0; at < length;) {
      const piece = Math.floor((start + at) / pieceLength);
      const from = start + at - piece * pieceLength;
      const into = out.subarray(at, Math.min(length, at + pieceLength - from));
      const part = bank.peek(piece, from, into.length, () => into);
      if (part === null) return null;
      put(part, into);
      at += into.length;
    }
    return out;
  }

  /**
   * Piece by piece: bytes that have arrived are copied at once, so that they may be evicted while the reader waits for the
   * others.
   */
  async #collect(
    start: number,
    length: number,
    signal: AbortSignal,
    allocate?: Allocate,
  ): Promise<Uint8Array> {
    const { metainfo } = this.#host.transfer;
    const pieceLength = metainfo.pieceLengthBytes;
    const pending: PendingRead = { position: start, end: start + length, sinceMs: this.#host.now() };
    this.#pending.add(pending);
    this.#tell();
    const both = joinSignals(signal, this.#ending.signal);
    try {
      const out = allocate?.(length) ?? new Uint8Array(length);
      while (pending.position < pending.end) {
        const piece = Math.floor(pending.position / pieceLength);
        const from = pending.position - piece * pieceLength;
        const count = Math.min(pending.end - pending.position, pieceLength - from);
        const at = pending.position - start;
        await this.#copyPiece(piece, from, out.subarray(at, at + count), both.signal);
        pending.position += count;
        if (pending.position < pending.end) this.#tell();
      }
      return out;
    } finally {
      both.release();
      this.#pending.delete(pending);
      if (!this.#isClosed) {
        if (pending.position >= pending.end) this.#moveTo(pending.end);
        else this.#tell();
      }
    }
  }

  async #copyPiece(piece: number, from: number, into: Uint8Array, signal: AbortSignal): Promise<void> {
    const { bank, waits } = this.#host.transfer;
    // The store writes straight into place: otherwise each part of a long read would be cleared, copied and collected again.
    const place = () => into;
    for (let refetches = 0;;) {
      if (signal.aborted) throw abortError(signal);
      const inMemory = bank.peek(piece, from, into.length, place);
      if (inMemory !== null) return put(inMemory, into);
      if (!bank.have.has(piece)) {
        await waits.wait(piece, signal);
        noteTurn();
        continue;
      }
      try {
        const bytes = await bank.read(piece, from, into.length, place);
        if (signal.aborted) throw abortError(signal);
        return put(bytes, into);
      } catch (error) {
        const gone = hasCode(error, "not_found") || hasCode(error, "io") || hasCode(error, "corrupt");
        if (!gone || ++refetches > MAX_REFETCHES) throw error;
      }
    }
  }

  /** null: the scheduler decides. A number: the requested read-ahead, or less when the cache has less room. */
  #readAhead(): number | null {
    const { readAheadBytes, bytesPerSecond } = this.#demand;
    const room = this.#host.readAheadRoom();
    if (readAheadBytes !== null) return Math.min(readAheadBytes, room);
    const { readAheadMinBytes, readAheadMaxBytes, readAheadMs } = defaultTuning;
    if (room >= readAheadMaxBytes) return null;
    return Math.min(room, Math.max(readAheadMinBytes, (bytesPerSecond ?? 0) * readAheadMs / 1000));
  }

  /** The reader is at `position` now; the bytes after it are fetched ahead. */
  #moveTo(position: number): void {
    this.#demand.position = position;
    this.#tell();
  }

  #tell(): void {
    if (this.#isClosed) return;
    const first = this.#pending.values().next().value;
    if (first === undefined) {
      this.#demand.waitingEnd = this.#demand.position;
    } else {
      this.#demand.position = first.position;
      this.#demand.waitingEnd = first.end;
    }
    this.#announced = true;
    this.#host.transfer.scheduler.setReader(
      this.#handle,
      { ...this.#demand, readAheadBytes: this.#readAhead() },
      this.#host.now(),
    );
    this.#host.transfer.kick();
  }
}

/** Copies bytes into place unless the store has written them there. */
function put(bytes: Uint8Array, into: Uint8Array): void {
  if (bytes !== into) into.set(bytes);
}

function closedError(): MillraceError {
  return new MillraceError("closed", "the reader was closed");
}

/** A signal that fires with the first of the two; `release` removes its listeners from both. */
function joinSignals(a: AbortSignal, b: AbortSignal): { signal: AbortSignal; release: () => void } {
  const controller = new AbortController();
  const onA = () => controller.abort(abortError(a));
  const onB = () => controller.abort(abortError(b));
  if (a.aborted) onA();
  else if (b.aborted) onB();
  a.addEventListener("abort", onA, { once: true });
  b.addEventListener("abort", onB, { once: true });
  return {
    signal: controller.signal,
    release() {
      a.removeEventListener("abort", onA);
      b.removeEventListener("abort", onB);
    },
  };
}
