/**
 * One torrent on disk. Pieces are readable from memory as soon as they are put; a bit is set in the resume file only
 * after its bytes were flushed. A piece is hashed before it is first served from disk, and again when another program
 * seems to have changed its file.
 */
import { Bitfield } from "../bytes/bitfield.ts";
import { pieceBytes } from "../bytes/piece-shape.ts";
import { type Allocate, copyOf } from "../bytes/source.ts";
import { hasCode, MillraceError } from "../errors.ts";
import type { Clock, FilePort, Logger, Timer } from "../ports.ts";
import type { BufferPool } from "./buffer-pool.ts";
import type { DiskStoreOptions } from "./disk-store-options.ts";
import type { Medium } from "./medium.ts";
import type { PieceHasher } from "./piece-hasher.ts";
import type { NewestPieces, WindowEntry } from "./piece-window.ts";
import { saveResume } from "./resume.ts";
import type { CheckProgress, PieceStore, TorrentLayout } from "./piece-store.ts";
import type { UnitLru, UnitOwner } from "./unit-lru.ts";
import { WriteQueue } from "./write-queue.ts";

/** The parts that the stores of a cache share. */
export interface DiskShared {
  readonly files: FilePort;
  readonly clock: Clock;
  readonly log: Logger;
  readonly buffers: BufferPool;
  readonly window: NewestPieces;
  readonly hasher: PieceHasher;
  readonly lru: UnitLru;
}

/** Delay before a change is saved to the resume file, ms: a crash loses what was fetched in that time. */
const RESUME_SAVE_MS = 5_000;
/** Reads up to this size load the whole piece into memory: a peer requests the rest of it next, block by block. */
const SMALL_READ_BYTES = 64 * 1024;
/** Largest piece that is loaded into memory for small reads. */
const MAX_LOADED_PIECE_BYTES = 2 * 1024 * 1024;
/** After a warning about changed files, further ones are only debug lines for this long, ms: a cache has thousands. */
const NOTICE_PAUSE_MS = 60_000;
/** Space to free when the disk is full although the limit isn't reached, bytes. */
const DISK_FULL_EVICTION_BYTES = 64 * 1024 * 1024;

/** One torrent's pieces on disk. */
export class DiskStore implements PieceStore, UnitOwner {
  readonly have: Bitfield;
  readonly evictable: boolean;
  readonly layout: TorrentLayout;
  readonly medium: Medium;
  protect: (piece: number) => boolean = () => false;
  onLost: (piece: number, reason: "evicted" | "deleted" | "io") => void = () => {};
  onFound: (piece: number) => void = () => {};
  checking: CheckProgress | null = null;
  readonly #shared: DiskShared;
  readonly #options: DiskStoreOptions;
  readonly #queue: WriteQueue;
  readonly #memory = new Map<number, WindowEntry>();
  readonly #loading = new Map<number, Promise<WindowEntry>>();
  /** Pieces that another program may have changed: hashed before they are served. */
  readonly #suspects: Bitfield;
  /** Pieces hashed since their file was last written; others are hashed when they are read from disk. */
  readonly #checked = new Set<number>();
  #quietUntilMs = -Infinity;
  #sweeping = false;
  #saveTimer: Timer | null = null;
  #saving: Promise<void> = Promise.resolve();
  #closing: Promise<void> | null = null;

  constructor(shared: DiskShared, layout: TorrentLayout, medium: Medium, options: DiskStoreOptions) {
    this.#shared = shared;
    this.layout = layout;
    this.medium = medium;
    this.#options = options;
    this.evictable = medium.placement.kind === "extents";
    this.have = new Bitfield(layout.pieceCount);
    this.#suspects = new Bitfield(layout.pieceCount);
    this.#queue = new WriteQueue(layout, medium);
  }

  get pendingBytes(): number {
    return this.#queue.pendingBytes;
  }

  get closed(): boolean {
    return this.#closing !== null;
  }

