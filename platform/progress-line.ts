/** Progress on a terminal: one line of standard error that is written again. Elsewhere nothing, so that logs stay readable. */

/** Between two writings, ms. */
const EVERY_MS = 200;

/** Where it is shown. */
export interface ProgressOutput {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** The line. */
export class ProgressLine {
  readonly #out: ProgressOutput;
  readonly #now: () => number;
  #writtenMs = -Infinity;
  #isOpen = false;

  constructor(out: ProgressOutput, now: () => number = () => performance.now()) {
    this.#out = out;
    this.#now = now;
  }

  /** Shows how far `what` is; `total` below 0: unknown. */
  show(what: string, done: number, total: number): void {
    if (this.#out.isTTY !== true || this.#now() - this.#writtenMs < EVERY_MS) return;
    this.#writtenMs = this.#now();
    this.#isOpen = true;
    const percent = total > 0 ? ` ${Math.floor(100 * done / total)} %` : "";
    this.#out.write(`\r\x1b[K${what} ${done}${total < 0 ? "" : ` of ${total}`}${percent}`);
  }

  /** Takes the line away. */
  end(): void {
    if (this.#isOpen) this.#out.write("\r\x1b[K");
    this.#isOpen = false;
  }
}
