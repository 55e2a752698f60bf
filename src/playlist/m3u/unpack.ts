/** Unpacks lists and guides that arrive packed with gzip or xz and passes others unchanged. */
import { gunzipped, isGzip } from "../../bytes/gunzip.ts";
import { concatBytes } from "../../bytes/hex.ts";
import { isXz, unxzed } from "../../bytes/unxz.ts";
import { MillraceError } from "../../errors.ts";
import type { M3uLimits } from "./m3u-entry.ts";

const MIB = 1024 * 1024;

/** The decoder does not say which. */
const UNREADABLE_XZ =
  "its xz data is damaged, or needs more than 64 MiB to unpack or a check other than CRC: pack it with xz -6, or with gzip";

/** What is unpacked, and its bounds. */
export interface UnpackLimits extends Pick<M3uLimits, "maxBytes" | "maxUnpackedBytes" | "isUnpacked"> {
  /** What the errors call it. Default `playlist`. */
  readonly what?: "playlist" | "guide";
  /** Each chunk holds until the next one is read. Default false. */
  readonly isLent?: boolean;
  /** Ends a wait for another file that is packed with xz: one is read at a time. */
  readonly signal?: AbortSignal;
}

/**
 * Yields the bytes of `stream` with one layer of gzip (RFC 1952) or xz undone, or neither when `isUnpacked`. Their first
 * bytes say how they are packed. Throws `too_large` over a limit, `invalid_argument` for packed data that is damaged, cannot be
 * read or is packed twice: with a second layer a kilobyte becomes a gigabyte. Leaving the loop cancels `stream`.
 */
export async function* unpacked(
  stream: ReadableStream<Uint8Array>,
  limits: UnpackLimits = {},
): AsyncGenerator<Uint8Array> {
  const {
    maxBytes = 64 * MIB,
    maxUnpackedBytes = 256 * MIB,
    isUnpacked = false,
    what = "playlist",
    isLent = false,
    signal,
  } = limits;
  const packedTwice = () => new MillraceError("invalid_argument", `invalid ${what}: it is packed twice`);
  const damaged = (why: string) => (cause: unknown) =>
    new MillraceError("invalid_argument", `invalid ${what}: ${why}`, { cause });
  const packed = new CountedChunks(stream, maxBytes, `the ${what} is larger than ${maxBytes} bytes`);
  try {
    const head = await packed.head();
    const hasXz = isXz(head);
    if (!hasXz && !isGzip(head)) return yield* packed.chunks();
    if (isUnpacked) throw packedTwice();
    const plain = new CountedChunks(
      hasXz
        ? unxzed(packed.stream(), damaged(UNREADABLE_XZ), signal)
        : gunzipped(packed.stream(), damaged("its gzip data is damaged"), { isLent }),
      maxUnpackedBytes,
      `the ${what} unpacks to more than ${maxUnpackedBytes} bytes`,
    );
    try {
      const inner = await plain.head();
      if (isGzip(inner) || isXz(inner)) throw packedTwice();
      yield* plain.chunks();
    } finally {
      await plain.cancel();
    }
  } finally {
    await packed.cancel();
  }
}

/** Chunks of a stream whose first bytes can be peeked at; more than `maxBytes` throw `too_large` with `message`. */
class CountedChunks {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #maxBytes: number;
  readonly #message: string;
  #total = 0;
  #held: Uint8Array | null = null;

  constructor(stream: ReadableStream<Uint8Array>, maxBytes: number, message: string) {
    this.#reader = stream.getReader();
    this.#maxBytes = maxBytes;
    this.#message = message;
  }

  /** Peeks at the first bytes: at least two, unless the stream is shorter. `chunks` and `stream` still begin with them. */
  async head(): Promise<Uint8Array> {
    let head: Uint8Array = new Uint8Array(0);
    for (let next = await this.#next(); next !== null; next = await this.#next()) {
      head = head.length === 0 ? next : concatBytes([head, next]);
      if (head.length >= 2) break;
    }
    return this.#held = head;
  }

  async *chunks(): AsyncGenerator<Uint8Array> {
    for (let next = await this.#next(); next !== null; next = await this.#next()) yield next;
  }

  stream(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        const next = await this.#next();
        if (next === null) controller.close();
        else controller.enqueue(next);
      },
      cancel: (reason) => this.#reader.cancel(reason),
    }, { highWaterMark: 0 });
  }

  async cancel(): Promise<void> {
    await this.#reader.cancel().catch(() => {});
  }

  async #next(): Promise<Uint8Array | null> {
    const held = this.#held;
    this.#held = null;
    if (held !== null && held.length > 0) return held;
    const { done, value } = await this.#reader.read();
    if (done) return null;
    this.#total += value.length;
    if (this.#total > this.#maxBytes) throw new MillraceError("too_large", this.#message);
    return value;
  }
}
