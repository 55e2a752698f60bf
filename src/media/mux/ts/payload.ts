/**
 * What one PES carries: a head of its own, then the container's bytes, copied straight from the read buffer into packets.
 */
/** Room for the head: PES header, delimiter, and parameter sets, which `nal.ts` bounds. */
const HEAD_BYTES = 24 * 1024;
const NOTHING = new Uint8Array(0);

/** One access unit on its way into packets. Filled again for each; used within one synchronous call only. */
export class Payload {
  /** Begins with the head. */
  readonly head: Uint8Array = new Uint8Array(HEAD_BYTES);
  /** Bytes of the head. */
  headBytes = 0;
  /** `data[from, to)` follows the head. */
  data: Uint8Array = NOTHING;
  from = 0;
  to = 0;
  /**
   * The data consists of NAL units with four-byte lengths, each to be replaced by a start code; together they fill it
   * exactly.
   */
  lengthPrefixed = false;
  #taken = 0;
  /** Index in `data` of the first length that is not replaced yet. */
  #length = 0;

  /** Bytes of head and data. */
  get sizeBytes(): number {
    return this.headBytes + this.to - this.from;
  }

  /** Empties it except for `headBytes`, which the caller writes later. */
  reset(headBytes: number): void {
    this.headBytes = headBytes;
    this.data = NOTHING;
    this.from = this.to = 0;
    this.lengthPrefixed = false;
    this.#taken = 0;
  }

  /** Appends to the head. */
  addHead(bytes: Uint8Array): void {
    this.head.set(bytes, this.headBytes);
    this.headBytes += bytes.length;
  }

  /** Sets what follows the head. */
  setData(data: Uint8Array, from: number, to: number, lengthPrefixed = false): void {
    this.data = data;
    this.from = this.#length = from;
    this.to = to;
    this.lengthPrefixed = lengthPrefixed;
  }

  /** Copies the next `count` bytes to `out[at]`; zeros when there are no more. */
  take(out: Uint8Array, at: number, count: number): void {
    const { headBytes } = this;
    const begin = this.#taken;
    const end = begin + count;
    this.#taken = end;
    if (begin < headBytes) copyBytes(out, at, this.head, begin, Math.min(end, headBytes));
    const from = this.from + Math.max(0, begin - headBytes);
    const to = Math.min(this.to, this.from + end - headBytes);
    if (from < to) {
      const put = at + headBytes + from - this.from - begin;
      copyBytes(out, put, this.data, from, to);
      if (this.lengthPrefixed) this.#putStartCodes(out, put, from, to);
    }
    if (end > this.sizeBytes) out.fill(0, at + Math.max(0, this.sizeBytes - begin), at + count);
  }

  /** In the copy of `data[from, to)` at `out[at]`; a length may straddle either edge. */
  #putStartCodes(out: Uint8Array, at: number, from: number, to: number): void {
    const { data } = this;
    while (this.#length < to) {
      const length = this.#length;
      for (let i = Math.max(length, from); i < length + 4 && i < to; i++) out[at + i - from] = i === length + 3 ? 1 : 0;
      if (length + 4 > to) return;
      this.#length += 4 + data[length]! * 0x1000000 +
        (data[length + 1]! << 16 | data[length + 2]! << 8 | data[length + 3]!);
    }
  }
}

/** Below this a loop beats making a view and calling `set`. */
const SMALL_COPY_BYTES = 32;

/** `out.set(data.subarray(from, to), at)`, cheaper for the few bytes that many audio frames and NAL units are. */
export function copyBytes(out: Uint8Array, at: number, data: Uint8Array, from: number, to: number): void {
  if (to - from < SMALL_COPY_BYTES) {
    for (let i = from; i < to; i++) out[at++] = data[i]!;
  } else if (from === 0 && to === data.length) {
    out.set(data, at);
  } else {
    out.set(data.subarray(from, to), at);
  }
}
