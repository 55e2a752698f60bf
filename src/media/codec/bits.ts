/** Bit fields of a few hundred bits: configuration records, not media. */

/** Reads big-endian bit fields. Past the end it returns zeros and `exhausted` turns true. */
export class BitReader {
  readonly #bytes: Uint8Array;
  #position = 0;
  /** More bits were asked for than there are. */
  exhausted = false;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** The next `count` bits, 0–32. */
  read(count: number): number {
    let value = 0;
    for (let i = 0; i < count; i++, this.#position++) {
      const byte = this.#bytes[this.#position >> 3];
      if (byte === undefined) this.exhausted = true;
      value = value * 2 + (((byte ?? 0) >> (7 - (this.#position & 7))) & 1);
    }
    return value;
  }

  /** Skips to the next byte boundary. */
  align(): void {
    this.#position = (this.#position + 7) & ~7;
  }
}

/** Writes big-endian bit fields into at most `capacityBytes`; what does not fit is dropped. */
export class BitWriter {
  readonly #buffer: Uint8Array<ArrayBuffer>;
  #position = 0;

  constructor(capacityBytes: number) {
    this.#buffer = new Uint8Array(capacityBytes);
  }

  /** Appends the low `count` bits of `value`, 0–32. */
  write(value: number, count: number): void {
    for (let i = count - 1; i >= 0; i--, this.#position++) {
      const at = this.#position >> 3;
      if (at < this.#buffer.length && Math.floor(value / 2 ** i) % 2 === 1) {
        this.#buffer[at] = this.#buffer[at]! | (0x80 >> (this.#position & 7));
      }
    }
  }

  /** Zero bits up to the next byte boundary. */
  align(): void {
    this.#position = (this.#position + 7) & ~7;
  }

  /** What was written, padded to whole bytes. */
  bytes(): Uint8Array<ArrayBuffer> {
    return this.#buffer.slice(0, (this.#position + 7) >> 3);
  }
}