  put(piece: number, data: Uint8Array): Promise<void> {
    const refuse = (code: "closed" | "io" | "invalid_argument" | "disk_full", message: string) => {
      this.#shared.buffers.release(data);
      return Promise.reject(new MillraceError(code, message));
    };
    if (this.closed) return refuse("closed", "the store is closed");
    if (this.#options.readOnly) return refuse("io", "these files are read-only");
    if (!this.#isPiece(piece) || data.length !== pieceBytes(this.layout, piece)) {
      return refuse("invalid_argument", `piece ${piece} of ${data.length} bytes does not fit the torrent`);
    }
    if (this.have.has(piece)) {
      this.#shared.buffers.release(data);
      return Promise.resolve();
    }
    if (this.evictable && !this.#shared.lru.makeRoom(data.length)) {
      return refuse("disk_full", "readers need everything that the cache limit allows: raise the limit");
    }
    this.#markPresent(piece);
    return this.#write(this.#remember(piece, data, true));
  }

  peek(piece: number, offset: number, length: number, allocate?: Allocate): Uint8Array | null {
    const entry = this.#memory.get(piece);
    if (entry === undefined || offset < 0 || offset + length > entry.data.length) return null;
    this.#shared.window.touch(entry);
    if (this.evictable) this.#shared.lru.touch(this, this.#unitOf(piece));
    return copyOf(entry.data, offset, length, allocate);
  }

  async read(piece: number, offset: number, length: number, allocate?: Allocate): Promise<Uint8Array> {
    if (this.closed) throw new MillraceError("closed", "the store is closed");
    if (!this.have.has(piece)) throw new MillraceError("not_found", `piece ${piece} is not stored`);
    if (offset < 0 || length < 0 || offset + length > pieceBytes(this.layout, piece)) {
      throw new MillraceError("invalid_argument", `range ${offset}+${length} is outside piece ${piece}`);
    }
    const bytes = this.peek(piece, offset, length, allocate);
    if (bytes !== null) return bytes;
    if (this.evictable) this.#shared.lru.touch(this, this.#unitOf(piece));
    await this.#watch(piece, offset, length);
    try {
      return await this.#readFromDisk(piece, offset, length, allocate);
    } catch (error) {
      if (!this.have.has(piece)) throw new MillraceError("not_found", `piece ${piece} is gone`, { cause: error });
      if (!this.closed && !this.#memory.has(piece)) this.#lose(piece, "io");
      throw error;
    }
  }

  /**
   * Marks a piece found on disk as present: `hashed` when it is known to be good, `announce` when the store is already
   * in use.
   */
  adoptFound(piece: number, { hashed, announce }: { hashed: boolean; announce: boolean }): void {
    if (this.closed || this.have.has(piece)) return;
    this.#markPresent(piece);
    if (hashed) this.#checked.add(piece);
    if (announce) this.onFound(piece);
  }

  /** Returns whether the bytes on disk match the piece's hash. */
  async verifyOnDisk(piece: number): Promise<boolean> {
    const data = this.#shared.buffers.acquire(pieceBytes(this.layout, piece));
    try {
      await this.medium.read(piece * this.layout.pieceLengthBytes, data);
      return await this.#shared.hasher.matches(data, this.layout, piece);
    } catch {
      return false;
    } finally {
      this.#shared.buffers.release(data);
    }
  }

  mayEvict(unit: number): boolean {
    const { first, end } = this.medium.placement.piecesOf(unit);
    for (let piece = first; piece < end; piece++) {
      if (!this.have.has(piece)) continue;
      if (this.#memory.get(piece)?.dirty || (!this.closed && this.protect(piece))) return false;
    }
    return true;
  }

  evict(unit: number): Promise<void> {
    const { first, end } = this.medium.placement.piecesOf(unit);
    const removed = this.medium.remove(unit);
    for (let piece = first; piece < end; piece++) this.#lose(piece, "evicted");
    return removed;
  }

  close(): Promise<void> {
    this.#closing ??= this.#finish();
    return this.#closing;
  }

  async #finish(): Promise<void> {
    this.#saveTimer?.cancel();
    try {
      await this.#queue.idle();
      await this.#save();
      for (const entry of [...this.#memory.values()]) this.#shared.window.remove(entry);
      await this.medium.close();
    } finally {
      // Whatever failed: otherwise the torrent could not be opened until the engine starts again.
      this.#options.onClosed();
    }
  }

  #isPiece(piece: number): boolean {
    return Number.isInteger(piece) && piece >= 0 && piece < this.layout.pieceCount;
  }

  #unitOf(piece: number): number {
    return this.medium.placement.locate(piece * this.layout.pieceLengthBytes, 1)[0]!.unit;
  }

  #markPresent(piece: number): void {
    if (!this.have.set(piece)) return;
    this.#checked.delete(piece);
    this.#shared.lru.change(this, this.evictable ? this.#unitOf(piece) : 0, pieceBytes(this.layout, piece));
  }

  #markAbsent(piece: number): boolean {
    if (!this.have.set(piece, false)) return false;
    this.#suspects.set(piece, false);
    this.#shared.lru.change(this, this.evictable ? this.#unitOf(piece) : 0, -pieceBytes(this.layout, piece));
    const entry = this.#memory.get(piece);
    if (entry !== undefined) this.#shared.window.remove(entry);
    this.#scheduleSave();
    return true;
  }

