/**
 * Reads a source ahead of a user that goes through it once, in chunks at multiples of their size. The user's reads are views
 * of these chunks. Without it, one client of a cached Matroska film waited for the disk half of the time: a read takes
 * 0.2 to 1 ms, as much as the packets of half a megabyte, and at each run nothing was under way.
 */
import { type ByteLender, type ByteSource, lenderFor, type ReadOptions } from "../../bytes/source.ts";

/** Size of a chunk, bytes: that of the user's reads. */
const CHUNK_BYTES = 512 * 1024;

/** For one user that reads forward. Bytes that are not here yet are read as without it. */
export class ReadAhead implements ByteSource {
  readonly sizeBytes: number;
  readonly holder: ByteSource["holder"];
  readonly availableFrom?: (offset: number, maxBytes: number) => number;
  readonly release: (bytes: Uint8Array) => void;
  readonly hold: (bytes: Uint8Array) => void;
  readonly #source: ByteSource;
  readonly #signal: AbortSignal;
  /** By index: the chunk of the newest read and the one after it, each held once. */
  readonly #chunks = new Map<number, Promise<Uint8Array>>();
  /** Index of the newest chunk that was used. */
  #newest = -1;

  /** null if `source` takes no bytes back, since several reads share a chunk. `signal` ends reads ahead. */
  static of(source: ByteSource, signal: AbortSignal): ReadAhead | null {
    const lender = lenderFor(source);
    return lender === null ? null : new ReadAhead(source, lender, signal);
  }

  private constructor(source: ByteSource, lender: ByteLender, signal: AbortSignal) {
    this.#source = source;
    this.#signal = signal;
    this.sizeBytes = source.sizeBytes;
    this.holder = source.holder;
    this.hold = (bytes) => lender.hold(bytes);
    this.release = (bytes) => lender.release(bytes);
    if (source.availableFrom) this.availableFrom = (offset, maxBytes) => source.availableFrom!(offset, maxBytes);
  }

  /** As `ByteSource.read`. */
  async read(offset: number, length: number, options: ReadOptions): Promise<Uint8Array> {
    const index = Math.floor(offset / CHUNK_BYTES);
    const isWithin = offset >= 0 && length > 0 &&
      offset + length <= Math.min(this.sizeBytes, (index + 1) * CHUNK_BYTES);
    // The first read may be all that is wanted, and chunks that were left are not read again for a few bytes.
    const isGoingOn = this.#newest >= 0 && index >= this.#newest;
    if (!isWithin || (!isGoingOn && !this.#chunks.has(index))) {
      this.#newest = Math.max(this.#newest, index);
      return await this.#source.read(offset, length, options);
    }
    const chunk = this.#begin(index);
    if (chunk === null) return await this.#source.read(offset, length, options);
    const view = chunk.then((bytes) => {
      this.hold(bytes);
      return bytes.subarray(offset - index * CHUNK_BYTES, offset + length - index * CHUNK_BYTES);
    });
    this.#newest = index;
    this.#begin(index + 1);
    for (const other of this.#chunks.keys()) if (other < index) this.#drop(other);
    return await view;
  }

  /** Ends reading ahead; chunks return to the source once the user has released its views of them. */
  close(): void {
    for (const index of this.#chunks.keys()) this.#drop(index);
  }

  /** The chunk; null if it is not here, or after the end. */
  #begin(index: number): Promise<Uint8Array> | null {
    const running = this.#chunks.get(index);
    if (running !== undefined) return running;
    const start = index * CHUNK_BYTES;
    const length = Math.min(CHUNK_BYTES, this.sizeBytes - start);
    if (length <= 0 || (this.availableFrom?.(start, length) ?? length) < length) return null;
    const chunk = this.#source.read(start, length, { signal: this.#signal });
    this.#chunks.set(index, chunk);
    // A read that waits for it gets the error; the next one tries again.
    chunk.catch(() => {
      if (this.#chunks.get(index) === chunk) this.#chunks.delete(index);
    });
    return chunk;
  }

  #drop(index: number): void {
    this.#chunks.get(index)?.then((bytes) => this.release(bytes), () => {});
    this.#chunks.delete(index);
  }
}
