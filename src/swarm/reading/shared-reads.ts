/**
 * Recently read bytes, for readers at the same position. Two hundred viewers of one broadcast then cost one copy out of
 * the cache, and the bytes stay in the processor's cache. One copy per viewer would be limited by memory bandwidth.
 */

/**
 * Bytes kept per reader: players that began together drift apart, and more players drift further. Bytes that all of
 * them have read are dropped at once.
 */
const SHARED_BYTES_PER_READER = 128 * 1024;

/** Bytes kept at least, when there are several readers: what two players read in a second or two. */
const MIN_SHARED_BYTES = 4 * 1024 * 1024;

/** Bytes kept at most per torrent: what hundreds of readers need. */
const MAX_SHARED_BYTES = 64 * 1024 * 1024;

/** A kept read, and how many readers have used it. */
interface Kept {
  readonly bytes: Uint8Array;
  uses: number;
}

/** A read under way, and how many readers wait for it. */
interface UnderWay {
  readonly length: number;
  readonly bytes: Promise<Uint8Array>;
  uses: number;
}

/** The front moves once there were this many reads elsewhere per reader, and none at the front. */
const STRAYS_PER_READER = 8;

/**
 * Recent reads of one torrent around one position, by their first byte. Their bytes never change. A read far from that
 * position is not kept: it would push out bytes that the other readers are about to use, until nobody found anything.
 */
export class SharedReads {
  readonly #fixedLimitBytes: number | null;
  /** Least recently used first. */
  readonly #kept = new Map<number, Kept>();
  readonly #underWay = new Map<number, UnderWay>();
  #bytes = 0;
  #readers = 0;
  /** First byte of the foremost read that was kept. */
  #front = 0;
  /** Reads too far from the front since it last moved. */
  #strays = 0;

  /** `limitBytes`: how much is kept at most; null (default): depends on the number of readers. */
  constructor(limitBytes: number | null = null) {
    this.#fixedLimitBytes = limitBytes;
  }

  /** Bytes kept at most now. */
  get limitBytes(): number {
    return this.#fixedLimitBytes ??
      Math.min(MAX_SHARED_BYTES, Math.max(MIN_SHARED_BYTES, this.#readers * SHARED_BYTES_PER_READER));
  }

  /** Bytes held. */
  get sizeBytes(): number {
    return this.#bytes;
  }

  /** The bytes that another reader read at exactly this position, else null. */
  get(start: number, length: number): Uint8Array | null {
    const found = this.#kept.get(start);
    if (found === undefined || found.bytes.length !== length) return null;
    this.#kept.delete(start);
    if (this.#isSpent(++found.uses)) this.#bytes -= length;
    else this.#kept.set(start, found);
    return found.bytes;
  }

  /**
   * Joins the same read if it is under way, else calls `read` and keeps its result. After a failure each reader reads
   * alone.
   */
  async through(start: number, length: number, read: () => Promise<Uint8Array>): Promise<Uint8Array> {
    const other = this.#underWay.get(start);
    if (other !== undefined && other.length === length) {
      other.uses++;
      try {
        return await other.bytes;
      } catch {
        return read();
      }
    }
    const bytes = read();
    const entry: UnderWay = { length, bytes, uses: 1 };
    this.#underWay.set(start, entry);
    try {
      const answer = await bytes;
      this.#put(start, answer, entry.uses);
      return answer;
    } finally {
      if (this.#underWay.get(start) === entry) this.#underWay.delete(start);
    }
  }

  /** Whether there are several readers. A single reader would only waste memory here. */
  get worthwhile(): boolean {
    return this.#readers > 1;
  }

  /** One more reader. */
  join(): void {
    this.#readers++;
  }

  /** One reader less; when at most one remains, everything is dropped. */
  leave(): void {
    if (--this.#readers > 1) return;
    this.#kept.clear();
    this.#bytes = 0;
  }

  /** Every reader has used it, so nobody needs it unless a reader reads it again. */
  #isSpent(uses: number): boolean {
    return this.#readers > 1 && uses >= this.#readers;
  }

  #put(start: number, bytes: Uint8Array, uses: number): void {
    if (this.#isSpent(uses)) return;
    const { limitBytes } = this;
    const isNear = this.#kept.size === 0 || Math.abs(start - this.#front) < limitBytes;
    // A reader at another position shares nothing; if it led, the readers at the front would find nothing.
    if (!isNear && ++this.#strays <= this.#readers * STRAYS_PER_READER) return;
    if (!isNear || start >= this.#front) {
      this.#front = start;
      this.#strays = 0;
    }
    const old = this.#kept.get(start);
    if (old !== undefined) this.#bytes -= old.bytes.length;
    this.#kept.delete(start);
    this.#kept.set(start, { bytes, uses });
    this.#bytes += bytes.length;
    for (const [oldest, dropped] of this.#kept) {
      if (this.#bytes <= limitBytes) break;
      this.#kept.delete(oldest);
      this.#bytes -= dropped.bytes.length;
    }
  }
}
