/** Allows a rate per second, and a burst of one second. */
export class RateAllowance {
  readonly #perS: number;
  #tokens: number;
  #atMs: number;

  /** `perS` > 0; `nowMs` is monotonic. */
  constructor(perS: number, nowMs: number) {
    this.#perS = perS;
    this.#tokens = perS;
    this.#atMs = nowMs;
  }

  /** Takes one token; false when there is none. `perS`: the current rate, if it has changed. */
  take(nowMs: number, perS: number = this.#perS): boolean {
    this.#tokens = Math.min(perS, this.#tokens + (Math.max(0, nowMs - this.#atMs) / 1000) * perS);
    this.#atMs = nowMs;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}
