/**
 * Transport files the engine has seen, kept in the state directory so that an infohash or a content id starts at once
 * the next time. `<directory>/<infohash>.torrent`, and `<directory>/<content id>.id` holding an infohash.
 */
import { hasCode, MillraceError } from "../errors.ts";
import type { FilePort, Logger } from "../ports.ts";
import { contentId } from "../transport/content-id.ts";
import { MAX_TRANSPORT_FILE_BYTES } from "../transport/limits.ts";
import { encodeMetainfo, parseTransportFile } from "../transport/transport-file.ts";
import type { Metainfo } from "../transport/types.ts";

/** Files kept; the oldest go first. A transport file is some 20–200 KB, so this is at most a few hundred megabytes. */
const MAX_FILES = 2000;

/** Remembers transport files by infohash and by content id. */
export interface TransportCache {
  /** The transport file of an infohash (40 hex), null when it was never seen. */
  byInfohash(infohashHex: string): Promise<Metainfo | null>;
  /** The transport file of a content id (40 hex), null when it was never seen. */
  byContentId(contentIdHex: string): Promise<Metainfo | null>;
  /** Keeps a transport file; never rejects (a full disk costs only speed). Answers its content id. */
  keep(metainfo: Metainfo): Promise<string>;
}

/** A cache in `directory`; with null it remembers for this run only. */
export function createTransportCache(files: FilePort, directory: string | null, log: Logger): TransportCache {
  return directory === null ? new MemoryCache() : new DiskCache(files, directory, log);
}

class MemoryCache implements TransportCache {
  readonly #byInfohash = new Map<string, Metainfo>();
  readonly #infohashOf = new Map<string, string>();

  byInfohash(infohashHex: string): Promise<Metainfo | null> {
    return Promise.resolve(this.#byInfohash.get(infohashHex) ?? null);
  }

  byContentId(contentIdHex: string): Promise<Metainfo | null> {
    return this.byInfohash(this.#infohashOf.get(contentIdHex) ?? "");
  }

  async keep(metainfo: Metainfo): Promise<string> {
    const id = await contentId(metainfo);
    this.#byInfohash.set(metainfo.infohashHex, metainfo);
    this.#infohashOf.set(id, metainfo.infohashHex);
    if (this.#byInfohash.size > MAX_FILES) {
      const oldest = this.#byInfohash.keys().next().value;
      if (oldest !== undefined) this.#byInfohash.delete(oldest);
    }
    return id;
  }
}

class DiskCache implements TransportCache {
  readonly #files: FilePort;
  readonly #directory: string;
  readonly #log: Logger;

  constructor(files: FilePort, directory: string, log: Logger) {
    this.#files = files;
    this.#directory = directory;
    this.#log = log;
  }

  async byInfohash(infohashHex: string): Promise<Metainfo | null> {
    try {
      const bytes = await this.#files.readFile(`${this.#directory}/${infohashHex}.torrent`, {
        maxBytes: MAX_TRANSPORT_FILE_BYTES,
      });
      const metainfo = await parseTransportFile(bytes);
      return metainfo.infohashHex === infohashHex ? metainfo : null;
    } catch (error) {
      if (!hasCode(error, "not_found")) {
        this.#log.log("warn", "a kept transport file is unreadable", { infohash: infohashHex });
      }
      return null;
    }
  }

  async byContentId(contentIdHex: string): Promise<Metainfo | null> {
    try {
      const bytes = await this.#files.readFile(`${this.#directory}/${contentIdHex}.id`, { maxBytes: 64 });
      const infohash = new TextDecoder().decode(bytes).trim();
      return /^[0-9a-f]{40}$/.test(infohash) ? await this.byInfohash(infohash) : null;
    } catch {
      return null;
    }
  }

  async keep(metainfo: Metainfo): Promise<string> {
    const id = await contentId(metainfo);
    const path = `${this.#directory}/${metainfo.infohashHex}.torrent`;
    try {
      if (await this.#exists(path)) return id;
      await this.#files.makeDirectory(this.#directory);
      await this.#files.writeFile(path, encodeMetainfo(metainfo));
      await this.#files.writeFile(`${this.#directory}/${id}.id`, new TextEncoder().encode(metainfo.infohashHex));
      await this.#trim();
    } catch (error) {
      const code = error instanceof MillraceError ? error.code : "io";
      this.#log.log("warn", "a transport file could not be kept", { infohash: metainfo.infohashHex, code });
    }
    return id;
  }

  async #exists(path: string): Promise<boolean> {
    try {
      await this.#files.info(path);
      return true;
    } catch {
      return false;
    }
  }

  async #trim(): Promise<void> {
    const names = await this.#files.list(this.#directory);
    if (names.length <= 2 * MAX_FILES) return;
    const aged: { name: string; modifiedMs: number }[] = [];
    for (const name of names) {
      const info = await this.#files.info(`${this.#directory}/${name}`).catch(() => null);
      if (info !== null) aged.push({ name, modifiedMs: info.modifiedMs });
    }
    aged.sort((a, b) => a.modifiedMs - b.modifiedMs);
    for (const { name } of aged.slice(0, aged.length - 2 * MAX_FILES)) {
      await this.#files.remove(`${this.#directory}/${name}`);
    }
  }
}
