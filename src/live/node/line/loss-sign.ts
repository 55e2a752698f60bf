/**
 * Detects lost packets by late arrivals. A lost packet holds back one connection now and then, and in time that happens
 * to most of them. Neighbours that vanish, are busy themselves or just came make few connections late, however late those are.
 */

/** Weight of one arrival in the share of its connection's arrivals that were late. */
const LATE_WEIGHT = 0.05;
/** Arrivals after which the share of a connection means anything. */
const LEAST_ARRIVALS = 8;
/** Fewer connections have no middle one. */
const LEAST_LINKS = 2;
/**
 * The middle connection of lines that lose 0.5 to 2 % had 5 to 40 % late. Without loss it was below 0.1 %, and once 3.7 %, in
 * simulated swarms that were calm, behind routers, or lost a third of their members at once.
 */
const LOSSY_SHARE = 0.04;
/** A connection on which nothing has arrived for this long says nothing, ms. With it the bound on neighbours bounds the table. */
const FORGET_MS = 10_000;

/** What arrived on one connection. */
interface Seen {
  lateShare: number;
  arrivals: number;
  atMs: number;
}

/** The arrivals of one member's payload, by connection. */
export class LossSign {
  readonly #links = new Map<object, Seen>();
  #isLossy = false;

  /** True while arrivals show that packets are lost. */
  get isLossy(): boolean {
    return this.#isLossy;
  }

  /** Something arrived on the connection `link`. `isLate`: it waited for longer than our line explains. */
  noted(link: object, isLate: boolean, nowMs: number): void {
    const seen = this.#links.get(link) ?? { lateShare: 0, arrivals: 0, atMs: nowMs };
    this.#links.set(link, seen);
    seen.arrivals++;
    seen.atMs = nowMs;
    seen.lateShare += (Number(isLate) - seen.lateShare) * Math.max(LATE_WEIGHT, 1 / seen.arrivals);
    for (const [other, { atMs }] of this.#links) if (nowMs - atMs > FORGET_MS) this.#links.delete(other);
    const shares = [...this.#links.values()].filter(({ arrivals }) => arrivals >= LEAST_ARRIVALS)
      .map(({ lateShare }) => lateShare).sort((a, b) => a - b);
    this.#isLossy = shares.length >= LEAST_LINKS && shares[(shares.length - 1) >> 1]! > LOSSY_SHARE;
  }
}
