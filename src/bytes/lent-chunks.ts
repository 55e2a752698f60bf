/** Bodies whose reader may return their chunks. */

/** Takes chunks back. `ChunkBuffers` implements it. */
export interface Lender {
  /** The caller promises that nobody reads `chunk` afterwards. */
  release(chunk: Uint8Array): void;
}

/**
 * Frees chunks at once. The collector does not count this memory and so runs too late: tens of megabytes of a large
 * body would wait for it. For bodies whose chunks each own their memory.
 */
export const FREED: Lender = {
  release(chunk) {
    const memory = chunk.buffer;
    // A part of something larger may belong to others. A freed buffer has no bytes; Node 20 cannot free any.
    if (!(memory instanceof ArrayBuffer) || chunk.length === 0 || chunk.length < memory.byteLength) return;
    memory.transfer?.(0);
  },
};

const lenders = new WeakMap<ReadableStream<Uint8Array>, Lender>();

/**
 * Lets the reader of `body` itself release its chunks to `lender`. A stream has one reader at a time; tees and wrappers
 * are other streams, for which nothing is lent.
 */
export function lendChunks(body: ReadableStream<Uint8Array>, lender: Lender): void {
  lenders.set(body, lender);
}

/** The lender to which the reader of `body` releases a chunk once the system has taken it; null when there is none. */
export function lenderOf(body: ReadableStream<Uint8Array>): Lender | null {
  return lenders.get(body) ?? null;
}
