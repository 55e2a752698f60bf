/** A growing window on a source from a position on: the parser works on the bytes that have arrived and asks for more. */
import type { ByteSource } from "../../bytes/source.ts";

/** A remainder up to this part (1/n) of the next read is small. */
const SMALL_REST = 4;

/** Bytes of a source from a moving position on, read in chunks. One user at a time. */
export class ByteWindow {
  /** Bytes present; valid from `at` to its end. */
  bytes: Uint8Array = new Uint8Array(0);
  /** Index in `bytes` of the next byte to parse. */
  at = 0;
  readonly #source: ByteSource;
  readonly #signal: AbortSignal;
  readonly #chunkBytes: number;
  /** Source position of `bytes[0]`. */
  #origin: number;

  /** Starts at `position` of `source`; reads `chunkBytes` at a time. */
  constructor(source: ByteSource, position: number, chunkBytes: number, signal: AbortSignal) {
    this.#source = source;
    this.#signal = signal;
    this.#chunkBytes = chunkBytes;
    this.#origin = position;
  }

  /** Source position of the next byte to parse. */
  get position(): number {
    return this.#origin + this.at;
  }

  /** How many bytes are there to parse now. */
  get available(): number {
    return Math.max(0, this.bytes.length - this.at);
  }

  /** True when the source has no bytes after those present. */
  get atEnd(): boolean {
    return this.#origin + Math.max(this.at, this.bytes.length) >= this.#source.sizeBytes;
  }

  /** Goes to a source position; present bytes that are still ahead are kept. */
  seek(position: number): void {
    const index = position - this.#origin;
    if (index >= 0 && index <= this.bytes.length) {
      this.at = index;
      return;
    }
    this.#origin = position;
    this.bytes = new Uint8Array(0);
    this.at = 0;
  }

  /** Reads until `count` bytes are there or the source ends; returns whether they are. */
  async need(count: number): Promise<boolean> {
    const present = this.available;
    if (present >= count) return true;
    // A small remainder is read again: that costs less than joining it with the following bytes.
    const kept = present * SMALL_REST <= Math.max(count, this.#chunkBytes) ? 0 : present;
    const from = this.position + kept;
    const length = Math.min(Math.max(count, present + this.#chunkBytes) - kept, this.#source.sizeBytes - from);
    if (length <= present - kept) return false;
    const chunk = await this.#source.read(from, length, { signal: this.#signal });
    if (kept === 0) {
      this.#origin = from;
      this.bytes = chunk;
    } else {
      const joined = new Uint8Array(kept + length);
      joined.set(this.bytes.subarray(this.at));
      joined.set(chunk, kept);
      this.#origin = from - kept;
      this.bytes = joined;
    }
    this.at = 0;
    return kept + length >= count;
  }
}
