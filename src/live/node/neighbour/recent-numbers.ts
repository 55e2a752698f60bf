/** A set of growing numbers that forgets those far below the largest: a bitmap that moves along. */

/** Numbers remembered below the largest. A power of two. */
const SPAN = 512;

/** The set; membership of numbers far behind the largest is forgotten. */
export class RecentNumbers {
  readonly #bits = new Uint32Array(SPAN / 32);
  #largest = -1;

  /** Adds `value`, a whole number from 0 on; returns whether it is new. A number too old to be remembered counts as new. */
  add(value: number): boolean {
    if (value <= this.#largest - SPAN) return true;
    if (value - this.#largest >= SPAN) this.#bits.fill(0);
    else for (let next = this.#largest + 1; next <= value; next++) this.#bits[word(next)]! &= ~bit(next);
    this.#largest = Math.max(this.#largest, value);
    const isNew = (this.#bits[word(value)]! & bit(value)) === 0;
    this.#bits[word(value)]! |= bit(value);
    return isNew;
  }

  /** Whether `value` was added and is not forgotten. */
  has(value: number): boolean {
    if (value <= this.#largest - SPAN || value > this.#largest) return false;
    return (this.#bits[word(value)]! & bit(value)) !== 0;
  }
}

function word(value: number): number {
  return (value & (SPAN - 1)) >> 5;
}

function bit(value: number): number {
  return 1 << (value & 31);
}
