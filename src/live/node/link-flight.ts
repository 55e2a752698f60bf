/** The payload under way on one connection, and its round trip: its part of a `Flight`. */

import { WANTS_TIME } from "../messages.ts";

/** The least round trip is taken over this time and measured again in each half of it, ms: routes change. */
const BASE_MS = 120_000;
/**
 * PINGs on the idle line of which the least time counts. A program that has just started keeps one waiting for tens of ms:
 * of sixteen real programs that relied on the first time, some took lines of 0.8, 2 and 3 Mbit/s for 3.2, 3.8 and 4.4.
 */
const IDLE_TIMES = 3;
/** No way is taken for shorter because our line seemed slow, ms. */
const LEAST_RTT_MS = 10;

/** The nonce of a PING of ours. */
export function newNonce(random: () => number): bigint {
  return BigInt(Math.floor(random() * 2 ** 52)) | WANTS_TIME;
}

/** A PING without a response. */
export interface Mark {
  readonly nonce: bigint;
  /** Payload between the PING before it and this one. */
  bytes: number;
  /** As in `Arrival`. */
  readonly aheadBytes: number;
  readonly sentMs: number;
}

/** The payload under way on one connection. */
export class LinkFlight {
  readonly marks: Mark[] = [];
  unmarkedBytes = 0;
  /** Payload handed over and not known to have arrived. */
  unackedBytes = 0;
  /** Monotonic ms at which payload arrived last, or began to be under way. */
  movedMs = -Infinity;
  markedMs = -Infinity;
  /** The connection is set aside: nothing arrives on it, so its payload does not count. */
  isAside = false;
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

  #baseMs: number | null = null;
  #nextBaseMs: number | null = null;
  #baseFromMs = 0;
  /** Times measured while nothing of ours was under way. */
  #idleTimes = 0;
  /** Times of the way there, by two clocks that differ by anything. */
  readonly #ways = new LeastTime();

  /** Least round trip of the last minutes, ms; null before the first. */
  get rttMs(): number | null {
    return this.#baseMs;
  }

  /**
   * A PING sent at `sentMs` came back. `atMs`: when it arrived, by the other's clock, modulo 2^32; null when that is not told.
   * `queuedMs`: how long it waited for our own line, as far as other connections show; null when nothing was under way. One
   * that begins while the line is busy would take our queue for a part of the way. Returns how long it waited. Without
   * `atMs` that is what the round trip exceeds the least one by, be it for the other's line.
   */
  measured(sentMs: number, atMs: number | null, queuedMs: number | null, nowMs: number): number {
    const tripMs = nowMs - sentMs;
    const isFirst = this.#baseMs === null;
    if (queuedMs === null && this.#idleTimes++ === 0) this.#forget();
    // It can't have waited for longer than it was on its way.
    const deductedMs = isFirst ? Math.min(queuedMs ?? 0, Math.max(0, tripMs - LEAST_RTT_MS)) : 0;
    this.#renew(Math.max(LEAST_RTT_MS, tripMs - deductedMs), nowMs);
    if (atMs === null) return tripMs - this.#baseMs!;
    const wayMs = (atMs - Math.floor(sentMs)) | 0;
    return wayMs - this.#ways.noted(wayMs - deductedMs);
  }

  #forget(): void {
    this.#baseMs = this.#nextBaseMs = null;
    this.#ways.forget();
  }

  #renew(rttMs: number, nowMs: number): void {
    if (nowMs - this.#baseFromMs > BASE_MS / 2) {
      this.#baseMs = this.#nextBaseMs;
      this.#nextBaseMs = null;
      this.#baseFromMs = nowMs;
      this.#ways.turn();
    }
    this.#nextBaseMs = Math.min(this.#nextBaseMs ?? Infinity, rttMs);
    this.#baseMs = Math.min(this.#baseMs ?? Infinity, rttMs);
  }
}

/** The least of some times, of this half of the period and of the one before it. */
class LeastTime {
  #before: number | null = null;
  #now: number | null = null;

  get least(): number | null {
    if (this.#before === null || this.#now === null) return this.#before ?? this.#now;
    return Math.min(this.#before, this.#now);
  }

  /** Notes `ms`; returns the least. */
  noted(ms: number): number {
    this.#now = Math.min(this.#now ?? Infinity, ms);
    return this.least!;
  }

  /** Starts again. */
  forget(): void {
    this.#before = this.#now = null;
  }

  /** Another half begins. */
  turn(): void {
    this.#before = this.#now;
    this.#now = null;
  }
}
