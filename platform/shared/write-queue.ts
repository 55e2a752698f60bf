/** Bytes waiting to be sent, in order. Small chunks are merged so that the messages of one turn leave in few writes. */

/** Chunks up to this size are copied together: below it a copy is cheaper than one more buffer in a gathering write. */
const MERGE_BYTES = 1024;

/** A first-in first-out queue of chunks. It has no bound of its own: `TcpConnection.write` returns false when callers should stop. */
export class WriteQueue {
  #chunks: Uint8Array[] = [];
  #head = 0;
  /** Bytes of `chunks[head]` already taken. */
  #headOffset = 0;
  /** Bytes in the queue. */
  bytes = 0;

  push(chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    this.#chunks.push(chunk);
    this.bytes += chunk.length;
  }

  clear(): void {
    this.#chunks = [];
    this.#head = this.#headOffset = this.bytes = 0;
  }

  /** Takes the next chunk if it is untouched and at least `minBytes` long; else returns null. */
  takeLarge(minBytes: number): Uint8Array | null {
    const chunk = this.#chunks[this.#head];
    if (chunk === undefined || chunk.length - this.#headOffset < minBytes) return null;
    const rest = this.#headOffset === 0 ? chunk : chunk.subarray(this.#headOffset);
    this.#advance(rest.length);
    return rest;
  }

  /** Moves bytes from the front into `target`; returns how many. */
  fill(target: Uint8Array): number {
    let filled = 0;
    while (filled < target.length && this.bytes > 0) {
      const chunk = this.#chunks[this.#head]!;
      const count = Math.min(chunk.length - this.#headOffset, target.length - filled);
      target.set(
        this.#headOffset === 0 && count === chunk.length
          ? chunk
          : chunk.subarray(this.#headOffset, this.#headOffset + count),
        filled,
      );
      filled += count;
      this.#advance(count);
    }
    return filled;
  }

  /** Takes everything, with neighbouring small chunks merged. */
  takeAll(): Uint8Array[] {
    const all: Uint8Array[] = [];
    let small: Uint8Array[] = [];
    let smallBytes = 0;
    const merge = () => {
      if (small.length === 1) all.push(small[0]!);
      else if (small.length > 1) {
        const merged = new Uint8Array(smallBytes);
        let at = 0;
        for (const chunk of small) {
          merged.set(chunk, at);
          at += chunk.length;
        }
        all.push(merged);
      }
      small = [];
      smallBytes = 0;
    };
    for (let i = this.#head; i < this.#chunks.length; i++) {
      const chunk = i === this.#head && this.#headOffset > 0
        ? this.#chunks[i]!.subarray(this.#headOffset)
        : this.#chunks[i]!;
      if (chunk.length <= MERGE_BYTES) {
        small.push(chunk);
        smallBytes += chunk.length;
      } else {
        merge();
        all.push(chunk);
      }
    }
    merge();
    this.clear();
    return all;
  }

  #advance(count: number): void {
    this.bytes -= count;
    this.#headOffset += count;
    if (this.#headOffset < this.#chunks[this.#head]!.length) return;
    this.#headOffset = 0;
    this.#head++;
    if (this.#head === this.#chunks.length) {
      this.#chunks = [];
      this.#head = 0;
    } else if (this.#head >= 1024) {
      this.#chunks = this.#chunks.slice(this.#head);
      this.#head = 0;
    }
  }
}
