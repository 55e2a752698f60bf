/**
 * Bytes read lately, for readers that stand at the same place: two hundred viewers of one broadcast cost one copy out of
 * the cache and stay in the processor's cache, where a copy each is bound by memory.
 */

/**
 * Bytes kept for each reader: players that began together drift apart, the further the more they are. What all of them
 * have read goes at once.
 */
const SHARED_BYTES_PER_READER = 128 * 1024;

/** Bytes kept at least, when there are several readers: a second or two of what two players take. */
const MIN_SHARED_BYTES = 4 * 1024 * 1024;

/** Bytes kept at most, a torrent: what hundreds of readers need. */
const MAX_SHARED_BYTES = 64 * 1024 * 1024;

/** A read that is kept, and by how many it has been used. */
interface Kept {
  readonly bytes: Uint8Array;
  uses: number;
}

/** A read that has begun, and how many wait for it. */
interface UnderWay {
  readonly length: number;
  readonly bytes: Promise<Uint8Array>;
  uses: number;
}

/** Each reader reads this often elsewhere, and none at the front, before the front moves to where they are. */
const STRAYS_PER_READER = 8;

/**
 * Reads of one torrent around one place, by their first byte. What is in it is never changed. What a reader far from that
 * place reads is not kept: it would push out what the others are about to use, until nobody found anything.
 */
export class SharedReads {
  private readonly fixedLimitBytes: number | null;
  /** Least recently used first. */
  private readonly kept = new Map<number, Kept>();
  private readonly underWay = new Map<number, UnderWay>();
  private bytes = 0;
  private readers = 0;
  /** First byte of the foremost read that was kept. */
  private front = 0;
  /** Reads too far from the front since it moved last. */
  private strays = 0;

  /** `limitBytes`: what is kept at most; null (default): by the number of readers. */
  constructor(limitBytes: number | null = null) {
    this.fixedLimitBytes = limitBytes;
  }

  /** Bytes kept at most now. */
  get limitBytes(): number {
    return this.fixedLimitBytes ??
      Math.min(MAX_SHARED_BYTES, Math.max(MIN_SHARED_BYTES, this.readers * SHARED_BYTES_PER_READER));
  }

  /** Bytes held. */
  get sizeBytes(): number {
    return this.bytes;
  }

  /** What another reader read at just this place, else null. */
  get(start: number, length: number): Uint8Array | null {
    const found = this.kept.get(start);
    if (found === undefined || found.bytes.length !== length) return null;
    this.kept.delete(start);
    if (this.isSpent(++found.uses)) this.bytes -= length;
    else this.kept.set(start, found);
    return found.bytes;
  }

  /** The same read if somebody is at it, else `read`; its answer is kept. A failed one is tried by everybody alone. */
  async through(start: number, length: number, read: () => Promise<Uint8Array>): Promise<Uint8Array> {
    const other = this.underWay.get(start);
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
    this.underWay.set(start, entry);
    try {
      const answer = await bytes;
      this.put(start, answer, entry.uses);
      return answer;
    } finally {
      if (this.underWay.get(start) === entry) this.underWay.delete(start);
    }
  }

  /** Are there several readers? One alone would only waste memory here. */
  get worthwhile(): boolean {
    return this.readers > 1;
  }

  /** One more reader. */
  join(): void {
    this.readers++;
  }

  /** One reader less; the last but one takes everything with it. */
  leave(): void {
    if (--this.readers > 1) return;
    this.kept.clear();
    this.bytes = 0;
  }

  /** As many have used it as there are readers: nobody is left behind it, unless somebody reads it again. */
  private isSpent(uses: number): boolean {
    return this.readers > 1 && uses >= this.readers;
  }

  private put(start: number, bytes: Uint8Array, uses: number): void {
    if (this.isSpent(uses)) return;
    const { limitBytes } = this;
    const isNear = this.kept.size === 0 || Math.abs(start - this.front) < limitBytes;
    // One who reads elsewhere shares with nobody here. Were he to lead, those at the front would find nothing.
    if (!isNear && ++this.strays <= this.readers * STRAYS_PER_READER) return;
    if (!isNear || start >= this.front) {
      this.front = start;
      this.strays = 0;
    }
    const old = this.kept.get(start);
    if (old !== undefined) this.bytes -= old.bytes.length;
    this.kept.delete(start);
    this.kept.set(start, { bytes, uses });
    this.bytes += bytes.length;
    for (const [oldest, dropped] of this.kept) {
      if (this.bytes <= limitBytes) break;
      this.kept.delete(oldest);
      this.bytes -= dropped.bytes.length;
    }
  }
}
