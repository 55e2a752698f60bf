/** Events of a session, delivered by long poll to any number of listeners: section 6 of the HTTP API. */
import type { Clock } from "../ports.ts";

/** A long poll returns after this at the latest, without an event. */
const EVENT_POLL_MS = 15_000;
/** Events kept for listeners that do not poll; older ones are dropped. */
const MAX_KEPT = 64;

/** One event as the client sees it. */
export interface PlaybackEvent {
  readonly name: "live_changed" | "prebuffering" | "playing" | "stalled" | "missing_content" | "download_stopped";
  readonly params: Readonly<Record<string, unknown>>;
}

/** An event with its number in its session, from 1 on; a listener continues from it. */
export interface NumberedEvent extends PlaybackEvent {
  readonly id: number;
}

/** The newest events of a session, between the session and its `event_url`. */
export class EventLog {
  /** Oldest first, numbers without gaps except those of replaced ones. */
  readonly #kept: NumberedEvent[] = [];
  readonly #waiting = new Set<() => void>();
  #lastId = 0;
  /** Number of the newest event that was given to a listener without a place of its own. */
  #toldId = 0;
  #closed = false;

  /** Adds an event; of `prebuffering` only the newest is kept. */
  push(event: PlaybackEvent): void {
    if (this.#closed) return;
    if (event.name === "prebuffering" && this.#kept.at(-1)?.name === "prebuffering") this.#kept.pop();
    this.#kept.push({ ...event, id: ++this.#lastId });
    if (this.#kept.length > MAX_KEPT) this.#kept.shift();
    this.#wake();
  }

  /**
   * The oldest event that no listener of this kind was given before this call, waiting for one; null after
   * `EVENT_POLL_MS`, when `signal` fires or none follows. A single listener misses nothing; several that wait at once
   * get the same event.
   */
  async next(clock: Clock, signal: AbortSignal): Promise<PlaybackEvent | null> {
    const found = await this.nextAfter(this.#toldId, clock, signal);
    if (found === null) return null;
    const { id, ...event } = found;
    this.#toldId = Math.max(this.#toldId, id);
    return event;
  }

  /** The oldest kept event with a number over `id`, as `next`, for a listener that keeps its own place. */
  async nextAfter(id: number, clock: Clock, signal: AbortSignal): Promise<NumberedEvent | null> {
    const event = () => this.#kept.find((kept) => kept.id > id) ?? null;
    if (event() === null && !this.#closed && !signal.aborted) await this.#change(clock, signal);
    return signal.aborted ? null : event();
  }

  /** No event follows; kept events can still be fetched. */
  close(): void {
    this.#closed = true;
    this.#wake();
  }

  /** Resolves when an event is added, none follows, `signal` fires or the poll is over. */
  #change(clock: Clock, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
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

  #wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }
}
