/** Pieces that a peer rejected, and when it may be asked for them again. */

/** Pieces remembered per peer; the oldest is forgotten. */
const MAX_AVOIDED = 256;

/** The first pause, ms: a peer may reject only what its queue has no room for. */
const FIRST_PAUSE_MS = 100;

/** The pieces of one peer. */
export class AvoidedPieces {
  readonly #untilMs = new Map<number, number>();
  /** The pause at the last reject, 0 once it delivered, and its end. */
  #pauseMs = 0;
  #pausedUntilMs = -Infinity;

  /**
   * Records a rejected block: the peer isn't asked for the piece for 100 ms, twice as long with each further reject, `mostMs` at
   * most. Rejects of requests that stood together count as one.
   */
  add(piece: number, nowMs: number, mostMs: number): void {
    if (this.#pauseMs === 0 || nowMs >= this.#pausedUntilMs) {
      this.#pauseMs = Math.min(mostMs, Math.max(FIRST_PAUSE_MS, 2 * this.#pauseMs));
      this.#pausedUntilMs = nowMs + this.#pauseMs;
    }
    if (this.#untilMs.size >= MAX_AVOIDED) this.#untilMs.delete(this.#untilMs.keys().next().value!);
    this.#untilMs.set(piece, nowMs + this.#pauseMs);
  }

  /** Records a block that came: the peer's next reject is a first one again. */
  delivered(): void {
    this.#pauseMs = 0;
  }

  /** Forgets the rejects of a piece that the peer has again. */
  forgive(piece: number): void {
    this.#untilMs.delete(piece);
  }

  /** Whether it isn't asked for the piece now. */
  has(piece: number, nowMs: number): boolean {
    if (this.#untilMs.size === 0) return false;
    const until = this.#untilMs.get(piece);
    if (until === undefined) return false;
    if (until > nowMs) return true;
    this.#untilMs.delete(piece);
    return false;
  }
}
