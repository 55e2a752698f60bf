/** The readers of one torrent. */
import { MillraceError } from "../../errors.ts";
import { type ReaderHost, TorrentReader } from "./reader.ts";
import { SharedReads } from "./shared-reads.ts";
import type { Transfer } from "../data/transfer.ts";
import type { ReaderOptions } from "../types.ts";

/** Readers of one swarm at once: far more than sessions, few enough for the scheduler. */
const MAX_READERS = 1024;

/** Opens readers, and closes those that are left. */
export class Readers {
  readonly #host: Omit<ReaderHost, "transfer" | "sharedReads" | "closed">;
  readonly #open = new Set<TorrentReader>();
  readonly #sharedReads = new SharedReads();
  #nextHandle = 1;

  constructor(host: Omit<ReaderHost, "transfer" | "sharedReads" | "closed">) {
    this.#host = host;
  }

  get count(): number {
    return this.#open.size;
  }

  /** Those that fetch ahead. */
  get readingAheadCount(): number {
    return [...this.#open].filter((reader) => reader.readsAhead).length;
  }

  list(): Iterable<TorrentReader> {
    return this.#open;
  }

  /** Throws `not_found` for a file that the torrent has not, or `too_busy`. */
  open(transfer: Transfer, fileIndex: number, options: ReaderOptions): TorrentReader {
    const file = transfer.metainfo.files[fileIndex];
    if (file === undefined) throw new MillraceError("not_found", `the torrent has no file ${fileIndex}`);
    if (this.#open.size >= MAX_READERS) throw new MillraceError("too_busy", "too many readers");
    const closed = (reader: TorrentReader) => void this.#open.delete(reader);
    const reader = new TorrentReader({ ...this.#host, transfer, sharedReads: this.#sharedReads, closed }, {
      handle: this.#nextHandle++,
      fileIndex,
      fileOffset: file.offset,
      sizeBytes: file.sizeBytes,
      readAheadBytes: options.readAheadBytes ?? null,
      yieldMs: options.yieldMs ?? 0,
    });
    this.#open.add(reader);
    return reader;
  }

  close(): void {
    for (const reader of [...this.#open]) reader.close();
  }
}
