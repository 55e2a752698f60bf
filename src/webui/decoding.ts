/**
 * Where a browser's decoder can go on after it failed. Some decoders fail at a random access point of a film of open groups of
 * pictures, because pictures after it name others that were never decoded: only what is decoded in one go from such a film's
 * beginning plays.
 */

/** Where to begin again, s: from there the film is played fast, unseen, until `untilS`. */
export interface Restart {
  readonly fromS: number;
  readonly untilS: number;
  /** The film failed at a place that was sought: this decoder cannot begin there. */
  readonly isSearch: boolean;
}

/** A decoder that played so long after it began does not fail for where it began, s. */
const GOOD_S = 1.5;

/** What a decoder played, and what it failed at. */
export class Decoding {
  /** Where the decoder began, and whether it has played since. */
  #startedS = 0;
  #isGood = false;
  /** Where it began when it played last, and how far it came. */
  #begunS = 0;
  #lastS = 0;
  /** Restarts since it played, and whether the first of them was for a place that was sought. */
  #restarts = 0;
  #isSearch = false;

  /** The decoder begins at `seconds`. */
  seek(seconds: number): void {
    this.#startedS = seconds;
    this.#isGood = false;
  }

  /** The decoder shows `seconds`. */
  show(seconds: number): void {
    this.#isGood ||= seconds >= this.#startedS + GOOD_S;
    if (!this.#isGood) return;
    this.#begunS = this.#startedS;
    this.#lastS = seconds;
    this.#restarts = 0;
  }

  /** The decoder failed; null: there is no other place to begin. */
  fail(): Restart | null {
    if (this.#restarts === 0) this.#isSearch = !this.#isGood;
    const isAtStart = this.#startedS === 0 && !this.#isGood;
    // Bytes that are damaged would be met again.
    const places = this.#isSearch ? [this.#lastS, this.#begunS, 0] : [this.#lastS, this.#lastS];
    const fromS = places[this.#restarts++];
    if (isAtStart || fromS === undefined) return null;
    const untilS = Math.max(fromS, this.#lastS);
    this.seek(fromS);
    return { fromS, untilS, isSearch: this.#isSearch };
  }
}
