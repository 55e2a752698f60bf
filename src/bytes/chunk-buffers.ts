/**
 * Memory of chunks that is used again. Whoever writes chunks to a file or a pipe knows when the system has taken one, and
 * gives it back: else the allocator clears, and the collector finds, as many bytes as are written.
 */

/** Idle bytes kept by default: a few reads and what a pipe has under way. */
const DEFAULT_MAX_IDLE_BYTES = 4 * 1024 * 1024;
/** Sizes are rounded up to multiples of this, so that one of about a size serves for another … */
const STEP_BYTES = 64 * 1024;
/** … and large ones to multiples of this part of the power of two below: stretches of a film are never of one size. */
const STEP_SHARE = 4;

function rounded(sizeBytes: number): number {
  const step = Math.max(STEP_BYTES, 2 ** Math.floor(Math.log2(Math.max(1, sizeBytes))) / STEP_SHARE);
  return Math.ceil(sizeBytes / step) * step;
}

/**
 * Hands out memory and counts who holds views of it. One who never lets go costs nothing but a buffer that is not used
 * again. Passing it on promises that every chunk is released by its last user, and not looked at afterwards.
 */
export class ChunkBuffers {
  readonly #maxIdleBytes: number;
  /** By size, bytes. */
  readonly #idle = new Map<number, ArrayBuffer[]>();
  /** Of memory that is out: how many hold it. */
  readonly #holders = new WeakMap<ArrayBufferLike, number>();
  #idleBytes = 0;

  /** Keeps at most `maxIdleBytes` unused (default 4 MiB). */
  constructor(maxIdleBytes: number = DEFAULT_MAX_IDLE_BYTES) {
    this.#maxIdleBytes = maxIdleBytes;
  }

  /** Bytes that wait to be used again. */
  get idleBytes(): number {
    return this.#idleBytes;
  }

  /** `sizeBytes` of memory with anything in it, held once. */
  acquire(sizeBytes: number): Uint8Array<ArrayBuffer> {
    const size = rounded(sizeBytes);
    let memory = this.#idle.get(size)?.pop();
    if (memory === undefined) memory = new ArrayBuffer(size);
    else this.#idleBytes -= size;
    this.#holders.set(memory, 1);
    return new Uint8Array(memory, 0, sizeBytes);
  }

  /** One more holds the memory of `view`. Memory from elsewhere is nobody's business here. */
  hold(view: Uint8Array): void {
    const holders = this.#holders.get(view.buffer);
    if (holders !== undefined) this.#holders.set(view.buffer, holders + 1);
  }

  /** One holder less; the last one gives the memory of `view` back. Memory from elsewhere is left alone. */
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

  /** Lets memory of other sizes go for one of `size`: what is used now is used again first. */
  #makeRoom(size: number): void {
    for (const [other, idle] of this.#idle) {
      while (other !== size && idle.length > 0 && this.#idleBytes + size > this.#maxIdleBytes) {
        idle.pop();
        this.#idleBytes -= other;
      }
    }
  }
}
