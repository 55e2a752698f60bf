/** Unpacks lists and guides that arrive gzipped and passes others unchanged. */
import { gunzipped, isGzip } from "../../bytes/gunzip.ts";
import { concatBytes } from "../../bytes/hex.ts";
import { MillraceError } from "../../errors.ts";
import type { M3uLimits } from "./types.ts";

const MIB = 1024 * 1024;
/** First bytes of an xz file. */
const XZ_MAGIC = [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00];

/** What is unpacked, and its bounds. */
export interface UnpackLimits extends Pick<M3uLimits, "maxBytes" | "maxUnpackedBytes" | "isUnpacked"> {
  /** What the errors call it. Default `playlist`. */
  readonly what?: "playlist" | "guide";
}

/**
 * Yields the bytes of `stream` with one layer of gzip (RFC 1952) undone, or none when `isUnpacked`. Throws `too_large` over a
 * limit, `invalid_argument` for xz, and for gzip data that is damaged or packed twice: with a second layer a kilobyte becomes a gigabyte.
 * Leaving the loop cancels `stream`.
 */
export async function* unpacked(
  stream: ReadableStream<Uint8Array>,
  limits: UnpackLimits = {},
): AsyncGenerator<Uint8Array> {
  const { maxBytes = 64 * MIB, maxUnpackedBytes = 256 * MIB, isUnpacked = false, what = "playlist" } = limits;
  const packedTwice = () => new MillraceError("invalid_argument", `invalid ${what}: it is packed twice`);
  const damaged = (cause: unknown) =>
    new MillraceError("invalid_argument", `invalid ${what}: its gzip data is damaged`, { cause });
  const packed = new CountedChunks(stream, maxBytes, `the ${what} is larger than ${maxBytes} bytes`);
  try {
    const head = await packed.head();
    if (isXz(head)) {
      throw new MillraceError("invalid_argument", `invalid ${what}: it is packed with xz; gzip can be read`);
    }
    if (!isGzip(head)) return yield* packed.chunks();
    if (isUnpacked) throw packedTwice();
    const plain = new CountedChunks(
      gunzipped(packed.stream(), damaged),
      maxUnpackedBytes,
      `the ${what} unpacks to more than ${maxUnpackedBytes} bytes`,
    );
    try {
      if (isGzip(await plain.head())) throw packedTwice();
      yield* plain.chunks();
    } finally {
      await plain.cancel();
    }
  } finally {
    await packed.cancel();
  }
}

/** True when `bytes`, two or more, begin as xz does. */
function isXz(bytes: Uint8Array): boolean {
  return XZ_MAGIC.every((byte, at) => at >= bytes.length || bytes[at] === byte) && bytes.length >= 2;
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
