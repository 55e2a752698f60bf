/** Pages of a search whose callers count them from 0 or from 1. */

/** How long it is remembered where a caller's count begins: somebody who looks through pages is faster. */
const KEEP_MS = 10 * 60_000;
/** Searches remembered; the one that was used longest ago is forgotten first. */
const MAX_SEARCHES = 256;

/** Finds out which page a number means: the first page is 0 for some clients and 1 for others. */
export class PageCount {
  /** Number of the first page, by search. */
  readonly #first = new Map<string, { readonly first: 0 | 1; readonly untilMs: number }>();

  /**
   * The index, from 0, of the page that has this number for the caller of `search`, a text that names both. A search that
   * begins with page 1 counts from 1, every other from 0. `nowMs` is the clock's monotonic time.
   */
  indexOf(search: string, number: number, nowMs: number): number {
    const known = this.#first.get(search);
    const isKnown = known !== undefined && known.untilMs > nowMs && number > 0;
    const first = isKnown ? known.first : number === 1 ? 1 : 0;
    this.#first.delete(search);
    this.#first.set(search, { first, untilMs: nowMs + KEEP_MS });
    if (this.#first.size > MAX_SEARCHES) this.#first.delete(this.#first.keys().next().value!);
    return number - first;
  }
}
