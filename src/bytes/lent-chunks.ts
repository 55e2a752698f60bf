/** Bodies whose reader may give their chunks back. */

/** Takes chunks back. `ChunkBuffers` is one. */
export interface Lender {
  /** The caller promises that nobody reads `chunk` afterwards. */
  release(chunk: Uint8Array): void;
}

/**
 * Frees chunks at once. Their memory is not the collector's, which therefore sees no hurry: of a large body tens of
 * megabytes would wait for it. For bodies whose every chunk has memory of its own.
 */
export const FREED: Lender = {
  release(chunk) {
    const memory = chunk.buffer;
    // A part of something larger may be somebody else's. What is freed already has no bytes; Node 20 cannot free any.
    if (!(memory instanceof ArrayBuffer) || chunk.length === 0 || chunk.length < memory.byteLength) return;
    memory.transfer?.(0);
  },
};

const lenders = new WeakMap<ReadableStream<Uint8Array>, Lender>();

/**
 * Lets whoever reads `body` itself release its chunks to `lender`. A stream has one reader at a time: who tees or wraps it
 * has another stream in hand, which nobody lends.
 */
export function lendChunks(body: ReadableStream<Uint8Array>, lender: Lender): void {
  lenders.set(body, lender);
}

/** Where a chunk of `body` goes when the system has taken it; null: it is its reader's to keep. */
export function lenderOf(body: ReadableStream<Uint8Array>): Lender | null {
  return lenders.get(body) ?? null;
}
