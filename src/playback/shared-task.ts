/** One piece of work shared by all callers that ask for it while it runs. */
import { abortError } from "../errors.ts";

/**
 * Runs `work` once for any number of waiters. A waiter that gives up leaves the others alone; when the last one is
 * gone the work's own signal fires.
 */
export class SharedTask<T> {
  #waiters = 0;
  #settled = false;
  readonly #controller = new AbortController();
  readonly #promise: Promise<T>;

  constructor(work: (signal: AbortSignal) => Promise<T>) {
    this.#promise = work(this.#controller.signal).finally(() => this.#settled = true);
    this.#promise.catch(() => {});
  }

  /** True once every waiter gave up before the end: the result is an abort, not to be shared further. */
  get abandoned(): boolean {
    return this.#controller.signal.aborted;
  }

  /** The result; rejects with the signal's reason when `signal` fires first. */
  wait(signal: AbortSignal): Promise<T> {
    if (signal.aborted) return Promise.reject(abortError(signal));
    this.#waiters++;
    return new Promise<T>((resolve, reject) => {
      const leave = () => {
        signal.removeEventListener("abort", abort);
        if (--this.#waiters === 0 && !this.#settled) this.#controller.abort();
      };
      const abort = () => {
        leave();
        reject(abortError(signal));
      };
      signal.addEventListener("abort", abort, { once: true });
      this.#promise.then((value) => {
        if (!signal.aborted) leave();
        resolve(value);
      }, (error) => {
        if (!signal.aborted) leave();
        reject(error);
      });
    });
  }
}
