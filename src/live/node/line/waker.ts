/** Calls back once after a while, however often it is asked to: at the earliest of the requested times. */
import type { Clock, Timer } from "../../../ports.ts";

/** One timer for many requested callbacks: the earliest counts. */
export class Waker {
  readonly #clock: Pick<Clock, "setTimeout">;
  readonly #run: () => void;
  #timer: Timer | null = null;
  #closed = false;

  constructor(clock: Pick<Clock, "setTimeout">, run: () => void) {
    this.#clock = clock;
    this.#run = run;
  }

  /** Runs after `afterMs`, unless it will run anyway. */
  wake(afterMs: number): void {
    if (this.#closed || this.#timer !== null) return;
    this.#timer = this.#clock.setTimeout(() => {
      this.#timer = null;
      this.#run();
    }, afterMs);
  }

  /** Cancels the callback. */
  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }
}
