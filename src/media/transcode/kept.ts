/** Results that are kept to save work, within a limit. */

/** Most kept results, bytes: two minutes of AAC, so that other ranges of the same time cost nothing. */
const MAX_KEPT_BYTES = 4 * 1024 * 1024;

/** Least recently used things under a limit of bytes. */
export class Kept<T> {
  readonly #things = new Map<number, { thing: T; bytes: number }>();
  #bytes = 0;

  /** What was set under `key` and is still there. */
  get(key: number): T | undefined {
    const found = this.#things.get(key);
    if (found === undefined) return undefined;
    this.#things.delete(key);
    this.#things.set(key, found);
    return found.thing;
  }

  /** Keeps `thing`, which takes `bytes`; the least recently used of the others go. */
  set(key: number, thing: T, bytes: number): void {
    this.#bytes -= this.#things.get(key)?.bytes ?? 0;
    this.#things.delete(key);
    this.#things.set(key, { thing, bytes });
    this.#bytes += bytes;
    for (const [oldest, { bytes }] of this.#things) {
      if (this.#bytes <= MAX_KEPT_BYTES || oldest === key) return;
      this.#things.delete(oldest);
      this.#bytes -= bytes;
    }
  }
}
