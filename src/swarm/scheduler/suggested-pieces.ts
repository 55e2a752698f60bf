/** Pieces that a peer could send at little cost, as it says (BEP 6). */

/** Pieces remembered: more are no advice. Of many the newest count. */
const MAX_SUGGESTED = 128;

/** The suggestions of one peer, oldest first. */
export class SuggestedPieces {
  readonly #pieces = new Set<number>();

  add(piece: number): void {
    if (this.#pieces.size >= MAX_SUGGESTED) this.#pieces.delete(this.#pieces.values().next().value!);
    this.#pieces.add(piece);
  }

  /** The first that may be fetched, -1 when there is none. Forgets those that are no longer `isMissing`. */
  first(isMissing: (piece: number) => boolean, may: (piece: number) => boolean): number {
    for (const piece of this.#pieces) {
      if (!isMissing(piece)) this.#pieces.delete(piece);
      else if (may(piece)) return piece;
    }
    return -1;
  }
}
