/** Keeps small parts of a large read without keeping the whole read in memory. */

/** A part of at least 1/n of its memory keeps that memory: copying would cost more than the rest takes. */
const LARGE_PART = 2;

/** `bytes`, or a copy of them if they are a small part of their memory. */
export function detached(bytes: Uint8Array): Uint8Array {
  return bytes.length * LARGE_PART < bytes.buffer.byteLength ? bytes.slice() : bytes;
}
