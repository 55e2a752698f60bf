/** Calls back once after a while, however often it is asked to: by the first of the times that it is given. */
import type { Clock, Timer } from "../../ports.ts";

/** One timer for many wishes to be called back: the earliest counts. */
export class Waker {
  private readonly clock: Pick<Clock, "setTimeout">;
  private readonly run: () => void;
  private timer: Timer | null = null;
  private closed = false;

  constructor(clock: Pick<Clock, "setTimeout">, run: () => void) {
    this.clock = clock;
    this.run = run;
  }

  /** Runs after `afterMs`, unless it will run anyway. */
  wake(afterMs: number): void {
    if (this.closed || this.timer !== null) return;
    this.timer = this.clock.setTimeout(() => {
      this.timer = null;
      this.run();
    }, afterMs);
  }

  /** Runs no more. */
  close(): void {
    this.closed = true;
    this.timer?.cancel();
  }
}
