/** Pieces kept in memory: those on their way to disk, and the newest of those already there. */
import type { BufferPool } from "./buffer-pool.ts";

/**
 * Default memory for readable pieces, bytes, over all torrents. A reader that keeps up with a download finds its pieces here;
 * older ones are read from the system's cache. With 16 MiB a download took 10 MB more at its peak and was no faster.
 */
export const DEFAULT_WINDOW_BYTES = 8 * 1024 * 1024;

/** A piece in memory. */
export interface WindowEntry {
  readonly piece: number;
  readonly data: Uint8Array;
  /** Removes it from its torrent's map when the window drops it. */
  readonly drop: () => void;
  /** Not yet on disk, or being written: it can't be dropped. */
  dirty: boolean;
  /** No longer in the window; its buffer is returned when the writer is done. */
  dropped: boolean;
}

/** Shared by all torrents of a cache. Reads copy, so a buffer that left the window has no readers. */
export class NewestPieces {
  readonly #limitBytes: number;
  readonly #buffers: BufferPool;
  /** Clean entries, least recently used first. */
  readonly #clean = new Set<WindowEntry>();
  #bytes = 0;

  constructor(buffers: BufferPool, limitBytes: number = DEFAULT_WINDOW_BYTES) {
    this.#buffers = buffers;
    this.#limitBytes = limitBytes;
  }

  /** Bytes of all entries. */
  get sizeBytes(): number {
    return this.#bytes;
  }

  /** Adds an entry. */
  add(entry: WindowEntry): void {
    this.#bytes += entry.data.length;
    if (!entry.dirty) this.#clean.add(entry);
    this.#trim();
  }

  /** The entry is on disk now. */
  written(entry: WindowEntry): void {
    if (!entry.dirty) return;
    entry.dirty = false;
    if (entry.dropped) this.#buffers.release(entry.data);
    else {
      this.#clean.add(entry);
      this.#trim();
    }
  }

  /** The entry was read. */
  touch(entry: WindowEntry): void {
    if (this.#clean.delete(entry)) this.#clean.add(entry);
  }

  /** Removes the entry. The buffer of a dirty one is kept until `written`. */
  remove(entry: WindowEntry): void {
    if (entry.dropped) return;
    entry.dropped = true;
    this.#bytes -= entry.data.length;
    this.#clean.delete(entry);
    entry.drop();
    if (!entry.dirty) this.#buffers.release(entry.data);
  }

  #trim(): void {
    for (const oldest of this.#clean) {
      if (this.#bytes <= this.#limitBytes) break;
      this.remove(oldest);
    }
  }
}
