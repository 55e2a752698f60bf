/** How much of a long work to do at once, by how long the last step took. */

/** A step may take so long, ms: others wait for it. */
const STEP_MS = 15;

/** The size of the next step of a work whose steps cannot be told in advance to be short: they begin small and grow. */
export class StepSize {
  readonly #min: number;
  readonly #max: number;
  #size: number;

  /** Begins with `min`, below which steps would cost more to begin than to do. */
  constructor(min: number, max: number) {
    this.#min = min;
    this.#max = max;
    this.#size = min;
  }

  /** What the next step may work on, in units of the caller's. */
  get value(): number {
    return this.#size;
  }

  /** Runs a step of `value`; the next is as large as would have taken `STEP_MS`, but no more than twice as large. */
  async run<T>(step: () => Promise<T>): Promise<T> {
    const beginMs = performance.now();
    const result = await step();
    const tookMs = Math.max(0.1, performance.now() - beginMs);
    const fitting = Math.floor(this.#size * STEP_MS / tookMs);
    this.#size = Math.max(this.#min, Math.min(this.#max, 2 * this.#size, fitting));
    return result;
  }
}
