/** Decides how much of a long task to do at once, by how long the last step took. */

/** Target length of a step, ms: other tasks wait for it. */
const STEP_MS = 15;

/** Sizes the steps of a task when nobody knows which size is quick: they begin small and grow. */
export class StepSize {
  readonly #min: number;
  readonly #max: number;
  #size: number;

  /** Starts at `min`; smaller steps would cost more to begin than to do. */
  constructor(min: number, max: number) {
    this.#min = min;
    this.#max = max;
    this.#size = min;
  }

  /** Size of the next step, in the caller's units. */
  get value(): number {
    return this.#size;
  }

  /** Runs a step of size `value`; the next size is what would have taken `STEP_MS`, at most twice as large. */
  async run<T>(step: () => Promise<T>): Promise<T> {
    const beginMs = performance.now();
    const result = await step();
    const tookMs = Math.max(0.1, performance.now() - beginMs);
    const fitting = Math.floor(this.#size * STEP_MS / tookMs);
    this.#size = Math.max(this.#min, Math.min(this.#max, 2 * this.#size, fitting));
    return result;
  }
}
