/** What one user read of a source, so that all of it can be given back at once. */
import type { ByteSource, ReadOptions } from "../../bytes/source.ts";

/** A source through which the reads of one run go. */
export class CountedReads implements ByteSource {
  readonly sizeBytes: number;
  readonly #source: ByteSource;
  #answers: Uint8Array[] = [];

  constructor(source: ByteSource) {
    this.#source = source;
    this.sizeBytes = source.sizeBytes;
  }

  async read(offset: number, length: number, options: ReadOptions): Promise<Uint8Array> {
    const bytes = await this.#source.read(offset, length, options);
    this.#answers.push(bytes);
    return bytes;
  }

  /** Nobody looks at anything read so far any more. */
  releaseAll(): void {
    for (const bytes of this.#answers) this.#source.release?.(bytes);
    this.#answers = [];
  }
}
