/** How long a block takes from a member to its child, queue included. */

/** Weight of one push in the average. */
const AVERAGE_SHARE = 0.03;
/** Smaller changes of the average are not reported, ms. */
const TELL_MS = 60;

/** The time, averaged over pushes. What is reported changes in steps, because the whole tree hears of each change. */
export class StepTime {
  #averageMs: number;
  #toldMs: number;

  constructor(ms: number) {
    this.#averageMs = this.#toldMs = ms;
  }

  /** As last reported, ms. */
  get toldMs(): number {
    return this.#toldMs;
  }

  /** A push waited and took this long, ms. */
  noted(ms: number): void {
    this.#averageMs += (ms - this.#averageMs) * AVERAGE_SHARE;
    if (Math.abs(this.#averageMs - this.#toldMs) > TELL_MS) this.#toldMs = this.#averageMs;
  }
}
