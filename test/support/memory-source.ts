/** A file that is there already. */
import type { ByteSource, ReadOptions } from "../../src/bytes/source.ts";
import { abortError, MillraceError } from "../../src/errors.ts";

/** A `ByteSource` over bytes in memory. */
export class MemorySource implements ByteSource {
  readonly sizeBytes: number;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.sizeBytes = bytes.length;
  }

  read(offset: number, length: number, options: ReadOptions): Promise<Uint8Array> {
    if (options.signal.aborted) return Promise.reject(abortError(options.signal));
    if (offset < 0 || length < 0 || offset + length > this.sizeBytes) {
      return Promise.reject(new MillraceError("invalid_argument", `range ${offset}+${length} is outside the file`));
    }
    return Promise.resolve(this.#bytes.slice(offset, offset + length));
  }
}
