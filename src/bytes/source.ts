/** Random access to a file of known size whose bytes may have to be fetched first. */

/** How a read should be treated by whoever provides the bytes. */
export interface ReadOptions {
  /** Ends the wait; the read then rejects with the signal's reason as `aborted` or `timeout`. */
  readonly signal: AbortSignal;
  /** The caller will not change the bytes, so that others may be given the same ones. Default false. */
  readonly shared?: boolean;
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
