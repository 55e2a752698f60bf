/** Pieces in memory only. */
import { Bitfield } from "../bytes/bitfield.ts";
import { pieceBytes } from "../bytes/piece-shape.ts";
import { type Allocate, copyOf } from "../bytes/source.ts";
import { MillraceError } from "../errors.ts";
import type { Clock } from "../ports.ts";
import { BufferPool } from "./buffer-pool.ts";
import { CacheWishes } from "./cache-wishes.ts";
import type { PieceCache, PieceStore, StoredTorrent, TorrentLayout } from "./piece-store.ts";
import { UnitLru, type UnitOwner } from "./unit-lru.ts";

/** Options of `createRamCache`. */
export interface RamCacheOptions {
  /** Bytes for all torrents; 0 = no limit. */
  readonly limitBytes: number;
  readonly clock: Clock;
}

/**
 * A cache that lasts as long as the process. With a limit, a closed torrent's pieces stay until their space
 * is needed; without one they are freed when it is closed, unless it is kept, because nothing else would ever free them.
 */
export function createRamCache(options: RamCacheOptions): PieceCache {
  const buffers = new BufferPool();
  const lru = new UnitLru(options.limitBytes, () => options.clock.monotonic(), () => {});
  const wishes = new CacheWishes(lru, null);
  const stores = new Map<string, RamStore>();
  let closed = false;
  return {
    buffers,
    get limitBytes() {
      return lru.limitBytes;
    },
    setLimit: (limitBytes) => wishes.setLimit(limitBytes),
    async keep(infohashHex: string, isKept: boolean): Promise<void> {
      const store = stores.get(infohashHex);
      if (store === undefined || lru.bytesOfAll(store) === 0) {
        throw new MillraceError("not_found", "nothing of this torrent is cached");
      }
      await (isKept ? wishes.keep(infohashHex, store.layout.totalBytes) : wishes.letGo(infohashHex));
      lru.keep(store, isKept);
      if (store.closed) await store.close();
    },
    torrents() {
      const found = [...stores].map(([infohashHex, store]): StoredTorrent => {
        const { totalBytes } = store.layout;
        const usedBytes = lru.bytesOfAll(store);
        return { infohashHex, usedBytes, totalBytes, isOpen: !store.closed, isKept: lru.isKept(store) };
      });
      return found.reverse().filter(({ usedBytes }) => usedBytes > 0);
    },
    get usedBytes() {
      return lru.usedBytes;
    },
    // deno-lint-ignore require-await
    async open(layout: TorrentLayout): Promise<PieceStore> {
      if (closed) throw new MillraceError("closed", "the cache is closed");
      const known = stores.get(layout.infohashHex);
      if (known !== undefined && !known.closed) {
        throw new MillraceError("conflict", "this torrent's pieces are already open");
      }
      if (known?.fits(layout)) return known.reopen();
      known?.clear();
      if (known !== undefined) lru.drop(known);
      const store = new RamStore(layout, lru, buffers);
      lru.keep(store, wishes.isKept(layout.infohashHex));
      stores.set(layout.infohashHex, store);
      return store;
    },
    async remove(infohashHex: string): Promise<void> {
      const store = stores.get(infohashHex);
      if (store === undefined) return;
      if (!store.closed) throw new MillraceError("conflict", "this torrent's pieces are in use");
      store.clear();
      lru.drop(store);
      stores.delete(infohashHex);
      await wishes.letGo(infohashHex);
    },
    // deno-lint-ignore require-await
    async close(): Promise<void> {
      closed = true;
      for (const store of stores.values()) store.clear();
      stores.clear();
    },
  };
}

/** One torrent's pieces; a piece is a unit of the LRU. */
class RamStore implements PieceStore, UnitOwner {
  readonly have: Bitfield;
  readonly evictable = true;
  readonly pendingBytes = 0;
  closed = false;
  protect: (piece: number) => boolean = () => false;
  onLost: (piece: number, reason: "evicted" | "deleted" | "io") => void = () => {};
  readonly layout: TorrentLayout;
  readonly #lru: UnitLru;
  readonly #buffers: BufferPool;
  readonly #pieces = new Map<number, Uint8Array>();

  constructor(layout: TorrentLayout, lru: UnitLru, buffers: BufferPool) {
    this.layout = layout;
    this.#lru = lru;
    this.#buffers = buffers;
    this.have = new Bitfield(layout.pieceCount);
  }

  put(piece: number, data: Uint8Array): Promise<void> {
    const refuse = (code: "closed" | "invalid_argument" | "disk_full", message: string) => {
      this.#buffers.release(data);
      return Promise.reject(new MillraceError(code, message));
    };
    if (this.closed) return refuse("closed", "the store is closed");
    if (!(piece >= 0 && piece < this.layout.pieceCount) || data.length !== pieceBytes(this.layout, piece)) {
      return refuse("invalid_argument", `piece ${piece} of ${data.length} bytes does not fit the torrent`);
    }
    if (this.have.has(piece)) {
      this.#buffers.release(data);
      return Promise.resolve();
    }
    if (!this.#lru.makeRoom(data.length)) {
      return refuse("disk_full", "readers need everything that the cache limit allows: raise the limit");
    }
    this.#pieces.set(piece, data);
    this.have.set(piece);
    this.#lru.change(this, piece, data.length);
    return Promise.resolve();
  }

  read(piece: number, offset: number, length: number, allocate?: Allocate): Promise<Uint8Array> {
    const data = this.#pieces.get(piece);
    if (this.closed) return Promise.reject(new MillraceError("closed", "the store is closed"));
    if (data === undefined) return Promise.reject(new MillraceError("not_found", `piece ${piece} is not stored`));
    const bytes = this.peek(piece, offset, length, allocate);
    if (bytes !== null) return Promise.resolve(bytes);
    return Promise.reject(new MillraceError("invalid_argument", `range ${offset}+${length} is outside piece ${piece}`));
  }

  peek(piece: number, offset: number, length: number, allocate?: Allocate): Uint8Array | null {
    const data = this.#pieces.get(piece);
    if (data === undefined || this.closed || offset < 0 || length < 0 || offset + length > data.length) return null;
    this.#lru.touch(this, piece);
    return copyOf(data, offset, length, allocate);
  }

  mayEvict(piece: number): boolean {
    return this.closed || !this.protect(piece);
  }

  evict(piece: number): Promise<void> {
    const data = this.#pieces.get(piece);
    if (data !== undefined) {
      this.#pieces.delete(piece);
      this.have.set(piece, false);
      this.#lru.change(this, piece, -data.length);
      this.#buffers.release(data);
      if (!this.closed) this.onLost(piece, "evicted");
    }
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.closed = true;
    this.protect = () => false;
    this.onLost = () => {};
    if (this.#lru.limitBytes === 0 && !this.#lru.isKept(this)) this.clear();
    return Promise.resolve();
  }

  fits(layout: TorrentLayout): boolean {
    return layout.pieceLengthBytes === this.layout.pieceLengthBytes && layout.totalBytes === this.layout.totalBytes;
  }

  reopen(): RamStore {
    this.closed = false;
    return this;
  }

  /** Forgets everything. */
  clear(): void {
    this.closed = true;
    for (const piece of [...this.#pieces.keys()]) void this.evict(piece);
  }
}
