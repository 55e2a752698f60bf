/**
 * A reused receive buffer whose size follows the traffic: idle peers cost 16 KiB, fast ones get large reads. For runtimes
 * where a pending read owns its buffer.
 */

const SMALLEST_BYTES = 16 * 1024;

/** Reads in a row that fill less than an eighth of the buffer before it shrinks. */
const SHRINK_AFTER = 64;

/** Hands out the buffer for the next read. */
export class ReceiveBuffer {
  #buffer = new Uint8Array(SMALLEST_BYTES);
  #smallReads = 0;
  readonly #largestBytes: number;

  constructor(largestBytes: number) {
    this.#largestBytes = largestBytes;
  }

  next(): Uint8Array<ArrayBuffer> {
    return this.#buffer;
  }

  /** To be called when a read brought `count` bytes; the next read may get a buffer of another size. */
  used(count: number): void {
    const size = this.#buffer.length;
    if (count === size && size < this.#largestBytes) {
      this.#buffer = new Uint8Array(Math.min(size * 4, this.#largestBytes));
      this.#smallReads = 0;
    } else if (count * 8 >= size || size === SMALLEST_BYTES) {
      this.#smallReads = 0;
    } else if (++this.#smallReads >= SHRINK_AFTER) {
      this.#buffer = new Uint8Array(Math.max(size / 4, SMALLEST_BYTES));
      this.#smallReads = 0;
    }
  }
}
