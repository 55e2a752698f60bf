/** Measures how late the event loop runs due timers: the first sign that a machine is overloaded. */
import type { Clock, Timer } from "../ports.ts";
import { Histogram } from "./instruments.ts";

/** Time between two measurements, ms: frequent enough to notice a block of some 100 ms, and almost free. */
export const LOOP_DELAY_EVERY_MS = 250;

/** Measures from `start` to `close`. */
export class LoopDelay {
  readonly histogram = new Histogram({
    name: "millrace_event_loop_delay_seconds",
    help: "How late a timer ran, measured four times a second.",
    bounds: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
  });
  readonly #clock: Clock;
  #timer: Timer | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Begins to measure. Call once. */
  start(): void {
    const dueMs = this.#clock.monotonic() + LOOP_DELAY_EVERY_MS;
    this.#timer = this.#clock.setTimeout(() => {
      this.histogram.observe({}, Math.max(0, this.#clock.monotonic() - dueMs) / 1000);
      this.start();
    }, LOOP_DELAY_EVERY_MS);
  }

  /** Ends measuring. */
  close(): void {
    this.#timer?.cancel();
  }
}
