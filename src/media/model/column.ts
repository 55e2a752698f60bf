/**
 * Columns of whole numbers that take memory by their content, not by their length. The tables of MP4 are short where a
 * film is regular (one entry for the duration of all pictures). Spelled out, four million access units took 96 MB, and
 * a file of a kilobyte could ask for them.
 */

/** Values per block, a power of two. */
const BLOCK = 1024;
const BLOCK_SHIFT = 10;
/** A block's own object and the head of its array, roughly. */
const BLOCK_OVERHEAD_BYTES = 128;

type Rests = Uint8Array | Uint16Array | Uint32Array | Float64Array;

/** A block is a straight line, plus for each value its distance above the line; null: all values lie on the line. */
interface Block {
  readonly base: number;
  readonly step: number;
  readonly rests: Rests | null;
}

/** Whole numbers by index, read only. Made by `ColumnBuilder` and `columnOf`. */
export class Column implements Iterable<number> {
  /** How many there are. */
  readonly length: number;
  readonly #blocks: readonly Block[];

  /** For `ColumnBuilder` alone. */
  constructor(length: number, blocks: readonly Block[]) {
    this.length = length;
    this.#blocks = blocks;
  }

  /** Memory that it takes, bytes. */
  get memoryBytes(): number {
    return this.#blocks.reduce((sum, { rests }) => sum + BLOCK_OVERHEAD_BYTES + (rests?.byteLength ?? 0), 0);
  }

  /** The number at `index`, which must be from 0 to `length - 1`. */
  at(index: number): number {
    const { base, step, rests } = this.#blocks[index >>> BLOCK_SHIFT]!;
    const i = index & (BLOCK - 1);
    const onLine = base + Math.floor(step * i);
    return rests === null ? onLine : onLine + rests[i]!;
  }

  /** A column with `amount` added to each number; shares the memory of this one. */
  plus(amount: number): Column {
    return new Column(this.length, this.#blocks.map((block) => ({ ...block, base: block.base + amount })));
  }

  /** All numbers, in order. */
  *[Symbol.iterator](): Generator<number> {
    for (let i = 0; i < this.length; i++) yield this.at(i);
  }
}

/** Collects the numbers of a column in order. */
export class ColumnBuilder {
  readonly #blocks: Block[] = [];
  readonly #pending = new Float64Array(BLOCK);
  #filled = 0;

  /** Numbers so far. */
  get length(): number {
    return this.#blocks.length * BLOCK + this.#filled;
  }

  /** Appends a whole number up to 2^53 in size. */
  push(value: number): void {
    this.#pending[this.#filled++] = value;
    if (this.#filled === BLOCK) this.#pack();
  }

  /** The column. Nothing may be pushed afterwards. */
  finish(): Column {
    const { length } = this;
    if (this.#filled > 0) this.#pack();
    return new Column(length, this.#blocks);
  }

  #pack(): void {
    const count = this.#filled;
    const values = this.#pending;
    const first = values[0]!;
    const step = count > 1 ? (values[count - 1]! - first) / (count - 1) : 0;
    let least = Infinity;
    let most = -Infinity;
    for (let i = 0; i < count; i++) {
      const rest = values[i]! - first - Math.floor(step * i);
      values[i] = rest;
      if (rest < least) least = rest;
      if (rest > most) most = rest;
    }
    const rests = most === least ? null : restsFor(count, most - least);
    if (rests !== null) { for (let i = 0; i < count; i++) rests[i] = values[i]! - least; }
    this.#blocks.push({ base: first + least, step, rests });
    this.#filled = 0;
  }
}

function restsFor(count: number, span: number): Rests {
  if (span <= 0xff) return new Uint8Array(count);
  if (span <= 0xffff) return new Uint16Array(count);
  return span <= 0xffffffff ? new Uint32Array(count) : new Float64Array(count);
}

/** A column of `values`. */
export function columnOf(values: Iterable<number>): Column {
  const builder = new ColumnBuilder();
  for (const value of values) builder.push(value);
  return builder.finish();
}
