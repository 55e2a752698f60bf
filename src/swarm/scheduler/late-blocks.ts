/** Blocks of one peer that may come although no request for them is recorded any more. */

/** Blocks remembered. Bounds memory; the oldest is forgotten. */
const MAX_LATE = 1024;

/** Cancelled and probed blocks of one peer, by `Core.key`. */
export class LateBlocks {
  readonly #keys = new Set<number>();
  /** How many of them are most likely on their way, and until when that is assumed. */
  #sent = 0;
  #sentUntilMs = Number.NEGATIVE_INFINITY;

  /** The block may come. */
  add(key: number): void {
    if (this.#keys.size >= MAX_LATE) this.#keys.delete(this.#keys.values().next().value!);
    this.#keys.add(key);
  }

  /** The block was requested at `sentMs` and its cancel probably comes too late: it should be here by `dueMs`. */
  addSent(key: number, sentMs: number, dueMs: number): void {
    this.add(key);
    if (sentMs > this.#sentUntilMs) this.#sent = 0;
    this.#sent++;
    this.#sentUntilMs = Math.max(this.#sentUntilMs, dueMs);
  }

  /** Whether the block may come. */
  has(key: number): boolean {
    return this.#keys.size > 0 && this.#keys.has(key);
  }

  /** Whether the block might have come; now it has, or was refused. */
  take(key: number): boolean {
    if (this.#keys.size === 0 || !this.#keys.delete(key)) return false;
    if (this.#sent > 0) this.#sent--;
    return true;
  }

  /** How many are on their way, for all that is known. */
  due(nowMs: number): number {
    return nowMs < this.#sentUntilMs ? this.#sent : 0;
  }
}
