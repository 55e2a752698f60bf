/** Reused piece buffers. */
import type { PieceBuffers } from "./piece-store.ts";

/** Idle bytes kept by default: enough for a fast peer's blocks under way. With 4 or 8 MiB neither Node nor Bun peaked lower. */
const DEFAULT_MAX_IDLE_BYTES = 16 * 1024 * 1024;

/**
 * Hands out buffers of exact sizes and takes them back. A pooled buffer is recognised by its memory, so a buffer
 * returned twice, or one from elsewhere, can never be handed to two owners.
 */
export class BufferPool implements PieceBuffers {
  readonly #maxIdleBytes: number;
  readonly #own = new WeakSet<ArrayBufferLike>();
  readonly #idle = new Set<ArrayBuffer>();
  #idleSum = 0;

  /** Keeps at most `maxIdleBytes` of unused buffers (default 16 MiB). */
  constructor(maxIdleBytes: number = DEFAULT_MAX_IDLE_BYTES) {
    this.#maxIdleBytes = maxIdleBytes;
  }

  /** Bytes of unused buffers. */
  get idleBytes(): number {
    return this.#idleSum;
  }

  acquire(sizeBytes: number): Uint8Array<ArrayBuffer> {
    for (const buffer of this.#idle) {
      if (buffer.byteLength !== sizeBytes) continue;
      this.#idle.delete(buffer);
      this.#idleSum -= sizeBytes;
      return new Uint8Array(buffer);
    }
    const fresh = new Uint8Array(sizeBytes);
    this.#own.add(fresh.buffer);
    return fresh;
  }

  release(buffer: Uint8Array): void {
    const memory = buffer.buffer;
    if (!(memory instanceof ArrayBuffer) || !this.#own.has(memory) || this.#idle.has(memory)) return;
    this.#idle.add(memory);
    this.#idleSum += memory.byteLength;
    for (const oldest of this.#idle) {
      if (this.#idleSum <= this.#maxIdleBytes) break;
      this.#idle.delete(oldest);
      this.#idleSum -= oldest.byteLength;
    }
  }
}
