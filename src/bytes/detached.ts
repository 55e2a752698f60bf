/** Bytes that are kept for a while, out of a large read that should not be. */

/** A part of at least 1 / this of its memory keeps it: copying would cost more than the rest takes. */
const LARGE_PART = 2;

/** `bytes`, or a copy of them where they are a small part of the memory that they lie in. */
export function detached(bytes: Uint8Array): Uint8Array {
  return bytes.length * LARGE_PART < bytes.buffer.byteLength ? bytes.slice() : bytes;
}
