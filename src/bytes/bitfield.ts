/** A set of piece indexes, one bit each, the most significant bit first as on the wire (BEP 3). */
export class Bitfield {
  /** Number of bits. */
  readonly size: number;
  /** The bits, ⌈size/8⌉ bytes, spare bits zero. Change them only through the methods: `count` depends on it. */
  readonly bytes: Uint8Array;
  #count = 0;

  /** All zero, or the given bytes (copied; extra bytes and spare bits are dropped). `size` ≥ 0. */
  constructor(size: number, bytes?: Uint8Array) {
    this.size = size;
    this.bytes = new Uint8Array((size + 7) >> 3);
    if (bytes === undefined) return;
    this.bytes.set(bytes.subarray(0, this.bytes.length));
    if ((size & 7) !== 0 && this.bytes.length > 0) {
      const last = this.bytes.length - 1;
      this.bytes[last] = this.bytes[last]! & (0xff << (8 - (size & 7)));
    }
    for (const byte of this.bytes) for (let b = byte; b !== 0; b &= b - 1) this.#count++;
  }

  /** `size` bits, all set. */
  static allSet(size: number): Bitfield {
    return new Bitfield(size, new Uint8Array((size + 7) >> 3).fill(0xff));
  }

  /** Number of set bits. */
  get count(): number {
    return this.#count;
  }

  /** True when every bit is set. */
  get full(): boolean {
    return this.#count === this.size;
  }

  has(index: number): boolean {
    return index >= 0 && index < this.size && (this.bytes[index >> 3]! & (0x80 >> (index & 7))) !== 0;
  }

  /** Sets (or clears) a bit; returns whether it changed. An index out of range is ignored. */
  set(index: number, value = true): boolean {
    if (index < 0 || index >= this.size || this.has(index) === value) return false;
    this.bytes[index >> 3] = this.bytes[index >> 3]! ^ (0x80 >> (index & 7));
    this.#count += value ? 1 : -1;
    return true;
  }

  setAll(): void {
    for (let i = 0; i < this.size; i++) this.set(i);
  }

  clear(): void {
    this.bytes.fill(0);
    this.#count = 0;
  }
}
