/** Parts of reads that are needed for longer than the reads themselves. */
import { detached } from "../../bytes/detached.ts";
import type { ByteLender } from "../../bytes/source.ts";

/**
 * Most memory of reads that is held for parts of them unless told otherwise, bytes: two reads of a walk over clusters. Parts of
 * further reads are copied; otherwise a stranger's file could have a whole read held for each byte.
 */
const DEFAULT_MAX_MEMORY_BYTES = 1024 * 1024;

/**
 * What one user keeps of the reads that it was lent. Holding a part costs nothing. Copying all of them would copy a
 * sixth of the film.
 */
export class HeldParts {
  readonly #lender: ByteLender | null;
  readonly #maxMemoryBytes: number;
  /** How many parts of each memory are held. */
  readonly #counts = new Map<ArrayBufferLike, number>();
  #memoryBytes = 0;

  /** `lender` null: nothing was lent; then parts are kept only so that they do not keep whole reads in memory. */
  constructor(lender: ByteLender | null, maxMemoryBytes: number = DEFAULT_MAX_MEMORY_BYTES) {
    this.#lender = lender;
    this.#maxMemoryBytes = maxMemoryBytes;
  }

  /** The same bytes as `part`, which do not change until `drop`. */
  keep(part: Uint8Array): Uint8Array {
    if (this.#lender === null) return detached(part);
    const { buffer } = part;
    const count = this.#counts.get(buffer) ?? 0;
    if (count === 0) {
      // A part that is most of its memory is held in any case: a copy would take as much again.
      const isMost = 2 * part.byteLength >= buffer.byteLength;
      if (!isMost && this.#memoryBytes + buffer.byteLength > this.#maxMemoryBytes) return part.slice();
      this.#memoryBytes += buffer.byteLength;
    }
    this.#counts.set(buffer, count + 1);
    this.#lender.hold(part);
    return part;
  }

  /** The user of `part`, which `keep` returned, no longer needs it. */
  drop(part: Uint8Array): void {
    const { buffer } = part;
    const count = this.#counts.get(buffer);
    if (count === undefined) return;
    if (count > 1) this.#counts.set(buffer, count - 1);
    else {
      this.#counts.delete(buffer);
      this.#memoryBytes -= buffer.byteLength;
    }
    this.#lender!.release(part);
  }
}
