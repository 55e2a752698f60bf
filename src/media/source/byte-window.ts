/**
 * The bytes of a source from a moving position on: a parser works on those that have arrived and asks for more. Reads end at
 * multiples of their size, so that one read touches one piece of a torrent. Only what reaches from one read into the next
 * is joined, in memory of its own.
 */
import type { ByteLender, ByteSource } from "../../bytes/source.ts";

/** A read that would be shorter than this part (1/n) of a whole one continues to the next multiple. */
const SHORT_READ = 32;
/** After the expected end, reads have this part (1/n) of a whole one: usually only a header is needed there. */
const TAIL_READ = 8;

/**
 * Bytes that are not here yet are read up to the next multiple of this size. A whole read would delay the first picture: by 13 s
 * in a swarm of 40 KB/s.
 */
const WAITED_BYTES = 64 * 1024;

/** How a window reads. */
export interface ByteWindowOptions {
  /** Size of a read, bytes. */
  readonly chunkBytes: number;
  /** Where the parser is expected to end, bytes: reads stop there unless more is needed. Absent: nobody knows. */
  readonly untilBytes?: number;
  /**
   * Bytes of the next read that are joined with a remainder, even if fewer are asked for. A parser that looks further ahead than
   * it steps would have them joined again at each step. Default 0.
   */
  readonly joinedBytes?: number;
  readonly signal: AbortSignal;
  /** Takes memory back, see `giveBack`; absent: the collector does. */
  readonly lender?: ByteLender | null;
}

/** One user at a time. */
export class ByteWindow {
  /** Bytes present; valid from `at` to its end. */
  bytes: Uint8Array = new Uint8Array(0);
  /** Index in `bytes` of the next byte to parse. */
  at = 0;
  /** `bytes` is one whole read, not joined. */
  #isRead = false;
  readonly #source: ByteSource;
  readonly #options: ByteWindowOptions;
  /** Source position of `bytes[0]`. */
  #origin: number;
  /** A read that holds the bytes after `bytes`; those are joined from its beginning and the remainder before it. */
  #next: Uint8Array | null = null;
  /** Source position of `#next[0]`. */
  #nextOrigin = 0;
  /** Reads that the window has left behind. */
  #passed: Uint8Array[] = [];

  /** Starts at `position` of `source`. */
  constructor(source: ByteSource, position: number, options: ByteWindowOptions) {
    this.#source = source;
    this.#options = options;
    this.#origin = position;
  }

  /** Source position of the next byte to parse. */
  get position(): number {
    return this.#origin + this.at;
  }

  /** How many bytes are there to parse now. */
  get available(): number {
    return Math.max(0, this.bytes.length - this.at);
  }

  /** True when the source has no bytes after those present. */
  get atEnd(): boolean {
    return this.#origin + Math.max(this.at, this.bytes.length) >= this.#source.sizeBytes;
  }

  /** Goes to a source position; present bytes that are still ahead are kept. */
  seek(position: number): void {
    const index = position - this.#origin;
    if (index >= 0 && index <= this.bytes.length) {
      this.at = index;
      return;
    }
    if (this.#next !== null && position >= this.#nextOrigin && position <= this.#nextOrigin + this.#next.length) {
      this.#enterNext(position);
      return;
    }
    this.#leave();
    this.#origin = position;
    this.bytes = new Uint8Array(0);
    this.at = 0;
  }

