/** Readers waiting for pieces. */
import { abortError, type MillraceError } from "../../errors.ts";

/** Promises by piece number. */
export class PieceWaits {
  readonly #waiting = new Map<number, Set<{ wake: () => void; fail: (error: MillraceError) => void }>>();

  /** Resolves when the piece is woken; rejects with the signal's reason or the error given to `failAll`. */
  wait(piece: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(abortError(signal));
    return new Promise<void>((resolve, reject) => {
      const settle = () => {
        signal.removeEventListener("abort", aborted);
        set.delete(entry);
        if (set.size === 0) this.#waiting.delete(piece);
      };
      const entry = {
        wake: () => {
          settle();
          resolve();
        },
        fail: (error: MillraceError) => {
          settle();
          reject(error);
        },
      };
      const aborted = () => entry.fail(abortError(signal));
      const set = this.#waiting.get(piece) ?? new Set();
      this.#waiting.set(piece, set);
      set.add(entry);
      signal.addEventListener("abort", aborted, { once: true });
    });
  }

  wake(piece: number): void {
    const set = this.#waiting.get(piece);
    if (set !== undefined) { for (const entry of [...set]) entry.wake(); }
  }

  failAll(error: MillraceError): void {
    for (const set of [...this.#waiting.values()]) for (const entry of [...set]) entry.fail(error);
  }
}
