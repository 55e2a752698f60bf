/** A piece cache in memory whose medium a test can break. */
import { Bitfield } from "../../../src/bytes/bitfield.ts";
import { MillraceError } from "../../../src/errors.ts";
import type { PieceCache, PieceStore, TorrentLayout } from "../../../src/storage/piece-store.ts";

/** One torrent's pieces. */
export class MemoryStore implements PieceStore {
  readonly have: Bitfield;
  protect: (piece: number) => boolean = () => false;
  onLost: (piece: number, reason: "evicted" | "deleted" | "io") => void = () => {};
  readonly pendingBytes = 0;
  closed = false;
  /** When set, `put` rejects with it. */
  broken: MillraceError | null = null;
  /** Makes `peek` return null, as a disk would. */
  slow = false;
  readonly pieces = new Map<number, Uint8Array>();

  constructor(layout: TorrentLayout) {
    this.have = new Bitfield(layout.pieceCount);
  }

  put(piece: number, data: Uint8Array): Promise<void> {
    if (this.broken !== null) return Promise.reject(this.broken);
    this.pieces.set(piece, data);
    this.have.set(piece);
    return Promise.resolve();
  }

  read(piece: number, offset: number, length: number): Promise<Uint8Array> {
    const bytes = this.pieces.get(piece);
    if (bytes === undefined) return Promise.reject(new MillraceError("not_found", "no such piece"));
    return Promise.resolve(bytes.slice(offset, offset + length));
  }

  peek(piece: number, offset: number, length: number): Uint8Array | null {
    return this.slow ? null : this.pieces.get(piece)?.slice(offset, offset + length) ?? null;
  }

  /** Drops a piece as an eviction would. */
  evict(piece: number): void {
    this.pieces.delete(piece);
    if (this.have.set(piece, false)) this.onLost(piece, "evicted");
  }

  close(): Promise<void> {
    this.closed = true;
    return Promise.resolve();
  }
}

/** Stores by infohash; reopening a closed one finds its pieces again. */
export class MemoryCache implements PieceCache {
  readonly stores = new Map<string, MemoryStore>();
  readonly limitBytes = 0;

  get usedBytes(): number {
    return 0;
  }

  open(layout: TorrentLayout): Promise<PieceStore> {
    const known = this.stores.get(layout.infohashHex);
    if (known !== undefined && !known.closed) return Promise.reject(new MillraceError("conflict", "open already"));
    const store = known ?? new MemoryStore(layout);
    store.closed = false;
    this.stores.set(layout.infohashHex, store);
    return Promise.resolve(store);
  }

  torrents(): [] {
    return [];
  }

  keep(): Promise<void> {
    return Promise.resolve();
  }

  setLimit(): Promise<void> {
    return Promise.resolve();
  }

  remove(infohashHex: string): Promise<void> {
    this.stores.delete(infohashHex);
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
