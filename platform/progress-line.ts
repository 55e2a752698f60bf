/** Shows progress on a terminal: one line of standard error that is rewritten. Elsewhere nothing, so that logs stay readable. */

/** Time between two updates, ms. */
const EVERY_MS = 200;

/** Where to show it: standard error. */
export interface ProgressOutput {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** The line that shows progress. */
export class ProgressLine {
  readonly #out: ProgressOutput;
  readonly #now: () => number;
  #writtenMs = -Infinity;
  #isOpen = false;

  constructor(out: ProgressOutput, now: () => number = () => performance.now()) {
    this.#out = out;
    this.#now = now;
  }

  /** Shows how far `what` has got; `total` below 0: unknown. */
  show(what: string, done: number, total: number): void {
    if (this.#out.isTTY !== true || this.#now() - this.#writtenMs < EVERY_MS) return;
    this.#writtenMs = this.#now();
    this.#isOpen = true;
    const percent = total > 0 ? ` ${Math.floor(100 * done / total)} %` : "";
    this.#out.write(`\r\x1b[K${what} ${done}${total < 0 ? "" : ` of ${total}`}${percent}`);
  }

  /** Clears the line. */
  end(): void {
    if (this.#isOpen) this.#out.write("\r\x1b[K");
    this.#isOpen = false;
  }
}
