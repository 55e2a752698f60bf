/** A stretch of a source as a source of its own. */
import type { ByteSource, ReadOptions } from "../../bytes/source.ts";
import { MillraceError } from "../../errors.ts";

/** The bytes `[start, end)` of another source. */
export class PartSource implements ByteSource {
  readonly sizeBytes: number;
  readonly holder: ByteSource["holder"];
  readonly release?: (bytes: Uint8Array) => void;
  readonly #source: ByteSource;
  readonly #start: number;

  constructor(source: ByteSource, start: number, end: number) {
    this.#source = source;
    this.#start = start;
    this.sizeBytes = end - start;
    this.holder = source.holder;
    if (source.release) this.release = (bytes) => source.release!(bytes);
  }

  /** As `ByteSource.read`. */
  read(offset: number, length: number, options: ReadOptions): Promise<Uint8Array> {
    if (offset < 0 || length < 0 || offset + length > this.sizeBytes) {
      return Promise.reject(new MillraceError("invalid_argument", `range ${offset}+${length} is outside the part`));
    }
    return this.#source.read(this.#start + offset, length, options);
  }
}
