/** A bounded number of open files. */
import { hasCode } from "../errors.ts";
import type { FileHandle, FilePort } from "../ports.ts";

/** Files open at once by default: descriptors are scarce (macOS allows 256), opening costs some 20 µs. */
const DEFAULT_MAX_OPEN = 64;

interface Entry {
  readonly handle: Promise<FileHandle>;
  readonly mode: "read" | "write";
  users: number;
  /** No longer in the cache: close it when its last user is done. */
  dropped: boolean;
}

/** Keeps files open between uses and closes the least recently used; a file in use is never closed. */
export class HandleCache {
  readonly #files: FilePort;
  readonly #maxOpen: number;
  /** Least recently used first. */
  readonly #entries = new Map<string, Entry>();
  readonly #closing = new Set<Promise<void>>();

  constructor(files: FilePort, maxOpen: number = DEFAULT_MAX_OPEN) {
    this.#files = files;
    this.#maxOpen = maxOpen;
  }

  /** Files that are open or being opened. */
  get size(): number {
    return this.#entries.size;
  }

  /** Runs `work` with the file open. A file open for writing also serves readers. */
  async use<T>(path: string, mode: "read" | "write", work: (handle: FileHandle) => Promise<T>): Promise<T> {
    let entry = this.#entries.get(path);
    if (entry !== undefined && mode === "write" && entry.mode === "read") {
      void this.forget(path);
      entry = undefined;
    }
    if (entry === undefined) {
      entry = { handle: this.#open(path, mode), mode, users: 0, dropped: false };
    } else {
      this.#entries.delete(path);
    }
    this.#entries.set(path, entry);
    entry.users++;
    this.#closeSurplus();
    try {
      return await work(await entry.handle);
    } catch (error) {
      // After a failure the file is opened again next time: it may have been replaced.
      if (this.#entries.get(path) === entry) this.#entries.delete(path);
      entry.dropped = true;
      throw error;
    } finally {
      entry.users--;
      if (entry.dropped && entry.users === 0) this.#close(entry);
    }
  }

  /** Closes the file once nobody is using it; the next use opens it again. */
  forget(path: string): void {
    const entry = this.#entries.get(path);
    if (entry === undefined) return;
    this.#entries.delete(path);
    entry.dropped = true;
    if (entry.users === 0) this.#close(entry);
  }

  /** Resolves when all forgotten files are closed. */
  async settled(): Promise<void> {
    while (this.#closing.size > 0) await Promise.all(this.#closing);
  }

  async #open(path: string, mode: "read" | "write"): Promise<FileHandle> {
    try {
      return await this.#files.open(path, mode);
    } catch (error) {
      if (mode === "read" || !hasCode(error, "not_found")) throw error;
      await this.#files.makeDirectory(path.slice(0, path.lastIndexOf("/")));
      return await this.#files.open(path, mode);
    }
  }

  #closeSurplus(): void {
    for (const [path, entry] of this.#entries) {
      if (this.#entries.size <= this.#maxOpen) break;
      if (entry.users === 0) this.forget(path);
    }
  }

  #close(entry: Entry): void {
    // If a file can't be closed, that is the system's problem: its writes have already been reported.
    const done: Promise<void> = entry.handle.then((handle) => handle.close()).catch(() => {})
      .finally(() => this.#closing.delete(done));
    this.#closing.add(done);
  }
}
