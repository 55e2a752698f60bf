/** Random access to a file of known size whose bytes may have to be fetched first. */

import type { ShareHolder } from "./shares.ts";

/** Options of a read. */
export interface ReadOptions {
  /** Ends the wait; the read then rejects with the signal's reason, as `aborted` or `timeout`. */
  readonly signal: AbortSignal;
  /** The caller will not change the bytes, so that others may receive the same ones. Default false. */
  readonly shared?: boolean;
  /** Provides memory for the bytes, with any content; the source may still use other memory. */
  readonly allocate?: Allocate;
}

/** Returns `sizeBytes` of memory with any content. */
export type Allocate = (sizeBytes: number) => Uint8Array;

/** A copy of `bytes[offset, offset + length)`, in memory from `allocate` if given. */
export function copyOf(bytes: Uint8Array, offset: number, length: number, allocate?: Allocate): Uint8Array {
  if (allocate === undefined) return bytes.slice(offset, offset + length);
  const copy = allocate(length);
  copy.set(bytes.subarray(offset, offset + length));
  return copy;
}

/**
 * The only thing `src/media` knows about where bytes come from. A swarm reader, an HTTP file and a test fixture all
 * implement it. The returned bytes are verified, never changed by the source afterwards, and
 * belong to the caller unless it said `shared`.
 */
export interface ByteSource {
  /** Size of the whole, bytes. */
  readonly sizeBytes: number;
  /** For whom it is read: programs that read it take their places from this share. Default: this machine's own. */
  holder?: ShareHolder | undefined;
  /**
   * Exactly `[offset, offset + length)`, waiting for it if necessary. Rejects with `invalid_argument` outside the file.
   * Consecutive reads show the source the reader's position: it fetches ahead of the last one.
   */
  read(offset: number, length: number, options: ReadOptions): Promise<Uint8Array>;
  /**
   * Number of bytes from `offset` on that a read would return without waiting, at most `maxBytes`. A source without this
   * method has all its bytes.
   */
  availableFrom?(offset: number, maxBytes: number): number;
  /**
   * Gives back bytes that belong to the caller and that it no longer needs: the source may use their memory for later
   * reads. Not every caller does this, and most sources make no use of it.
   */
  release?(bytes: Uint8Array): void;
  /**
   * Adds a holder of the caller's own bytes, or of a part of them. Each holder calls `release`, and only the last call
   * has an effect. Without this method, bytes that others still use must not be released.
   */
  hold?(bytes: Uint8Array): void;
}

/** Counts the holders of what was read. */
export interface ByteLender {
  /** Adds a holder of `bytes`. */
  hold(bytes: Uint8Array): void;
  /** Removes a holder of `bytes`, which no longer reads them. */
  release(bytes: Uint8Array): void;
}

/** The lender of what is read from `source`; null when it takes nothing back. */
export function lenderFor(source: ByteSource): ByteLender | null {
  if (source.hold === undefined || source.release === undefined) return null;
  return { hold: (bytes) => source.hold!(bytes), release: (bytes) => source.release!(bytes) };
}
