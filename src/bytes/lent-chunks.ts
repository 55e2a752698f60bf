/** Bodies whose reader may give their chunks back. */
import type { ChunkBuffers } from "./chunk-buffers.ts";

const lenders = new WeakMap<ReadableStream<Uint8Array>, ChunkBuffers>();

/**
 * Lets whoever reads `body` itself release its chunks to `buffers`. A stream has one reader at a time: who tees or wraps it
 * has another stream in hand, which nobody lends.
 */
export function lendChunks(body: ReadableStream<Uint8Array>, buffers: ChunkBuffers): void {
  lenders.set(body, buffers);
}

/** Where a chunk of `body` goes when the system has taken it; null: it is its reader's to keep. */
export function lenderOf(body: ReadableStream<Uint8Array>): ChunkBuffers | null {
  return lenders.get(body) ?? null;
}