  /** Makes `count` bytes available from what was read already; returns whether they are. */
  gather(count: number): boolean {
    if (this.available >= count) return true;
    const next = this.#next;
    if (next === null) return false;
    // All that is left lies in it, even if its beginning was joined: many small steps must not join again each time.
    if (this.position >= this.#nextOrigin) this.#enterNext(this.position);
    else {
      const rest = this.bytes.subarray(this.at);
      const from = this.#origin + this.bytes.length - this.#nextOrigin;
      const more = next.subarray(from, from + Math.max(count - rest.length, this.#options.joinedBytes ?? 0));
      const joined = new Uint8Array(rest.length + more.length);
      joined.set(rest);
      joined.set(more, rest.length);
      this.#origin += this.at;
      this.at = 0;
      this.bytes = joined;
      if (from + more.length === next.length) this.#passNext();
    }
    return this.available >= count;
  }

  /** Reads until `count` bytes are there or the source ends; returns whether they are. */
  async need(count: number): Promise<boolean> {
    while (!this.gather(count)) {
      const isLarge = count - this.available > this.#options.chunkBytes;
      if (isLarge && this.position + count <= this.#source.sizeBytes) {
        await this.#gatherLarge(count);
        continue;
      }
      const from = this.position + this.available;
      const length = this.#readBytes(from, count - this.available);
      if (length <= 0) return false;
      const chunk = await this.#source.read(from, length, { signal: this.#options.signal });
      // Its remainder is joined with the next read before anybody can give it back.
      if (this.#isRead) this.#pass(this.bytes);
      this.#isRead = false;
      this.#next = chunk;
      this.#nextOrigin = from;
    }
    return true;
  }

  /**
   * Joins `count` bytes, most of which are still to be read, in one memory, by reads of the usual size. A single read
   * of all would take the same memory a second time until it is joined.
   */
  async #gatherLarge(count: number): Promise<void> {
    const { chunkBytes, signal, lender } = this.#options;
    const joined = new Uint8Array(count);
    let filled = this.available;
    joined.set(this.bytes.subarray(this.at, this.at + filled));
    const origin = this.position;
    while (filled < count) {
      const from = origin + filled;
      const end = Math.min((Math.floor(from / chunkBytes) + 1) * chunkBytes, origin + count);
      const chunk = await this.#source.read(from, end - from, { signal });
      joined.set(chunk, filled);
      filled += chunk.length;
      lender?.release(chunk);
    }
    if (this.#isRead) this.#pass(this.bytes);
    this.#isRead = false;
    this.#origin = origin;
    this.at = 0;
    this.bytes = joined;
  }

  /** How much to read at `from` when at least `count` bytes are missing. */
  #readBytes(from: number, count: number): number {
    const { chunkBytes, untilBytes = Infinity } = this.#options;
    const least = Math.max(count, from < untilBytes ? chunkBytes / SHORT_READ : chunkBytes / TAIL_READ);
    let end = from + least;
    if (from < untilBytes) end = Math.max(from + count, Math.min(untilBytes, Math.ceil(end / chunkBytes) * chunkBytes));
    const length = Math.min(end, this.#source.sizeBytes) - from;
    const here = this.#source.availableFrom?.(from, length) ?? length;
    if (here >= count) return here;
    return Math.min(length, Math.ceil((from + count) / WAITED_BYTES) * WAITED_BYTES - from);
  }

  /**
   * Gives back the memory of the reads that the window has left. Call it when nobody reads blocks of an earlier read
   * any more, or their users hold them.
   */
  giveBack(): void {
    for (const bytes of this.#passed) this.#options.lender?.release(bytes);
    this.#passed = [];
  }

  /** Gives back everything, as `giveBack`. The window cannot be used afterwards. */
  close(): void {
    this.#leave();
    this.bytes = new Uint8Array(0);
    this.giveBack();
  }

  #enterNext(position: number): void {
    if (this.#isRead) this.#pass(this.bytes);
    this.bytes = this.#next!;
    this.#origin = this.#nextOrigin;
    this.at = position - this.#origin;
    this.#next = null;
    this.#isRead = true;
  }

  #pass(bytes: Uint8Array): void {
    if (this.#options.lender != null) this.#passed.push(bytes);
  }

  #passNext(): void {
    this.#pass(this.#next!);
    this.#next = null;
  }

  #leave(): void {
    if (this.#isRead) this.#pass(this.bytes);
    if (this.#next !== null) this.#passNext();
    this.#isRead = false;
  }
}
