/** The sizes in which packets are collected and handed out. */

/** Chunks handed out are no larger (see `TsLayout.read`). */
export const MAX_CHUNK_BYTES = 64 * 1024;
/**
 * Packets are collected in a buffer of this size and handed out as views of it. It stays in a processor's cache between
 * being written and being sent, and the allocator serves it from memory that it has: larger ones are mapped anew each time.
 */
export const BUFFER_BYTES = 64 * 1024;

/** Splits `bytes` into chunks that the contract allows. */
export function* chunksOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += MAX_CHUNK_BYTES) yield bytes.subarray(at, at + MAX_CHUNK_BYTES);
}
