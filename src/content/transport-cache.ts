/**
 * Transport files the engine has seen, kept in the state directory so that an infohash or a content id starts at once
 * the next time. `<directory>/<infohash>.torrent`, and `<directory>/<content id>.id` holding an infohash; so does
 * `<directory>/<second infohash>.id` of a torrent of both versions.
 */
import { hasCode, MillraceError } from "../errors.ts";
import type { FilePort, Logger } from "../ports.ts";
import { contentId } from "../metainfo/content-id.ts";
import { secondName } from "../metainfo/hash-trees.ts";
import { MAX_TRANSPORT_FILE_BYTES } from "../metainfo/limits.ts";
import { type AnyMetainfo, encodeAnyMetainfo, fromPublic, parseAnyTransportFile } from "../metainfo/live.ts";
import type { Metainfo } from "../metainfo/types.ts";

/** Limits of a cache; the oldest files go first. */
export interface CacheBounds {
  readonly maxFiles: number;
  /** On disk. */
  readonly maxBytes: number;
  readonly maxMemoryBytes: number;
}

/** A transport file has some 20–200 KB, but anybody may name one of 16 MiB. */
const TRANSPORT_BOUNDS: CacheBounds = {
  maxFiles: 2000,
  maxBytes: 512 * 1024 * 1024,
  maxMemoryBytes: 64 * 1024 * 1024,
};

/**
 * Transport files kept decoded, bytes on disk: dozens of usual ones. One of 95,000 files takes a second to decode and
 * some ten times its size of memory.
 */
const MAX_READ_BYTES = 8 * 1024 * 1024;

/** How files of one kind are read and written. */
export interface TransportCodec<T> {
  /** Throws `bad_transport_file`. */
  parse(bytes: Uint8Array): Promise<T>;
  encode(file: T): Uint8Array;
}

/** Torrents and broadcasts. */
const METAINFO: TransportCodec<AnyMetainfo> = { parse: parseAnyTransportFile, encode: encodeAnyMetainfo };
const METAINFO_FROM_PUBLIC: TransportCodec<AnyMetainfo> = {
  parse: async (bytes) => fromPublic(await parseAnyTransportFile(bytes)),
  encode: encodeAnyMetainfo,
};

/** The common part of all transport files. */
export type Identified =
  & Pick<AnyMetainfo, "infohash" | "infohashHex" | "name" | "trackers">
  & Pick<Metainfo, "infohashV2" | "shortPieces">;

/** Remembers transport files by infohash and by content id. */
export interface TransportCache<T = AnyMetainfo> {
  /** The transport file of an infohash (40 hex), the second one of a hybrid included; null when it was never seen. */
  byInfohash(infohashHex: string): Promise<T | null>;
  /** The transport file of a content id (40 hex), null when it was never seen. */
  byContentId(contentIdHex: string): Promise<T | null>;
  /**
   * Keeps a transport file; never rejects (a full disk costs only speed). Returns its content id. The first of an infohash
   * stays, unless it has no trackers and a later one does: what peers send has none.
   */
  keep(metainfo: T): Promise<string>;
  /** Resolves when nothing is being written any more; later files are not kept. */
  close(): Promise<void>;
}

/**
 * A cache in `directory`; with null it remembers for this run only. Files that are `isFromPublic` lie in a sibling of it:
 * they come back with that mark, unless the user has given the same file.
 */
export function createTransportCache(files: FilePort, directory: string | null, log: Logger): TransportCache {
  const own = createCache(files, directory, log, METAINFO, TRANSPORT_BOUNDS);
  const publicDirectory = directory === null ? null : `${directory}-from-public`;
  const ofPublic = createCache(files, publicDirectory, log, METAINFO_FROM_PUBLIC, TRANSPORT_BOUNDS);
  const byContentId = async (id: string) => await own.byContentId(id) ?? await ofPublic.byContentId(id);
  const bySecondName = async (infohash: string) => {
    const file = await byContentId(infohash);
    return file !== null && secondName(file) === infohash ? file : null;
  };
  return {
    byInfohash: async (infohash) =>
      await own.byInfohash(infohash) ?? await ofPublic.byInfohash(infohash) ?? await bySecondName(infohash),
    byContentId,
    keep: (metainfo) => (metainfo.isFromPublic === true ? ofPublic : own).keep(metainfo),
    close: async () => void await Promise.all([own.close(), ofPublic.close()]),
  };
}