  #lose(piece: number, reason: "evicted" | "deleted" | "io"): void {
    if (this.#markAbsent(piece) && !this.closed) this.onLost(piece, reason);
  }

  #remember(piece: number, data: Uint8Array, dirty: boolean): WindowEntry {
    const entry: WindowEntry = { piece, data, dirty, dropped: false, drop: () => void this.#memory.delete(piece) };
    this.#memory.set(piece, entry);
    this.#shared.window.add(entry);
    return entry;
  }

  async #write(entry: WindowEntry): Promise<void> {
    try {
      try {
        await this.#queue.push(entry);
      } catch (error) {
        // The disk may be fuller than the limit supposes: the cache gives way once.
        if (!hasCode(error, "disk_full") || await this.#shared.lru.evict(DISK_FULL_EVICTION_BYTES) === 0) throw error;
        await this.#queue.push(entry);
      }
      this.#shared.window.written(entry);
      this.#scheduleSave();
    } catch (error) {
      this.#shared.window.written(entry);
      this.#markAbsent(entry.piece);
      throw error;
    }
  }

  async #readFromDisk(
    piece: number,
    offset: number,
    length: number,
    allocate?: Allocate,
  ): Promise<Uint8Array> {
    const loadable = length <= SMALL_READ_BYTES && this.layout.pieceLengthBytes <= MAX_LOADED_PIECE_BYTES;
    if (loadable || this.#doubtful(piece)) {
      const entry = await this.#load(piece);
      // The window may have dropped it after the load finished.
      if (!entry.dropped) return copyOf(entry.data, offset, length, allocate);
    }
    if (!this.have.has(piece)) throw new MillraceError("not_found", `piece ${piece} is gone`);
    const into = allocate?.(length) ?? new Uint8Array(length);
    await this.medium.read(piece * this.layout.pieceLengthBytes + offset, into);
    return into;
  }

  #doubtful(piece: number): boolean {
    return this.#suspects.has(piece) || !this.#checked.has(piece);
  }

  /** Loads a whole piece into memory, once for all waiters; a piece that may have been changed is hashed. */
  #load(piece: number): Promise<WindowEntry> {
    let load = this.#loading.get(piece);
    if (load === undefined) {
      load = this.#loadNow(piece).finally(() => this.#loading.delete(piece));
      this.#loading.set(piece, load);
    }
    return load;
  }

  async #loadNow(piece: number): Promise<WindowEntry> {
    const data = this.#shared.buffers.acquire(pieceBytes(this.layout, piece));
    try {
      const doubtful = this.#doubtful(piece);
      await this.medium.read(piece * this.layout.pieceLengthBytes, data);
      if (doubtful || this.#doubtful(piece)) {
        if (!await this.#shared.hasher.matches(data, this.layout, piece)) {
          throw new MillraceError("corrupt", `piece ${piece} was changed on disk`);
        }
        this.#suspects.set(piece, false);
        this.#checked.add(piece);
      }
      if (!this.have.has(piece) || this.closed) throw new MillraceError("not_found", `piece ${piece} is gone`);
    } catch (error) {
      this.#shared.buffers.release(data);
      throw error;
    }
    const present = this.#memory.get(piece);
    if (present === undefined) return this.#remember(piece, data, false);
    this.#shared.buffers.release(data);
    return present;
  }

  /** Checks whether another program changed the files of the range. */
  async #watch(piece: number, offset: number, length: number): Promise<void> {
    for (const { unit, change } of await this.medium.changesIn(piece * this.layout.pieceLengthBytes + offset, length)) {
      if (change !== "written") this.#distrust(unit, change === "missing");
      else {
        const { first, end } = this.medium.placement.piecesOf(unit);
        for (const known of this.#checked) if (known >= first && known < end) this.#checked.delete(known);
      }
    }
  }

  /** Another program changed or deleted a unit. Pieces in memory or on their way to disk are not affected. */
  #distrust(unit: number, missing: boolean): void {
    const { first, end } = this.medium.placement.piecesOf(unit);
    let count = 0;
    for (let piece = first; piece < end; piece++) {
      if (!this.have.has(piece) || this.#memory.get(piece)?.dirty) continue;
      count++;
      if (missing) this.#lose(piece, "deleted");
      else this.#suspects.set(piece);
    }
    if (count === 0) return;
    const nowMs = this.#shared.clock.monotonic();
    const level = nowMs < this.#quietUntilMs ? "debug" : "warn";
    this.#quietUntilMs = nowMs + NOTICE_PAUSE_MS;
    this.#shared.log.log(level, missing ? "a cache file was deleted" : "a cache file was changed by somebody else", {
      infohash: this.layout.infohashHex,
      pieces: count,
    });
    if (this.#suspects.count > 0) void this.#sweep();
  }

  /** Hashes suspects one after another, so that losses are known before a reader needs the pieces. */
  async #sweep(): Promise<void> {
    if (this.#sweeping) return;
    this.#sweeping = true;
    for (let piece = 0; piece < this.layout.pieceCount && !this.closed; piece++) {
      if (!this.#suspects.has(piece)) continue;
      const good = await this.verifyOnDisk(piece);
      if (this.closed || !this.#suspects.set(piece, false) || good) continue;
      const entry = this.#memory.get(piece);
      if (entry?.dirty) continue;
      this.#lose(piece, "io");
    }
    this.#sweeping = false;
    if (this.#suspects.count > 0 && !this.closed) void this.#sweep();
  }

  #scheduleSave(): void {
    if (this.#saveTimer !== null || this.closed || this.#options.resumePath === null) return;
    this.#saveTimer = this.#shared.clock.setTimeout(() => {
      this.#saveTimer = null;
      void this.#save();
    }, RESUME_SAVE_MS);
  }

  #save(): Promise<void> {
    this.#saving = this.#saving.catch(() => {}).then(() => this.#saveNow());
    return this.#saving;
  }

  async #saveNow(): Promise<void> {
    const path = this.#options.resumePath;
    if (path === null) return;
    // Pieces written by now; the flush below covers them.
    const written = new Bitfield(this.layout.pieceCount, this.have.bytes);
    for (const entry of this.#memory.values()) if (entry.dirty) written.set(entry.piece, false);
    for (const unit of await this.medium.settle()) {
      const { first, end } = this.medium.placement.piecesOf(unit);
      for (let piece = first; piece < end; piece++) {
        if (written.has(piece) && !this.#memory.get(piece)?.dirty) this.#lose(piece, "deleted");
      }
    }
    for (let piece = 0; piece < this.layout.pieceCount; piece++) {
      if (!this.have.has(piece) || this.#suspects.has(piece)) written.set(piece, false);
    }
    try {
      if (written.full) await this.medium.makeEmptyFiles();
      await saveResume(this.#shared.files, path, {
        layout: this.medium.placement.kind,
        pieceLengthBytes: this.layout.pieceLengthBytes,
        pieceCount: this.layout.pieceCount,
        totalBytes: this.layout.totalBytes,
        ...(this.layout.shortPieces === undefined ? {} : { shortPieces: this.layout.shortPieces }),
        have: written,
        order: this.evictable ? this.#shared.lru.unitsOf(this) : [],
        usedMs: this.#shared.clock.now(),
      });
    } catch (error) {
      this.#shared.log.log("warn", "the resume file could not be saved", {
        infohash: this.layout.infohashHex,
        error,
      });
    }
  }
}
