/**
 * How much may be under way, and how fast it leaves. This is TCP's way (RFC 5681, with the factor of CUBIC, RFC 9438), paced.
 * Connections that yield give way by delay as well, as uTP's LEDBAT does: `YieldDelay`. Live video can't yield to every other
 * flow. A member already paces all its links together by the delay of its up-link; a second control by delay would give way to
 * the member's own TCP connections.
 */
import { YieldDelay } from "./yield-delay.ts";

/** Payload of one packet, bytes: with uTP's, UDP's and IPv6's headers it fits IPv6's least MTU of 1280. */
export const SEGMENT_BYTES = 1_200;

/** Segments that may be under way at first (RFC 6928). */
const INITIAL_SEGMENTS = 10;
/**
 * Least and most bytes under way. The most carries 25 Mbit/s over a round trip of 160 ms, and is also what one end may
 * hold in memory.
 */
const LEAST_WINDOW_BYTES = 2 * SEGMENT_BYTES;
const MOST_WINDOW_BYTES = 400 * SEGMENT_BYTES;
/** Part of the window that remains after a loss (RFC 9438 section 4.6). */
const AFTER_LOSS = 0.7;
/** Most of what arrives that a yielding sender does not send again: half of its window per round trip (draft-irtf-iccrg-ledbat-plus-plus). */
const MOST_GIVEN_WAY = -1 / 2;
/** How much faster than one window per round trip packets leave: while it doubles each round trip, and afterwards. */
const PACE_AT_START = 2;
const PACE = 1.25;

/** Bounds of the time after which packets are sent again, ms. RFC 6298 has a second as the least; kernels have 200 ms. */
const LEAST_TIMEOUT_MS = 200;
const MOST_TIMEOUT_MS = 8_000;
const FIRST_TIMEOUT_MS = 1_000;

/** Doubling stops when the least of this many round trips is longer than the shortest by a given part (RFC 9406). */
const SAMPLES = 8;
const LEAST_RISE_MS = 8;
const MOST_RISE_MS = 32;

/** The sender's view of one path. Times are monotonic ms. */
export class Congestion {
  /** Bytes that may be under way. */
  windowBytes: number = INITIAL_SEGMENTS * SEGMENT_BYTES;
  #thresholdBytes = Infinity;
  #smoothedMs: number | null = null;
  #variationMs = 0;
  #shortestMs = Infinity;
  #roundLeastMs = Infinity;
  #samples = 0;
  #backOff = 1;
  readonly #delay: YieldDelay | null;

  /** `yields`: to other traffic of the path, as soon as that makes datagrams wait. */
  constructor(yields = false) {
    this.#delay = yields ? new YieldDelay() : null;
  }

  /** Smoothed round trip, ms; null before the first sample. */
  get roundTripMs(): number | null {
    return this.#smoothedMs;
  }

  /** All data under way counts as lost after this long without a sign of arrival, ms. */
  get timeoutMs(): number {
    const base = this.#smoothedMs === null ? FIRST_TIMEOUT_MS : this.#smoothedMs + 4 * this.#variationMs;
    return Math.min(MOST_TIMEOUT_MS, Math.max(LEAST_TIMEOUT_MS, base) * this.#backOff);
  }

  /** Bytes per ms at which packets leave; Infinity before the first round trip is known. */
  get bytesPerMs(): number {
    if (this.#smoothedMs === null) return Infinity;
    const factor = this.windowBytes < this.#thresholdBytes ? PACE_AT_START : PACE;
    return factor * this.windowBytes / Math.max(1, this.#smoothedMs);
  }

  /** A round trip was measured (never of a packet that was sent twice: Karn's rule). */
  measured(roundTripMs: number): void {
    if (this.#smoothedMs === null) {
      this.#smoothedMs = roundTripMs;
      this.#variationMs = roundTripMs / 2;
    } else {
      this.#variationMs += (Math.abs(roundTripMs - this.#smoothedMs) - this.#variationMs) / 4;
      this.#smoothedMs += (roundTripMs - this.#smoothedMs) / 8;
    }
    this.#shortestMs = Math.min(this.#shortestMs, roundTripMs);
    this.#roundLeastMs = Math.min(this.#roundLeastMs, roundTripMs);
    if (++this.#samples < SAMPLES) return;
    const riseMs = Math.min(MOST_RISE_MS, Math.max(LEAST_RISE_MS, this.#shortestMs / 8));
    if (this.#roundLeastMs > this.#shortestMs + riseMs) {
      this.#thresholdBytes = Math.min(this.#thresholdBytes, this.windowBytes);
    }
    this.#samples = 0;
    this.#roundLeastMs = Infinity;
  }

  /** The other end measured `oneWayUs` from our clock to its own, 32 bits, for a packet of ours; `nowMs` by our clock. */
  delayed(oneWayUs: number, nowMs: number): void {
    if (this.#delay?.sample(oneWayUs, nowMs) !== true || this.windowBytes <= LEAST_WINDOW_BYTES) return;
    // The queue of our own packets runs empty, so that the path's own delay shows. Doubling brings the window back.
    this.#thresholdBytes = Math.min(this.#thresholdBytes, Math.max(LEAST_WINDOW_BYTES, this.windowBytes));
    this.windowBytes = LEAST_WINDOW_BYTES;
  }

  /** `bytes` have arrived; `wasFull`: the window was the limit, not the amount of data. */
  arrived(bytes: number, wasFull: boolean): void {
    this.#backOff = 1;
    const room = this.#delay?.room ?? 1;
    // Half of the allowed delay ends the doubling: the rest of what is under way adds to it.
    if (room < 1 / 2) this.#thresholdBytes = Math.min(this.#thresholdBytes, this.windowBytes);
    if (room < 0) {
      this.windowBytes = Math.max(LEAST_WINDOW_BYTES, this.windowBytes + Math.max(MOST_GIVEN_WAY, room) * bytes);
      this.#thresholdBytes = Math.max(LEAST_WINDOW_BYTES, this.windowBytes);
    }
    if (!wasFull || room < 0) return;
    const more = this.windowBytes < this.#thresholdBytes ? bytes : room * SEGMENT_BYTES * bytes / this.windowBytes;
    this.windowBytes = Math.min(MOST_WINDOW_BYTES, this.windowBytes + more);
  }

  /** Packets were lost; call it once per round trip. */
  lost(): void {
    this.windowBytes = this.#thresholdBytes = Math.max(LEAST_WINDOW_BYTES, this.windowBytes * AFTER_LOSS);
  }

  /** Nothing arrived for `timeoutMs`. */
  timedOut(): void {
    if (this.#backOff === 1) this.#thresholdBytes = Math.max(LEAST_WINDOW_BYTES, this.windowBytes * AFTER_LOSS);
    this.windowBytes = LEAST_WINDOW_BYTES;
    this.#backOff = Math.min(64, 2 * this.#backOff);
  }
}
