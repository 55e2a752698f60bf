/**
 * Pieces on disk: `<directory>/<infohash>/…` holds a torrent, `<directory>/<infohash>.resume` says which pieces are
 * good. A torrent keeps the layout it was begun with: its own files without a limit, extents with one.
 */
import { Bitfield } from "../bytes/bitfield.ts";
import { forEachLimited } from "../bytes/limited.ts";
import { pieceBytes } from "../bytes/piece-shape.ts";
import { MillraceError } from "../errors.ts";
import type { Clock, Digest, FilePort, Logger } from "../ports.ts";
import { BufferPool } from "./buffer-pool.ts";
import { type DiskShared, DiskStore } from "./disk-store.ts";
import { HandleCache } from "./handle-cache.ts";
import { Medium } from "./medium.ts";
import { PieceHasher } from "./piece-hasher.ts";
import { CacheWishes } from "./cache-wishes.ts";
import { DEFAULT_WINDOW_BYTES, NewestPieces } from "./piece-window.ts";
import { extentPlacement, filePlacement, piecesPerExtent } from "./placement.ts";
import { restore } from "./restore.ts";
import { loadResume, type ResumeClaims } from "./resume.ts";
import type { PieceCache, PieceStore, StoredTorrent, TorrentLayout } from "./piece-store.ts";
import { UnitLru, type UnitOwner } from "./unit-lru.ts";

/** Options of `createDiskCache` and `createSeedCache`. */
export interface DiskCacheOptions {
  readonly files: FilePort;
  /** Absolute; created if missing. */
  readonly directory: string;
  /** Bytes for all torrents; 0 (default) = no limit. */
  readonly limitBytes?: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** SHA-256 of blocks of 16 KiB. Default: that of Web Crypto, which is slow for so small ones. */
  readonly sha256?: Digest;
  /** Memory for recent pieces, all torrents. Default 8 MiB. */
  readonly windowBytes?: number;
}

const INFOHASH = /^[0-9a-f]{40}$/;
const EXTENT = /^(\d{1,9})\.extent$/;

/** Directories read at once when the cache is opened. */
const SCAN_CONCURRENCY = 8;

/** Makes the parts that the stores of a cache share. */
export function diskShared(options: DiskCacheOptions, limitBytes: number): DiskShared {
  const buffers = new BufferPool();
  return {
    files: options.files,
    clock: options.clock,
    log: options.log,
    buffers,
    window: new NewestPieces(buffers, options.windowBytes ?? DEFAULT_WINDOW_BYTES),
    hasher: new PieceHasher(undefined, options.sha256),
    lru: new UnitLru(limitBytes, () => options.clock.monotonic(), () => {
      options.log.log("warn", "the cache limit is too small for what is being read", { limitBytes });
    }),
  };
}

/** Opens the cache, and evicts if the limit is lower than before. Rejects with `io` when the directory can't be created. */
export async function createDiskCache(options: DiskCacheOptions): Promise<PieceCache> {
  await options.files.makeDirectory(options.directory);
  const cache = new DiskCache(options);
  await cache.scan();
  return cache;
}

/** A torrent that isn't open. */
interface Dormant {
  readonly owner: UnitOwner;
  readonly totalBytes: number;
}

class DiskCache implements PieceCache {
  readonly #directory: string;
  readonly #shared: DiskShared;
  readonly #handles: HandleCache;
  readonly #wishes: CacheWishes;
  readonly #stores = new Map<string, Promise<DiskStore>>();
  /** Those of them that have opened. */
  readonly #opened = new Map<string, DiskStore>();
  /**
   * Space used by torrents that aren't open. Never a closed store, which has its swarm, the hashes of all pieces and buffers for
   * writing: over 2 MB for each torrent that was played since the start.
   */
  readonly #dormant = new Map<string, Dormant>();
  /** Removals under way: a torrent that is opened again must not lose what it writes meanwhile. */
  readonly #removing = new Map<string, Promise<void>>();
  #closed = false;

  constructor(options: DiskCacheOptions) {
    this.#directory = options.directory;
    this.#shared = diskShared(options, options.limitBytes ?? 0);
    this.#handles = new HandleCache(options.files);
    const { files, log } = options;
    this.#wishes = new CacheWishes(this.#shared.lru, { files, log, path: `${options.directory}/wishes.json` });
  }

  get buffers(): BufferPool {
    return this.#shared.buffers;
  }

  get usedBytes(): number {
    return this.#shared.lru.usedBytes;
  }

