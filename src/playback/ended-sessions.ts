/**
 * What can still be fetched about sessions for a while after their end: an event reports the last thing that happened.
 */
import type { Clock } from "../ports.ts";
import type { EventLog } from "./events.ts";

/**
 * How long events can be fetched after the end, ms: time for two long polls, because the listener may just have
 * received another event.
 */
const KEPT_MS = 30_000;
/** Sessions kept at once: as many as may run. Each holds 64 small events at most. */
const MAX_KEPT = 500;

/** The data kept of a session. */
export interface EndedSession {
  readonly id: string;
  readonly infohashHex: string;
  /** As in `SessionIdentity`. */
  readonly owner: string | null;
  readonly events: EventLog;
}

/** The sessions that ended within the last 30 s. Older ones are dropped when the next one ends. */
export class EndedSessions {
  readonly #clock: Clock;
  /** Oldest first. */
  readonly #byId = new Map<string, { readonly session: EndedSession; readonly untilMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Keeps a session that just ended. */
  keep({ id, infohashHex, owner, events }: EndedSession): void {
    const nowMs = this.#clock.monotonic();
    this.#byId.delete(id);
    this.#byId.set(id, { session: { id, infohashHex, owner, events }, untilMs: nowMs + KEPT_MS });
    for (const [oldest, { untilMs }] of this.#byId) {
      if (untilMs > nowMs && this.#byId.size <= MAX_KEPT) return;
      this.#byId.delete(oldest);
    }
  }

  /** The session of a URL; the infohash must fit the id. */
  find(infohashHex: string, id: string): EndedSession | null {
    const found = this.#byId.get(id);
    if (found === undefined || found.untilMs <= this.#clock.monotonic()) return null;
    return found.session.infohashHex === infohashHex ? found.session : null;
  }
}
