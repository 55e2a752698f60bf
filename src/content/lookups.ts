/** Lookups that several callers share, and that go on when a caller's patience ends before them. */
import { deadline, withSignal } from "../bytes/deadline.ts";
import { abortError, hasCode, type MillraceError } from "../errors.ts";
import type { Clock } from "../ports.ts";

/** Lookups that go on without a caller; when there are more, the oldest ends. Each may hold a swarm that is idle otherwise. */
const MAX_UNWATCHED = 16;

interface Lookup<T> {
  readonly result: Promise<T>;
  readonly ending: AbortController;
  watchers: number;
}

/** What all lookups have in common. */
export interface LookupOptions {
  readonly clock: Clock;
  /** For one lookup, from its beginning. */
  readonly timeoutMs: number;
  /** The reason of a lookup that takes longer. */
  readonly late: () => MillraceError;
  /** Fires when the engine ends. */
  readonly closing: AbortSignal;
}

/**
 * Shares lookups by key. A caller whose signal fires with the code `timeout` only stops waiting: the next one finds the
 * lookup under way, or what it found. Any other reason ends the lookup unless somebody else waits for it.
 */
export class Lookups<T> {
  readonly #options: LookupOptions;
  /** The one that lost its last caller longest ago is first among those that have none. */
  readonly #running = new Map<string, Lookup<T>>();

  constructor(options: LookupOptions) {
    this.#options = options;
  }

  /** The result of the lookup that runs under `key`, or of `look`. Rejects as `look`, or with the reason of `signal`. */
  async get(key: string, look: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    if (signal.aborted) throw abortError(signal);
    const lookup = this.#running.get(key) ?? this.#begin(key, look);
    lookup.watchers++;
    try {
      return await withSignal(lookup.result, signal);
    } finally {
      lookup.watchers--;
      if (lookup.watchers === 0 && signal.aborted) this.#leave(key, lookup, abortError(signal));
    }
  }

  #begin(key: string, look: (signal: AbortSignal) => Promise<T>): Lookup<T> {
    const { clock, timeoutMs, late, closing } = this.#options;
    const ending = new AbortController();
    const limit = deadline(clock, timeoutMs, AbortSignal.any([ending.signal, closing]), late);
    const result = look(limit.signal).finally(() => {
      limit.cancel();
      if (this.#running.get(key) === lookup) this.#running.delete(key);
    });
    // Nobody may be waiting for it any more.
    result.catch(() => {});
    const lookup: Lookup<T> = { result, ending, watchers: 0 };
    this.#running.set(key, lookup);
    return lookup;
  }

  #leave(key: string, lookup: Lookup<T>, reason: Error): void {
    if (this.#running.get(key) !== lookup) return;
    this.#running.delete(key);
    if (!hasCode(reason, "timeout")) return lookup.ending.abort(reason);
    this.#running.set(key, lookup);
    const unwatched = [...this.#running].filter(([, { watchers }]) => watchers === 0);
    if (unwatched.length <= MAX_UNWATCHED) return;
    const [oldest, { ending }] = unwatched[0]!;
    this.#running.delete(oldest);
    ending.abort(reason);
  }
}