  get limitBytes(): number {
    return this.#shared.lru.limitBytes;
  }

  setLimit(limitBytes: number): Promise<void> {
    return this.#wishes.setLimit(limitBytes);
  }

  async keep(infohashHex: string, isKept: boolean): Promise<void> {
    const { lru } = this.#shared;
    const store = this.#opened.get(infohashHex);
    const dormant = this.#dormant.get(infohashHex);
    const owner = store ?? dormant?.owner;
    const totalBytes = store?.layout.totalBytes ?? dormant?.totalBytes;
    if (owner === undefined || totalBytes === undefined || lru.bytesOfAll(owner) === 0) {
      throw new MillraceError("not_found", "nothing of this torrent is cached");
    }
    const saved = isKept ? this.#wishes.keep(infohashHex, totalBytes) : this.#wishes.letGo(infohashHex);
    lru.keep(owner, this.#wishes.isKept(infohashHex));
    await saved;
  }

  torrents(): StoredTorrent[] {
    const { lru } = this.#shared;
    const open = [...this.#opened].map(([infohashHex, store]): StoredTorrent => {
      const { totalBytes } = store.layout;
      return { infohashHex, usedBytes: lru.bytesOfAll(store), totalBytes, isOpen: true, isKept: lru.isKept(store) };
    });
    // Those that were closed last, or used last before the start, stand last.
    const others = [...this.#dormant].reverse().map(([infohashHex, { owner, totalBytes }]): StoredTorrent => {
      return { infohashHex, usedBytes: lru.bytesOfAll(owner), totalBytes, isOpen: false, isKept: lru.isKept(owner) };
    });
    return [...open.reverse(), ...others].filter(({ usedBytes }) => usedBytes > 0);
  }

  async open(layout: TorrentLayout): Promise<PieceStore> {
    const id = layout.infohashHex;
    if (this.#closed) throw new MillraceError("closed", "the cache is closed");
    if (!INFOHASH.test(id)) {
      throw new MillraceError("invalid_argument", "an infohash in lower-case hexadecimal is expected");
    }
    if (this.#stores.has(id)) throw new MillraceError("conflict", "this torrent's pieces are already open");
    const opening = this.#openNow(layout);
    this.#stores.set(id, opening);
    try {
      return await opening;
    } catch (error) {
      this.#stores.delete(id);
      throw error;
    }
  }

  async remove(infohashHex: string): Promise<void> {
    if (this.#stores.has(infohashHex)) throw new MillraceError("conflict", "this torrent's pieces are in use");
    if (!INFOHASH.test(infohashHex)) return;
    this.#forgetDormant(infohashHex);
    const removing = this.#removeFiles(infohashHex).finally(() => {
      if (this.#removing.get(infohashHex) === removing) this.#removing.delete(infohashHex);
    });
    this.#removing.set(infohashHex, removing);
    await removing;
  }

  async #removeFiles(infohashHex: string): Promise<void> {
    await this.#removing.get(infohashHex)?.catch(() => {});
    await this.#shared.files.remove(`${this.#directory}/${infohashHex}.resume`);
    await this.#shared.files.remove(`${this.#directory}/${infohashHex}`);
    await this.#wishes.letGo(infohashHex);
  }

  async close(): Promise<void> {
    this.#closed = true;
    const opened = await Promise.allSettled(this.#stores.values());
    await Promise.all(opened.map((result) => (result.status === "fulfilled" ? result.value.close() : undefined)));
    await this.#handles.settled();
  }

  /** Counts what earlier runs left, removes what no resume file claims, and makes room. */
  async scan(): Promise<void> {
    const { files, lru } = this.#shared;
    await this.#wishes.load();
    const names = await files.list(this.#directory);
    for (const name of names) {
      if (/^[0-9a-f]{40}\.resume\..+\.tmp$/.test(name)) await files.remove(`${this.#directory}/${name}`);
    }
    const found: { readonly id: string; readonly resume: ResumeClaims }[] = [];
    await forEachLimited(names.filter((name) => INFOHASH.test(name)), SCAN_CONCURRENCY, async (id) => {
      const loaded = await loadResume(files, `${this.#directory}/${id}.resume`);
      if (loaded?.resume.layout !== "files") await this.#sweepExtents(id, loaded?.resume ?? null);
      if (loaded !== null) found.push({ id, resume: loaded.resume });
    });
    found.sort((a, b) => a.resume.usedMs - b.resume.usedMs);
    for (const { id, resume } of found) this.#addDormant(id, resume);
    await this.#wishes.retain((id) => this.#dormant.has(id));
    await lru.evict(this.limitBytes === 0 ? 0 : lru.evictableBytes - this.limitBytes);
  }

  async #openNow(layout: TorrentLayout): Promise<DiskStore> {
    const id = layout.infohashHex;
    await this.#removing.get(id)?.catch(() => {});
    const resumePath = `${this.#directory}/${id}.resume`;
    const loaded = await loadResume(this.#shared.files, resumePath);
    const fits = loaded !== null && loaded.resume.pieceCount === layout.pieceCount &&
      loaded.resume.pieceLengthBytes === layout.pieceLengthBytes && loaded.resume.totalBytes === layout.totalBytes;
    const kind = fits ? loaded.resume.layout : this.limitBytes > 0 ? "extents" : "files";
    const place = kind === "files" ? filePlacement : extentPlacement;
    const placement = place(layout, `${this.#directory}/${id}`);
    const medium = new Medium(this.#shared.files, this.#handles, this.#shared.clock, placement);
    const store: DiskStore = new DiskStore(this.#shared, layout, medium, {
      resumePath,
      readOnly: false,
      onClosed: () => {
        this.#stores.delete(id);
        this.#opened.delete(id);
        const owner = this.#dormantOwner(id, store.evictable);
        this.#shared.lru.handOver(store, owner);
        this.#dormant.set(id, { owner, totalBytes: layout.totalBytes });
      },
    });
    this.#forgetDormant(id);
    this.#shared.lru.keep(store, this.#wishes.isKept(id));
    await restore(
      store,
      fits ? loaded.resume.have : new Bitfield(layout.pieceCount),
      loaded?.savedMs ?? 0,
      this.#shared.clock,
    );
    for (const unit of fits ? loaded.resume.order : []) this.#shared.lru.touch(store, unit);
    if (!store.closed) this.#opened.set(id, store);
    return store;
  }

  #addDormant(id: string, resume: ResumeClaims): void {
    const { lru } = this.#shared;
    const owner = this.#dormantOwner(id, resume.layout === "extents");
    const bytes = unitBytes(resume);
    if (!owner.evictable) lru.change(owner, 0, [...bytes.values()].reduce((sum, n) => sum + n, 0));
    else for (const [unit, n] of bytes) lru.change(owner, unit, n);
    for (const unit of resume.order) lru.touch(owner, unit);
    lru.keep(owner, this.#wishes.isKept(id));
    this.#dormant.set(id, { owner, totalBytes: resume.totalBytes });
  }

  /** Stands for a torrent that isn't open. */
  #dormantOwner(id: string, evictable: boolean): UnitOwner {
    const { files, lru } = this.#shared;
    const owner: UnitOwner = {
      evictable,
      mayEvict: () => true,
      evict: (unit) => {
        lru.change(owner, unit, -lru.bytesOf(owner, unit));
        return files.remove(`${this.#directory}/${id}/${unit}.extent`).catch(() => {});
      },
    };
    return owner;
  }

  #forgetDormant(id: string): void {
    const dormant = this.#dormant.get(id);
    if (dormant === undefined) return;
    this.#shared.lru.drop(dormant.owner);
    this.#dormant.delete(id);
  }

  /** Removes extents that the resume file doesn't claim: a crash left them, and they would never be counted. */
  async #sweepExtents(id: string, resume: ResumeClaims | null): Promise<void> {
    const claimed = resume === null ? new Map<number, number>() : unitBytes(resume);
    for (const name of await this.#shared.files.list(`${this.#directory}/${id}`).catch(() => [])) {
      const match = EXTENT.exec(name);
      if (match === null || claimed.has(Number(match[1]))) continue;
      await this.#shared.files.remove(`${this.#directory}/${id}/${name}`).catch(() => {});
    }
  }
}

/** Bytes claimed per extent. */
function unitBytes(resume: ResumeClaims): Map<number, number> {
  const layout = { ...resume, infohashHex: "", name: "", pieceHashes: new Uint8Array(), files: [] };
  const perExtent = piecesPerExtent(layout);
  const bytes = new Map<number, number>();
  for (let piece = 0; piece < resume.pieceCount; piece++) {
    if (!resume.have.has(piece)) continue;
    const unit = Math.floor(piece / perExtent);
    bytes.set(unit, (bytes.get(unit) ?? 0) + pieceBytes(layout, piece));
  }
  return bytes;
}
