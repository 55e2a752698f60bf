/** Keeps results that are expensive to make again, within a limit of bytes. */

/** Most bytes kept: two minutes of AAC, so that further requests for the same time cost nothing. */
const MAX_KEPT_BYTES = 4 * 1024 * 1024;

/** A cache under a limit of bytes that forgets the least recently used entries. */
export class Kept<T> {
  readonly #things = new Map<number, { thing: T; bytes: number }>();
  #bytes = 0;

  /** What was set under `key`, if it is still kept. */
  get(key: number): T | undefined {
    const found = this.#things.get(key);
    if (found === undefined) return undefined;
    this.#things.delete(key);
    this.#things.set(key, found);
    return found.thing;
  }

  /** Keeps `thing`, which takes `bytes`, and forgets the least recently used others if necessary. */
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
