/** A list of devices in reach, searched for only when somebody asks for it. */
import type { Clock } from "../ports.ts";

/** A list older than this is renewed in the background, ms: a caller that controls a player must not wait for a search. */
const RENEW_MS = 25_000;
/** A list of this age is no longer returned, ms, so that devices that vanish leave it within a minute. */
const STALE_MS = 45_000;

/** Remembers the result of the newest search. */
export class RenewedList<T> {
  readonly #clock: Clock;
  readonly #search: () => Promise<readonly T[] | null>;
  #found: readonly T[] = [];
  #searchedAtMs = -Infinity;
  /** The search that callers of `list` have to wait for. */
  #awaited: Promise<void> = Promise.resolve();

  /** `search` must never reject; if it resolves with null, the list stays as it was. */
  constructor(clock: Clock, search: () => Promise<readonly T[] | null>) {
    this.#clock = clock;
    this.#search = search;
  }

  /** What was in reach at a search within the last 45 s. */
  async list(): Promise<readonly T[]> {
    const nowMs = this.#clock.monotonic();
    const ageMs = nowMs - this.#searchedAtMs;
    if (ageMs >= RENEW_MS) {
      this.#searchedAtMs = nowMs;
      const over = this.#search().then((found) => void (this.#found = found ?? this.#found));
      if (ageMs >= STALE_MS) this.#awaited = over;
    }
    await this.#awaited;
    return this.#found;
  }
}
