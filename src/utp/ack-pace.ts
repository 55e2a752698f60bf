/** How many packets one acknowledgement covers. Each costs both ends as much processor time as a packet of data. */

/** Usually every second packet is acknowledged at once, as TCP does (RFC 5681). */
const FEW = 2;
/**
 * In a dense flow without gaps it is every eighth. That is less than the 10 ms after which a single packet is acknowledged, so
 * that the other end waits no longer than before when the flow thins.
 */
const MANY = 8;
/** A flow is dense when this many packets have come in as many milliseconds, 1.2 MB/s. */
const DENSE_PACKETS = 64;

/** Counts the packets of one connection. Times are monotonic ms. */
export class AckPace {
  #every = FEW;
  #unacknowledged = 0;
  #count = 0;
  #sinceMs = Infinity;

  /** A packet arrived in its order; true when it is time for an acknowledgement. */
  arrived(nowMs: number): boolean {
    if (++this.#count === DENSE_PACKETS) {
      this.#every = nowMs - this.#sinceMs <= DENSE_PACKETS ? MANY : FEW;
      this.#count = 0;
    }
    if (this.#count === 0 || this.#sinceMs === Infinity) this.#sinceMs = nowMs;
    return ++this.#unacknowledged >= this.#every;
  }

  /** A packet is missing, or came twice: the other end needs to know at once what arrives. */
  disturbed(): void {
    this.#every = FEW;
    this.#count = 0;
    this.#sinceMs = Infinity;
  }

  /** An acknowledgement left: every packet of ours is one. */
  sent(): void {
    this.#unacknowledged = 0;
  }
}
