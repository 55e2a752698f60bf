/** Offsets inside a piece fit 32 bits, so a request is one exact number. */
const OFFSETS = 2 ** 32;

/** The far end's requests that await an answer. Bounded: `add` refuses the excess. */
export class RequestLedger {
  readonly #pending = new Map<number, number>();
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#pending.size;
  }

  /** Notes a request: `full` when there are too many, `known` when the same block is already awaited. */
  add(piece: number, offset: number, length: number): "added" | "known" | "full" {
    const key = piece * OFFSETS + offset;
    if (this.#pending.has(key)) return "known";
    if (this.#pending.size >= this.#limit) return "full";
    this.#pending.set(key, length);
    return "added";
  }

  /** Removes a request; false when it was not awaited, or no longer. */
  remove(piece: number, offset: number): boolean {
    return this.#pending.delete(piece * OFFSETS + offset);
  }

  /** Removes all and returns them in order of arrival. */
  clear(): { piece: number; offset: number; length: number }[] {
    const all = [...this.#pending].map(([key, length]) => ({
      piece: Math.floor(key / OFFSETS),
      offset: key % OFFSETS,
      length,
    }));
    this.#pending.clear();
    return all;
  }
}
