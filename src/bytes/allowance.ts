/** Rate limits: so many units per second, with a limited amount saved up. */

/** One allowance. Times are monotonic ms. */
export class Allowance {
  #perSecond: number;
  #most: number;
  #left: number;
  #filledMs: number;

  /** Starts with `most` units saved up. */
  constructor(perSecond: number, most: number, nowMs: number) {
    this.#perSecond = perSecond;
    this.#most = most;
    this.#left = most;
    this.#filledMs = nowMs;
  }

  /** Raises the amount that can be saved up by `units`, and adds them at once. */
  widen(units: number): void {
    this.#most += units;
    this.#left += units;
  }

  /** Adds `units` for what was asked for, without raising the amount that can be saved up. */
  grant(units: number): void {
    this.#left += units;
  }

  /** From `nowMs` on there are so many units per second, of which `most` can be saved up. */
  setRate(perSecond: number, most: number, nowMs: number): void {
    if (perSecond === this.#perSecond && most === this.#most) return;
    this.#fill(nowMs);
    this.#perSecond = perSecond;
    this.#most = most;
    this.#left = Math.min(this.#left, most);
  }

  /**
   * Takes `units`; false, taking nothing, when there are too few. A function `nowMs` is called only then, which saves a look at
   * the clock: a burst after a pause may then be twice what can be saved up.
   */
  take(units: number, nowMs: number | (() => number)): boolean {
    if (typeof nowMs === "number") this.#fill(nowMs);
    else if (this.#left < units) this.#fill(nowMs());
    if (this.#left < units) return false;
    this.#left -= units;
    return true;
  }

  #fill(nowMs: number): void {
    this.#left = Math.min(this.#most, this.#left + Math.max(0, nowMs - this.#filledMs) * this.#perSecond / 1000);
    this.#filledMs = nowMs;
  }
}

/** An allowance for each of many strangers, who are forgotten eventually. */
export class Allowances {
  readonly #perSecond: number;
  readonly #most: number;
  readonly #limit: number;
  readonly #nowMs: () => number;
  readonly #byKey = new Map<string, Allowance>();

  /** `limit`: strangers remembered; the one served longest ago is forgotten first. */
  constructor(options: { perSecond: number; most: number; limit: number; nowMs: () => number }) {
    this.#perSecond = options.perSecond;
    this.#most = options.most;
    this.#limit = options.limit;
    this.#nowMs = options.nowMs;
  }

  /** Takes one unit for `key`; false when it has none. */
  take(key: string): boolean {
    const allowance = this.#byKey.get(key) ?? new Allowance(this.#perSecond, this.#most, this.#nowMs());
    this.#byKey.delete(key);
    if (this.#byKey.size >= this.#limit) this.#byKey.delete(this.#byKey.keys().next().value!);
    this.#byKey.set(key, allowance);
    return allowance.take(1, this.#nowMs);
  }
}
