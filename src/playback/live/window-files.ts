/**
 * The older part of a broadcast's window on disk, appended to files of a few minutes. Each file is removed as a whole
 * when nothing in it is kept any more. Nothing has to outlast the engine, so nothing is flushed.
 */
import { MillraceError } from "../../errors.ts";
import type { FileHandle, FilePort, Logger } from "../../ports.ts";

/** Most bytes of a file: unneeded data holds at most this much of the disk. */
const FILE_BYTES = 32 * 1024 * 1024;

/** What it needs of the file system. */
export type WindowFilePort = Pick<FilePort, "open" | "makeDirectory" | "remove">;

/** Where some bytes are. */
export interface DiskPlace {
  readonly file: WindowFile;
  readonly position: number;
}

interface WindowFile {
  readonly path: string;
  readonly handle: FileHandle;
  sizeBytes: number;
  /** Places in it that are still needed, and reads under way. */
  wanted: number;
  closed: boolean;
}

/** Writes, reads and removes these files. One owner, one directory. */
export class WindowFiles {
  readonly #files: WindowFilePort;
  readonly #directory: string;
  readonly #log: Logger;
  readonly #fileBytes: number;
  readonly #all = new Set<WindowFile>();
  #current: WindowFile | null = null;
  readonly #reads = new Set<Promise<unknown>>();
  #count = 0;
  #hasDirectory = false;
  /** Writes and removals, one after the other. */
  #tail: Promise<unknown> = Promise.resolve();
  #broken = false;
  #closed = false;

  /** `directory` is made when it is needed and removed by `close`. `fileBytes`: see `FILE_BYTES`. */
  constructor(files: WindowFilePort, directory: string, log: Logger, fileBytes: number = FILE_BYTES) {
    this.#files = files;
    this.#directory = directory;
    this.#log = log;
    this.#fileBytes = fileBytes;
  }

  /** Stores `data`; null when the disk does not take it, which is logged once. The data then stays in memory. */
  write(data: Uint8Array): Promise<DiskPlace | null> {
    return this.#next(async () => {
      if (this.#broken || this.#closed) return null;
      try {
        const file = await this.#file();
        const position = file.sizeBytes;
        await file.handle.write(data, position);
        file.sizeBytes += data.length;
        file.wanted++;
        return { file, position };
      } catch (error) {
        this.#broken = true;
        this.#log.log("warn", "the window of a broadcast stays in memory: its disk takes no more", {
          error,
        });
        return null;
      }
    });
  }

  /** `length` bytes from `offset` of a place on. Rejects with `not_found` when it was released, or `io`. */
  async read({ file, position }: DiskPlace, offset: number, length: number): Promise<Uint8Array> {
    if (file.closed) throw new MillraceError("not_found", "this part of the broadcast is outside the window");
    const bytes = new Uint8Array(length);
    file.wanted++;
    const read = file.handle.read(bytes, position + offset);
    this.#reads.add(read);
    try {
      if (await read !== length) throw new MillraceError("io", "the window of the broadcast was cut short on disk");
      return bytes;
    } finally {
      this.#reads.delete(read);
      this.#letGo(file);
    }
  }

  /** The bytes of a place are no longer needed. */
  release({ file }: DiskPlace): void {
    this.#letGo(file);
  }

  /** Removes everything. */
  close(): Promise<void> {
    return this.#next(async () => {
      if (this.#closed) return;
      this.#closed = true;
      await Promise.allSettled(this.#reads);
      for (const file of [...this.#all]) await this.#discard(file);
      // Most windows are closed before anything in them is old.
      if (this.#hasDirectory) await this.#files.remove(this.#directory).catch(() => {});
    });
  }

  async #file(): Promise<WindowFile> {
    if (this.#current !== null && this.#current.sizeBytes < this.#fileBytes) return this.#current;
    if (!this.#hasDirectory) await this.#files.makeDirectory(this.#directory);
    this.#hasDirectory = true;
    const full = this.#current;
    const path = `${this.#directory}/${this.#count++}.ts`;
    this.#current = { path, handle: await this.#files.open(path, "write"), sizeBytes: 0, wanted: 0, closed: false };
    this.#all.add(this.#current);
    if (full?.wanted === 0) await this.#discard(full);
    return this.#current;
  }

  #letGo(file: WindowFile): void {
    if (--file.wanted === 0 && file !== this.#current) void this.#next(() => this.#discard(file));
  }

  async #discard(file: WindowFile): Promise<void> {
    // Needed again: a read began in the meantime.
    if (file.closed || (file.wanted > 0 && !this.#closed)) return;
    file.closed = true;
    this.#all.delete(file);
    await file.handle.close().catch(() => {});
    await this.#files.remove(file.path).catch(() => {});
  }

  #next<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#tail.then(work);
    this.#tail = done.catch(() => {});
    return done;
  }
}
