/** What one user read of a source, so that all of it can be given back at once. */
import type { ByteSource, ReadOptions } from "../../bytes/source.ts";

/**
 * The newest reads are counted up to this many bytes, those of 10 s of 13 Mbit/s. Older ones are left to the garbage
 * collector: what they held is used long since, but nobody says so before the run ends.
 */
const MAX_COUNTED_BYTES = 16 * 1024 * 1024;

/** A source through which the reads of one run go. */
export class CountedReads implements ByteSource {
  readonly sizeBytes: number;
  readonly #source: ByteSource;
  #answers: Uint8Array[] = [];
  #bytes = 0;

  constructor(source: ByteSource) {
    this.#source = source;
    this.sizeBytes = source.sizeBytes;
  }

  async read(offset: number, length: number, options: ReadOptions): Promise<Uint8Array> {
    const bytes = await this.#source.read(offset, length, options);
    this.#answers.push(bytes);
    this.#bytes += bytes.length;
    while (this.#bytes > MAX_COUNTED_BYTES) this.#bytes -= this.#answers.shift()!.length;
    return bytes;
  }

  /** Nobody looks at anything read so far any more. */
  releaseAll(): void {
    for (const bytes of this.#answers) this.#source.release?.(bytes);
    this.#answers = [];
    this.#bytes = 0;
  }
}
