/** The files of a drawn track around the place that is shown: a few segments, loaded as playing comes to them. */

/** Segments loaded ahead of the one that is shown. */
const AHEAD = 1;
/** After a failure, ms. */
const RETRY_MS = 3000;
/** A segment is waited for as long as the engine waits for it, ms. */
const TIMEOUT_MS = 65_000;

/** Segments as `load` has them. */
export class SegmentWindow<T> {
  readonly #startsMs: readonly number[];
  readonly #load: (n: number, onlyHere: boolean, signal: AbortSignal) => Promise<T>;
  readonly #changed: (files: readonly T[]) => void;
  readonly #files = new Map<number, T>();
  readonly #loading = new Map<number, AbortController>();
  #retryMs = 0;

  /** `changed` is called with the segments that are here, in order. */
  constructor(
    startsMs: readonly number[],
    load: (n: number, onlyHere: boolean, signal: AbortSignal) => Promise<T>,
    changed: (files: readonly T[]) => void,
  ) {
    this.#startsMs = startsMs;
    this.#load = load;
    this.#changed = changed;
  }

  /** What is shown is at `timeS` now. */
  at(timeS: number): void {
    const n = this.#segmentAt(timeS * 1000);
    if (n < 0) return;
    const wanted = [n - 1, n, n + AHEAD].filter((one) => one >= 0 && one < this.#startsMs.length);
    let isChanged = false;
    for (const old of [...this.#files.keys()]) {
      if (!wanted.includes(old)) isChanged = this.#files.delete(old) || isChanged;
    }
    for (const [old, ending] of this.#loading) if (!wanted.includes(old)) ending.abort();
    if (isChanged) this.#tell();
    if (performance.now() < this.#retryMs) return;
    // What began before is not fetched for this: the pictures don't need it.
    for (const one of wanted) if (!this.#files.has(one) && !this.#loading.has(one)) void this.#fetch(one, one < n);
  }

  /** Ends what is under way. */
  close(): void {
    for (const ending of this.#loading.values()) ending.abort();
    this.#files.clear();
  }

  async #fetch(n: number, onlyHere: boolean): Promise<void> {
    const ending = new AbortController();
    this.#loading.set(n, ending);
    const timer = setTimeout(() => ending.abort(), TIMEOUT_MS);
    try {
      const file = await this.#load(n, onlyHere, ending.signal);
      if (ending.signal.aborted) return;
      this.#files.set(n, file);
      this.#tell();
    } catch {
      if (!ending.signal.aborted) this.#retryMs = performance.now() + RETRY_MS;
    } finally {
      clearTimeout(timer);
      this.#loading.delete(n);
    }
  }

  #tell(): void {
    this.#changed([...this.#files].sort(([a], [b]) => a - b).map(([, file]) => file));
  }

  #segmentAt(ms: number): number {
    let [low, high] = [0, this.#startsMs.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#startsMs[middle]! <= ms) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}
