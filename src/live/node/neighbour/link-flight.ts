/** The payload under way on one connection, and its round trip: its part of a `Flight`. */

import { WANTS_TIME } from "../../messages.ts";
import { type Echo, WayTimes } from "./way-times.ts";

/** The nonce of a PING of ours. */
export function newNonce(random: () => number): bigint {
  return BigInt(Math.floor(random() * 2 ** 52)) | WANTS_TIME;
}

/** A PING without a response. */
export interface UnansweredPing {
  readonly nonce: bigint;
  /** Payload between the PING before it and this one. */
  bytes: number;
  /** As in `Arrival`. */
  readonly aheadBytes: number;
  readonly sentMs: number;
}

/** The payload under way on one connection. */
export class LinkFlight {
  readonly marks: UnansweredPing[] = [];
  unmarkedBytes = 0;
  /** Payload handed over and not known to have arrived. */
  unackedBytes = 0;
  /** Monotonic ms at which payload arrived last, or began to be under way. */
  movedMs = -Infinity;
  markedMs = -Infinity;
  /**
   * Payload that this connection may have under way, bytes: less while blocks on it wait longer than on others, because it
   * carries less than it is given. What it can't carry would wait in its socket, where it can be neither shed nor sent by another.
   */
  mostBytes = Infinity;
  /** The connection is set aside: nothing arrives on it, so its payload does not count. */
  isAside = false;
  /** Those of the neighbour: a second connection to it takes the same way as the first. */
  readonly #times: WayTimes;

  constructor(times: WayTimes = new WayTimes()) {
    this.#times = times;
  }

  /** What another connection to the same neighbour is made with. */
  get times(): WayTimes {
    return this.#times;
  }

  /** As in `WayTimes`. */
  get isGuessed(): boolean {
    return this.#times.isGuessed;
  }

  /** As in `WayTimes`. */
  get isSettled(): boolean {
    return this.#times.isSettled;
  }

  /** Least round trip of the last minutes, ms; null before the first. */
  get rttMs(): number | null {
    return this.#times.rttMs;
  }

  /** A PING came back. Returns how long it waited, ms: see `WayTimes`. */
  measured(echo: Echo, nowMs: number): number {
    return this.#times.measured(echo, nowMs);
  }
}
