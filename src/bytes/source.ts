/** Random access to a file of known size whose bytes may have to be fetched first. */

/** How a read should be treated by whoever provides the bytes. */
export interface ReadOptions {
  /** Ends the wait; the read then rejects with the signal's reason as `aborted` or `timeout`. */
  readonly signal: AbortSignal;
  /** The caller will not change the bytes, so that others may be given the same ones. Default false. */
  readonly shared?: boolean;
  /** Gives memory for the answer, with anything in it; the source may take it from elsewhere all the same. */
  readonly allocate?: Allocate;
}

/** Gives `sizeBytes` of memory with anything in it. */
export type Allocate = (sizeBytes: number) => Uint8Array;

/** A copy of `bytes[offset, offset + length)`, in memory from `allocate` if there is one. */
export function copyOf(bytes: Uint8Array, offset: number, length: number, allocate?: Allocate): Uint8Array {
  if (allocate === undefined) return bytes.slice(offset, offset + length);
  const copy = allocate(length);
  copy.set(bytes.subarray(offset, offset + length));
  return copy;
}

/**
 * The only thing `src/media` knows about where bytes come from. A swarm reader, an HTTP file and a test fixture all
 * implement it. The bytes answered are verified, never changed afterwards by the source, and
 * belong to the caller unless it said `shared`.
 */
export interface ByteSource {
  /** Size of the whole, bytes. */
  readonly sizeBytes: number;
  /**
   * Exactly `[offset, offset + length)`, waiting for it if need be. Rejects with `invalid_argument` outside the file.
   * Consecutive reads tell the source where the reader stands: it fetches ahead of the last one.
   */
  read(offset: number, length: number, options: ReadOptions): Promise<Uint8Array>;
  /**
   * Told of bytes that belonged to the caller when it has no use for them any more: the source may answer later reads in the
   * same memory. Not every caller tells, and most sources have no use for it.
   */
  release?(bytes: Uint8Array): void;
}
