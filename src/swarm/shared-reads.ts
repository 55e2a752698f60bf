/**
 * Bytes read lately, for readers that stand at the same place: two hundred viewers of one broadcast cost one copy out of
 * the cache and stay in the processor's cache, where a copy each is bound by memory.
 */

/** Bytes kept, a torrent: players that began together drift apart by a few seconds. */
export const SHARED_READS_BYTES = 16 * 1024 * 1024;

/** The newest reads of one torrent, by their first byte. What is in it is never changed. */
export class SharedReads {
  private readonly limitBytes: number;
  /** Least recently used first. */
  private readonly kept = new Map<number, Uint8Array>();
  private readonly underWay = new Map<number, { length: number; bytes: Promise<Uint8Array> }>();
  private bytes = 0;
  private readers = 0;

  constructor(limitBytes: number = SHARED_READS_BYTES) {
    this.limitBytes = limitBytes;
  }

  /** Bytes held. */
  get sizeBytes(): number {
    return this.bytes;
  }

  /** What another reader read at just this place, else null. */
  get(start: number, length: number): Uint8Array | null {
    const bytes = this.kept.get(start);
    if (bytes === undefined || bytes.length !== length) return null;
    this.kept.delete(start);
    this.kept.set(start, bytes);
    return bytes;
  }

  /** The same read if somebody is at it, else `read`; its answer is kept. A failed one is tried by everybody alone. */
  async through(start: number, length: number, read: () => Promise<Uint8Array>): Promise<Uint8Array> {
    const other = this.underWay.get(start);
    if (other !== undefined && other.length === length) {
      try {
        return await other.bytes;
      } catch {
        return read();
      }
    }
    const bytes = read();
    const entry = { length, bytes };
    this.underWay.set(start, entry);
    try {
      const answer = await bytes;
      this.put(start, answer);
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

  private put(start: number, bytes: Uint8Array): void {
    const old = this.kept.get(start);
    if (old !== undefined) this.bytes -= old.length;
    this.kept.delete(start);
    this.kept.set(start, bytes);
    this.bytes += bytes.length;
    for (const [oldest, dropped] of this.kept) {
      if (this.bytes <= this.limitBytes) break;
      this.kept.delete(oldest);
      this.bytes -= dropped.length;
    }
  }
}
