/** Lets callers wait until a torrent is complete. */
import { withSignal } from "../../bytes/deadline.ts";
import { abortError } from "../../errors.ts";

/** The waiters of one swarm. */
export class Completion {
  readonly #ended: AbortSignal;
  readonly #waiting = new Set<() => void>();

  /** `ended` fires when the swarm is closed: its waiters then reject with that reason. */
  constructor(ended: AbortSignal) {
    this.#ended = ended;
  }

  /** Every piece is downloaded, or the swarm was closed. */
  settle(): void {
    for (const settle of this.#waiting) settle();
  }

  /** Resolves at the next `settle`; rejects as `signal` does, or with the reason of the swarm's end. */
  async wait(signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw abortError(signal);
    const ended = this.#ended;
    let settle = () => {};
    const done = new Promise<void>((resolve, reject) => {
      settle = () => ended.aborted ? reject(abortError(ended)) : resolve();
      if (ended.aborted) settle();
    });
    this.#waiting.add(settle);
    try {
      await withSignal(done, signal);
    } finally {
      this.#waiting.delete(settle);
    }
  }
}
