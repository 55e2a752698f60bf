/** Events of a session, delivered by long poll: section 6 of the HTTP API, B14. */
import type { Clock } from "../ports.ts";

/** A long poll is answered after this at the latest, with no event. */
const EVENT_POLL_MS = 15_000;
/** Events kept for a client that does not poll; older ones are dropped. */
const MAX_QUEUED = 32;

/** One event as the client sees it. */
export interface PlaybackEvent {
  readonly name: "live_changed" | "prebuffering" | "playing" | "stalled" | "missing_content" | "download_stopped";
  readonly params: Readonly<Record<string, unknown>>;
}

/** The queue between a session and its `event_url`. */
export class EventQueue {
  readonly #queue: PlaybackEvent[] = [];
  readonly #waiting = new Set<() => void>();
  #closed = false;

  /** Adds an event; of `prebuffering` only the newest is kept. */
  push(event: PlaybackEvent): void {
    if (this.#closed) return;
    const last = this.#queue.at(-1);
    if (event.name === "prebuffering" && last?.name === "prebuffering") this.#queue.pop();
    this.#queue.push(event);
    if (this.#queue.length > MAX_QUEUED) this.#queue.shift();
    this.#wake();
  }

  /** The oldest event, waiting for one; null after `EVENT_POLL_MS`, when `signal` fires or the queue is closed and empty. */
  async next(clock: Clock, signal: AbortSignal): Promise<PlaybackEvent | null> {
    if (this.#queue.length === 0 && !this.#closed && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const done = () => {
          timer.cancel();
          signal.removeEventListener("abort", done);
          this.#waiting.delete(done);
          resolve();
        };
        const timer = clock.setTimeout(done, EVENT_POLL_MS);
        signal.addEventListener("abort", done, { once: true });
        this.#waiting.add(done);
      });
    }
    return signal.aborted ? null : this.#queue.shift() ?? null;
  }

  /** No event follows; what is queued can still be fetched. */
  close(): void {
    this.#closed = true;
    this.#wake();
  }

  #wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }
}
