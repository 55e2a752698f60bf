/** How long the way to a neighbour and back takes at least. All connections to it take the same way. */

/** The least round trip is taken over this time and measured again in each half of it, ms: routes change. */
const BASE_MS = 120_000;
/**
 * PINGs on the idle line of which the least time counts. A program that has just started keeps one waiting for tens of ms:
 * of sixteen real programs that relied on the first time, some took lines of 0.8, 2 and 3 Mbit/s for 3.2, 3.8 and 4.4.
 */
const IDLE_TIMES = 3;
/** No way is taken for shorter because our line seemed slow, ms. */
const LEAST_RTT_MS = 10;

/** A PING of ours that came back. */
export interface Echo {
  readonly sentMs: number;
  /** When it arrived, by the other's clock, modulo 2^32; null when that is not reported. */
  readonly atMs: number | null;
  /**
   * How long it waited for our own line, by what other connections show, ms; null when nothing was under way. A connection
   * that begins while the line is busy would take our queue for a part of the way.
   */
  readonly queuedMs: number | null;
  /** How long our line needs for the payload between it and the PING before it, by our estimate, ms. */
  readonly ownMs: number;
}

/** The least times of the way to one neighbour. */
export class WayTimes {
  /**
   * The least times are a guess: our line was busy when they were measured first, and its queue was deducted. A PING that
   * leaves while nothing is under way replaces them. If a guess that is too short stayed, everything on this connection
   * would seem to wait, and the line would be taken for slower and slower while only this connection carries something.
   */
  get isGuessed(): boolean {
    return this.#idleTimes === 0;
  }

  /** PINGs on the idle line have been answered often enough for the least times to be exact. */
  get isSettled(): boolean {
    return this.#idleTimes >= IDLE_TIMES;
  }

  #baseFromMs = 0;
  /** Times measured while nothing of ours was under way. Two more are wanted in each half of the period. */
  #idleTimes = 0;
  readonly #trips = new LeastTime();
  /** Times of the way there, by two clocks that differ by anything. */
  readonly #ways = new LeastTime();

  /** Least round trip of the last minutes, ms; null before the first. */
  get rttMs(): number | null {
    return this.#trips.least;
  }

  /**
   * A PING came back. Returns how long it waited, ms. Without `atMs` that is what the round trip exceeds the least one by,
   * be it for the other's line.
   */
  measured({ sentMs, atMs, queuedMs, ownMs }: Echo, nowMs: number): number {
    const tripMs = nowMs - sentMs;
    const isFirst = this.rttMs === null;
    const busyMs = queuedMs === null ? null : ownMs;
    if (busyMs === null && this.#idleTimes++ === 0) this.#forget();
    // It can't have waited for longer than it was on its way.
    const deductedMs = isFirst ? Math.min(queuedMs ?? 0, Math.max(0, tripMs - LEAST_RTT_MS)) : 0;
    this.#renew(nowMs);
    const rttMs = this.#trips.noted(Math.max(LEAST_RTT_MS, tripMs - deductedMs), busyMs);
    if (atMs === null) return tripMs - rttMs;
    const wayMs = (atMs - Math.floor(sentMs)) | 0;
    return wayMs - this.#ways.noted(wayMs - deductedMs, busyMs);
  }

  #forget(): void {
    this.#trips.forget();
    this.#ways.forget();
  }

  /** Begins another half of the period when it is time. */
  #renew(nowMs: number): void {
    if (nowMs - this.#baseFromMs <= BASE_MS / 2) return;
    this.#baseFromMs = nowMs;
    this.#idleTimes = Math.min(this.#idleTimes, 1);
    this.#trips.turn();
    this.#ways.turn();
  }
}

/**
 * The least of some times. They are measured again in each half of the period, on the idle line when there is a moment for it. A
 * PING behind a block takes longer by the time of that block: if such times became the least, a line that is never idle
 * would seem to have no queue.
 */
class LeastTime {
  #least: number | null = null;
  /** The least ones of this half: of the idle line, and behind blocks without the time that these take. */
  #idle = Infinity;
  #busy = Infinity;

  get least(): number | null {
    return this.#least;
  }

  /** Notes `ms`; returns the least. `busyMs`: the part that a block before the PING took; null on an idle line. */
  noted(ms: number, busyMs: number | null): number {
    if (busyMs === null) this.#idle = Math.min(this.#idle, ms);
    else this.#busy = Math.min(this.#busy, ms - busyMs);
    return this.#least = Math.min(this.#least ?? Infinity, ms);
  }

  /** Starts again. */
  forget(): void {
    this.#least = null;
    this.#idle = this.#busy = Infinity;
  }

  /** Another half begins. */
  turn(): void {
    if (this.#idle < Infinity) this.#least = this.#idle;
    // The time of a block is known as well as the line, so this may be too short, but clocks drift and routes change.
    else if (this.#busy < Infinity) this.#least = Math.max(this.#least ?? -Infinity, this.#busy);
    this.#idle = this.#busy = Infinity;
  }
}
