/**
 * The only place where anything is decompressed. Not by `DecompressionStream`: on Node and Deno that refuses gzip of several
 * members, which `cat a.gz b.gz` and programs that compress in parallel make, and nothing shows where a member ended.
 */
import {
  Z_BUF_ERROR,
  Z_NO_FLUSH,
  Z_OK,
  Z_STREAM_END,
  zlibInflate,
  zlibInflateInit2,
  zlibInflateReset,
  ZStream,
} from "pako";
import { concatBytes } from "./hex.ts";
import { isTurnDue, nextTurn } from "./turn.ts";

/** Largest chunk of a result. With deflate's window of 32 KiB it is all that is held. */
const CHUNK_BYTES = 64 * 1024;

/** The largest window, 2^15 bytes; 16 more stands for gzip, whose checksums and lengths are compared. */
const GZIP_WINDOW_BITS = 15 + 16;

/** True when `bytes` begin as gzip does (RFC 1952, section 2.3.1). */
export function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b;
}

/**
 * `packed` with one layer of gzip removed, read only as fast as the result is read. All its members are read (RFC 1952, section
 * 2.2); zeros after one are padding. Chunks have at most 64 KiB, and other tasks get turns however large the result; the reader
 * must limit its size. Errors of `packed` are passed on; damaged or truncated data causes the error that `damaged` makes of the cause.
 * With `isLent` each chunk holds until the next one is read: all of them are one buffer.
 */
export function gunzipped(
  packed: ReadableStream<Uint8Array>,
  damaged: (cause: unknown) => Error,
  { isLent = false } = {},
): ReadableStream<Uint8Array> {
  const source = packed.getReader();
  const members = new Members(isLent);
  /** The next bytes of the result; null at its end. */
  const next = async () => {
    while (true) {
      if (isTurnDue()) await nextTurn();
      let plain: Uint8Array | null;
      try {
        plain = members.read();
      } catch (cause) {
        source.cancel(cause).catch(() => {});
        throw damaged(cause);
      }
      if (plain === null) {
        const { done, value } = await source.read();
        if (!done) members.feed(value);
        else if (members.isOver) return null;
        else throw damaged(new Error("unexpected end of the data"));
      } else if (plain.length > 0) {
        return plain;
      }
    }
  };
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const plain = await next();
      if (plain === null) controller.close();
      else controller.enqueue(plain);
    },
    cancel: (reason) => source.cancel(reason),
  }, { highWaterMark: 0 });
}

/** The largest window, with the header and checksum of zlib. */
const ZLIB_WINDOW_BITS = 15;

/** `packed` (RFC 1950) decompressed; null if it is damaged or cut short, or has more than `maxBytes`. */
export function inflated(packed: Uint8Array, maxBytes: number): Uint8Array | null {
  const zlib = new ZStream();
  zlibInflateInit2(zlib, ZLIB_WINDOW_BITS);
  zlib.input = packed;
  zlib.next_in = 0;
  zlib.avail_in = packed.length;
  const parts: Uint8Array[] = [];
  for (let bytes = 0; bytes <= maxBytes;) {
    const part = new Uint8Array(Math.min(CHUNK_BYTES, maxBytes + 1 - bytes));
    zlib.output = part;
    zlib.next_out = 0;
    zlib.avail_out = part.length;
    const status = zlibInflate(zlib, Z_NO_FLUSH);
    bytes += zlib.next_out;
    parts.push(part.subarray(0, zlib.next_out));
    if (status === Z_STREAM_END) return bytes > maxBytes ? null : concatBytes(parts);
    if (status !== Z_OK || (zlib.avail_in === 0 && zlib.avail_out > 0)) return null;
  }
  return null;
}

/** Decompresses members of gzip, one after the other. */
class Members {
  readonly #zlib = new ZStream();
  /** What `read` returned is used no more when it is called again. */
  readonly #isLent: boolean;
  #isOver = false;

  constructor(isLent: boolean) {
    this.#isLent = isLent;
    zlibInflateInit2(this.#zlib, GZIP_WINDOW_BITS);
  }

  /** Whether the compressed bytes so far end with a whole member, or with zeros after one. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Gives the next compressed bytes, which must not change until `read` returns null. Call it after `read` returned null. */
  feed(packed: Uint8Array): void {
    this.#zlib.input = packed;
    this.#zlib.next_in = 0;
    this.#zlib.avail_in = packed.length;
  }

  /**
   * The next decompressed bytes, for the caller to keep unless they are lent, none at the end of a member; null when all compressed bytes are used up.
   * Throws for damaged data.
   */
  read(): Uint8Array | null {
    const zlib = this.#zlib;
    if (this.#isOver && !this.#hasNext()) return null;
    if (zlib.avail_out === 0) {
      const isFirst = zlib.output?.length !== CHUNK_BYTES;
      if (isFirst || !this.#isLent) zlib.output = new Uint8Array(CHUNK_BYTES);
      zlib.next_out = 0;
      zlib.avail_out = CHUNK_BYTES;
    }
    const from = zlib.next_out;
    const status = zlibInflate(zlib, Z_NO_FLUSH);
    if (status === Z_STREAM_END) this.#isOver = true;
    // `Z_BUF_ERROR`: it waits for more.
    else if (status !== Z_OK && status !== Z_BUF_ERROR) throw new Error(zlib.msg || `zlib's status ${status}`);
    return zlib.next_out === from && zlib.avail_in === 0 ? null : zlib.output.subarray(from, zlib.next_out);
  }

  /** Goes to the next member, after the zeros between them; false where the compressed bytes end before it. */
  #hasNext(): boolean {
    const zlib = this.#zlib;
    while (zlib.avail_in > 0 && zlib.input[zlib.next_in] === 0) {
      zlib.next_in++;
      zlib.avail_in--;
    }
    if (zlib.avail_in === 0) return false;
    zlibInflateReset(zlib);
    this.#isOver = false;
    return true;
  }
}
