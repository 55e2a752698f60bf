/**
 * Reused memory for chunks. A writer to a file or a pipe knows when the system has taken a chunk, and returns it.
 * Without reuse, every byte written would be one that the allocator has to clear and the collector has to find.
 */

/** Idle bytes kept by default: a few reads and the bytes that a pipe has under way. */
const DEFAULT_MAX_IDLE_BYTES = 4 * 1024 * 1024;
/** Sizes are rounded up to multiples of this, so that a buffer serves requests of about its size … */
const STEP_BYTES = 64 * 1024;
/** … and large ones to multiples of this fraction (1/n) of the next lower power of two: parts of a film vary in size. */
const STEP_SHARE = 4;
/**
 * A request may get an idle buffer that is up to this many times too large. Reads of a film end where its runs end, so they have
 * many sizes. With a buffer for each size, the pool dropped buffers that were needed next: a gigabyte of Matroska allocated 250
 * MB, and the collector ran 20 times.
 */
const LARGER = 2;

function rounded(sizeBytes: number): number {
  const step = Math.max(STEP_BYTES, 2 ** Math.floor(Math.log2(Math.max(1, sizeBytes))) / STEP_SHARE);
  return Math.ceil(sizeBytes / step) * step;
}

/**
 * Hands out memory and counts the holders of its views. A holder that never releases costs only a buffer that is not
 * reused. Passing memory on promises that the last user of every chunk releases it and does not read it afterwards.
 */
export class ChunkBuffers {
  readonly #maxIdleBytes: number;
  /** Idle buffers by size, bytes. */
  readonly #idle = new Map<number, ArrayBuffer[]>();
  /** Number of holders of the memory in use. */
  readonly #holders = new WeakMap<ArrayBufferLike, number>();
  #idleBytes = 0;

  /** Keeps at most `maxIdleBytes` unused (default 4 MiB). */
  constructor(maxIdleBytes: number = DEFAULT_MAX_IDLE_BYTES) {
    this.#maxIdleBytes = maxIdleBytes;
  }

  /** Bytes of idle buffers. */
  get idleBytes(): number {
    return this.#idleBytes;
  }

  /** `sizeBytes` of memory with any content and one holder. */
  acquire(sizeBytes: number): Uint8Array<ArrayBuffer> {
    const size = rounded(sizeBytes);
    const memory = this.#takeIdle(size) ?? new ArrayBuffer(size);
    this.#holders.set(memory, 1);
    return new Uint8Array(memory, 0, sizeBytes);
  }

  /** Adds a holder of `view`'s memory. Memory from elsewhere is ignored. */
  hold(view: Uint8Array): void {
    const holders = this.#holders.get(view.buffer);
    if (holders !== undefined) this.#holders.set(view.buffer, holders + 1);
  }

  /** Removes a holder; the last one returns the memory of `view`. Memory from elsewhere is ignored. */
  release(view: Uint8Array): void {
    const memory = view.buffer;
    const holders = this.#holders.get(memory);
    if (holders === undefined) return;
    if (holders > 1) return void this.#holders.set(memory, holders - 1);
    this.#holders.delete(memory);
    if (!(memory instanceof ArrayBuffer) || memory.byteLength > this.#maxIdleBytes) return;
    this.#makeRoom(memory.byteLength);
    if (this.#idleBytes + memory.byteLength > this.#maxIdleBytes) return;
    this.#idleBytes += memory.byteLength;
    const idle = this.#idle.get(memory.byteLength);
    if (idle === undefined) this.#idle.set(memory.byteLength, [memory]);
    else idle.push(memory);
  }

  /** An idle buffer of `size`, else the smallest that is at most twice as large; null when there is none. */
  #takeIdle(size: number): ArrayBuffer | null {
    let best = this.#isIdle(size) ? size : Infinity;
    if (best !== size) {
      for (const other of this.#idle.keys()) {
        if (other > size && other <= LARGER * size && other < best && this.#isIdle(other)) best = other;
      }
    }
    const memory = this.#idle.get(best)?.pop();
    if (memory === undefined) return null;
    this.#idleBytes -= memory.byteLength;
    return memory;
  }

  #isIdle(size: number): boolean {
    return (this.#idle.get(size)?.length ?? 0) > 0;
  }

  /** Frees idle memory of other sizes for a buffer of `size`: the size used now will be needed next. */
  #makeRoom(size: number): void {
    for (const [other, idle] of this.#idle) {
      while (other !== size && idle.length > 0 && this.#idleBytes + size > this.#maxIdleBytes) {
        idle.pop();
        this.#idleBytes -= other;
      }
    }
  }
}
