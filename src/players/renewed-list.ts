/** A list of what is in reach, searched for when somebody asks for it and not otherwise. */
import type { Clock } from "../ports.ts";

/** A list older than this is renewed in the background, ms: a caller that controls a player must not wait for a search. */
const RENEW_MS = 25_000;
/** A list of this age is not given out any more, ms: whatever vanishes leaves it within a minute. */
const STALE_MS = 45_000;

/** Remembers what the newest search found. */
export class RenewedList<T> {
  readonly #clock: Clock;
  readonly #search: () => Promise<readonly T[] | null>;
  #found: readonly T[] = [];
  #searchedAtMs = -Infinity;
  /** The search that whoever asks has to wait for. */
  #awaited: Promise<void> = Promise.resolve();

  /** `search` never rejects; with null the list stays as it was. */
  constructor(clock: Clock, search: () => Promise<readonly T[] | null>) {
    this.#clock = clock;
    this.#search = search;
  }

  /** What is in reach now, as far as a search within the last 45 s can tell. */
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