/** As `createTransportCache`, for files of any kind. */
export function createCache<T extends Identified>(
  files: FilePort,
  directory: string | null,
  log: Logger,
  codec: TransportCodec<T>,
  bounds: CacheBounds,
): TransportCache<T> {
  return directory === null
    ? new MemoryCache<T>(codec, bounds)
    : new DiskCache<T>(files, directory, log, codec, bounds);
}

/** Whether `file` names trackers, of which `known`, kept of the same infohash, has none. */
function saysMore(file: Identified, known: Identified | null): boolean {
  return file.trackers.length > 0 && known !== null && known.trackers.length === 0;
}

class MemoryCache<T extends Identified> implements TransportCache<T> {
  readonly #codec: TransportCodec<T>;
  readonly #byInfohash = new Map<string, { readonly metainfo: T; readonly bytes: number }>();
  readonly #infohashOf = new Map<string, string>();
  readonly #bounds: CacheBounds;
  #bytes = 0;

  constructor(codec: TransportCodec<T>, bounds: CacheBounds) {
    this.#codec = codec;
    this.#bounds = bounds;
  }

  byInfohash(infohashHex: string): Promise<T | null> {
    return Promise.resolve(this.#byInfohash.get(infohashHex)?.metainfo ?? null);
  }

  byContentId(contentIdHex: string): Promise<T | null> {
    return this.byInfohash(this.#infohashOf.get(contentIdHex) ?? "");
  }

  async keep(metainfo: T): Promise<string> {
    const id = await contentId(metainfo);
    const { maxFiles, maxMemoryBytes } = this.#bounds;
    for (const name of [id, secondName(metainfo) ?? id]) this.#infohashOf.set(name, metainfo.infohashHex);
    while (this.#infohashOf.size > 2 * maxFiles) this.#infohashOf.delete(this.#infohashOf.keys().next().value!);
    const known = this.#byInfohash.get(metainfo.infohashHex);
    if (known !== undefined && !saysMore(metainfo, known.metainfo)) return id;
    this.#bytes -= known?.bytes ?? 0;
    const bytes = this.#codec.encode(metainfo).length;
    this.#byInfohash.set(metainfo.infohashHex, { metainfo, bytes });
    this.#bytes += bytes;
    for (const [oldest, kept] of this.#byInfohash) {
      if (this.#byInfohash.size <= maxFiles && this.#bytes <= maxMemoryBytes) break;
      this.#byInfohash.delete(oldest);
      this.#bytes -= kept.bytes;
    }
    return id;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

class DiskCache<T extends Identified> implements TransportCache<T> {
  readonly #files: FilePort;
  readonly #directory: string;
  readonly #log: Logger;
  readonly #codec: TransportCodec<T>;
  readonly #bounds: CacheBounds;
  /** Files that are being read (`bytes` 0) or were read last: several calls about one torrent come together. */
  readonly #read = new Map<string, { readonly file: Promise<T | null>; bytes: number }>();
  #readBytes = 0;
  /** Most bytes and files in the directory; null until it was read. */
  #kept: { readonly files: number; readonly bytes: number } | null = null;
  /** Files that are being written. */
  readonly #keeping = new Set<Promise<void>>();
  #closed = false;

  constructor(files: FilePort, directory: string, log: Logger, codec: TransportCodec<T>, bounds: CacheBounds) {
    this.#files = files;
    this.#directory = directory;
    this.#log = log;
    this.#codec = codec;
    this.#bounds = bounds;
  }

  byInfohash(infohashHex: string): Promise<T | null> {
    const known = this.#read.get(infohashHex);
    if (known !== undefined) {
      // The one used last is forgotten last.
      this.#read.delete(infohashHex);
      this.#read.set(infohashHex, known);
      return known.file;
    }
    const reading = { file: this.#readFile(infohashHex), bytes: 0 };
    this.#read.set(infohashHex, reading);
    return reading.file;
  }

  async #readFile(infohashHex: string): Promise<T | null> {
    try {
      const bytes = await this.#files.readFile(`${this.#directory}/${infohashHex}.torrent`, {
        maxBytes: MAX_TRANSPORT_FILE_BYTES,
      });
      const metainfo = await this.#codec.parse(bytes);
      if (metainfo.infohashHex === infohashHex) {
        this.#remember(infohashHex, bytes.length);
        return metainfo;
      }
    } catch (error) {
      if (!hasCode(error, "not_found")) {
        this.#log.log("warn", "a kept transport file is unreadable", { infohash: infohashHex });
      }
    }
    this.#read.delete(infohashHex);
    return null;
  }

  /** Counts a file that was read, and forgets those used longest ago above the limit. */
  #remember(infohashHex: string, bytes: number): void {
    const reading = this.#read.get(infohashHex);
    if (reading === undefined) return;
    reading.bytes = bytes;
    this.#readBytes += bytes;
    for (const [oldest, file] of this.#read) {
      if (this.#readBytes <= MAX_READ_BYTES || this.#read.size === 1) break;
      if (file.bytes === 0) continue;
      this.#read.delete(oldest);
      this.#readBytes -= file.bytes;
    }
  }

  #forget(infohashHex: string): void {
    this.#readBytes -= this.#read.get(infohashHex)?.bytes ?? 0;
    this.#read.delete(infohashHex);
  }

  async byContentId(contentIdHex: string): Promise<T | null> {
    try {
      const bytes = await this.#files.readFile(`${this.#directory}/${contentIdHex}.id`, { maxBytes: 64 });
      const infohash = new TextDecoder().decode(bytes).trim();
      return /^[0-9a-f]{40}$/.test(infohash) ? await this.byInfohash(infohash) : null;
    } catch {
      return null;
    }
  }

  async keep(metainfo: T): Promise<string> {
    const id = await contentId(metainfo);
    if (this.#closed) return id;
    const keeping = this.#write(metainfo, id);
    this.#keeping.add(keeping);
    await keeping;
    this.#keeping.delete(keeping);
    return id;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#keeping);
  }

  async #write(metainfo: T, id: string): Promise<void> {
    const path = `${this.#directory}/${metainfo.infohashHex}.torrent`;
    // One infohash has several content ids when it comes with other trackers.
    const idPaths = [id, secondName(metainfo) ?? id].map((name) => `${this.#directory}/${name}.id`);
    try {
      const [hasFile, hasId] = await Promise.all([this.#exists(path), this.#exists(idPaths[0]!)]);
      const isReplaced = hasFile && metainfo.trackers.length > 0 &&
        saysMore(metainfo, await this.byInfohash(metainfo.infohashHex));
      if (hasFile && hasId && !isReplaced) return;
      await this.#files.makeDirectory(this.#directory);
      const bytes = this.#codec.encode(metainfo);
      if (!hasFile || isReplaced) await this.#files.writeFile(path, bytes);
      if (isReplaced) this.#forget(metainfo.infohashHex);
      const text = new TextEncoder().encode(metainfo.infohashHex);
      for (const idPath of hasId ? [] : new Set(idPaths)) await this.#files.writeFile(idPath, text);
      await this.#trim(hasFile ? 0 : bytes.length);
    } catch (error) {
      const code = error instanceof MillraceError ? error.code : "io";
      this.#log.log("warn", "a transport file could not be kept", { infohash: metainfo.infohashHex, code });
    }
  }

  async #exists(path: string): Promise<boolean> {
    try {
      await this.#files.info(path);
      return true;
    } catch {
      return false;
    }
  }

  /** Reads the whole directory only when the files written since then may be too many or too large. */
  async #trim(writtenBytes: number): Promise<void> {
    const { maxFiles, maxBytes } = this.#bounds;
    this.#kept ??= await this.#sizes();
    this.#kept = { files: this.#kept.files + 2, bytes: this.#kept.bytes + writtenBytes };
    if (this.#kept.files <= 2 * maxFiles && this.#kept.bytes <= maxBytes) return;
    const aged: { path: string; modifiedMs: number; sizeBytes: number }[] = [];
    for (const name of await this.#files.list(this.#directory)) {
      const path = `${this.#directory}/${name}`;
      const info = await this.#files.info(path).catch(() => null);
      if (info !== null) aged.push({ path, modifiedMs: info.modifiedMs, sizeBytes: info.sizeBytes });
    }
    aged.sort((a, b) => a.modifiedMs - b.modifiedMs);
    let files = aged.length;
    let bytes = aged.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    for (const { path, sizeBytes } of aged) {
      if (files <= 2 * maxFiles && bytes <= maxBytes) break;
      await this.#files.remove(path);
      files--;
      bytes -= sizeBytes;
    }
    this.#kept = { files, bytes };
  }

  async #sizes(): Promise<{ files: number; bytes: number }> {
    const names = await this.#files.list(this.#directory);
    let bytes = 0;
    for (const name of names) {
      bytes += (await this.#files.info(`${this.#directory}/${name}`).catch(() => null))?.sizeBytes ?? 0;
    }
    return { files: names.length, bytes };
  }
}
