/** Bytes waiting to be cut into packets. It does not bound itself: `TcpConnection.write` returns when callers must stop. */
export class ByteQueue {
  #chunks: Uint8Array[] = [];
  #head = 0;
  /** Bytes of `chunks[head]` already taken. */
  #offset = 0;
  /** Bytes in the queue. */
  bytes = 0;
  #apart: number;

  /** `apart`: so many of the first chunks share no packet with the next one. */
  constructor(apart = 0) {
    this.#apart = apart;
  }

  push(chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    this.#chunks.push(chunk);
    this.bytes += chunk.length;
  }

  /** A copy of the next `limit` bytes at most, taken from the queue. */
  take(limit: number): Uint8Array {
    const most = this.#apart > 0 && this.bytes > 0 ? this.#chunks[this.#head]!.length - this.#offset : this.bytes;
    const taken = new Uint8Array(Math.min(limit, most));
    for (let at = 0; at < taken.length;) {
      const chunk = this.#chunks[this.#head]!;
      const part = chunk.subarray(this.#offset, this.#offset + taken.length - at);
      taken.set(part, at);
      at += part.length;
      this.#offset += part.length;
      if (this.#offset === chunk.length) this.#drop();
    }
    this.bytes -= taken.length;
    return taken;
  }

  clear(): void {
    this.#chunks = [];
    this.#head = this.#offset = this.bytes = 0;
  }

  #drop(): void {
    this.#apart--;
    this.#offset = 0;
    this.#head++;
    // Shifting the array at each chunk would cost time in proportion to its length.
    if (this.#head < 256 && this.#head < this.#chunks.length) return;
    this.#chunks = this.#chunks.slice(this.#head);
    this.#head = 0;
  }
}
