/** Pieces that a peer rejected, and when it may be asked for them again. */

/** Pieces remembered per peer; the oldest is forgotten. */
const MAX_AVOIDED = 256;

/** The pieces of one peer. */
export class AvoidedPieces {
  readonly #untilMs = new Map<number, number>();

  /** It isn't asked for the piece until then. */
  add(piece: number, untilMs: number): void {
    if (this.#untilMs.size >= MAX_AVOIDED) this.#untilMs.delete(this.#untilMs.keys().next().value!);
    this.#untilMs.set(piece, untilMs);
  }

  /** It has the piece again: its earlier rejects no longer count. */
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
