/** The pieces that one peer has, as its messages say. */
import type { ReadonlyNumbers } from "./active-piece.ts";

/** What a peer has. `Roster` alone changes it: it keeps the counts over all peers in step. */
export class Holdings {
  #isSeed = false;
  #bits: Uint8Array | null = null;
  #usefulCount = 0;

  /** The peer has all pieces. */
  get isSeed(): boolean {
    return this.#isSeed;
  }

  /** As on the wire; null for seeds and for peers that have nothing. */
  get bits(): ReadonlyNumbers | null {
    return this.#bits;
  }

  /** Pieces it has and we lack (unused for seeds). */
  get usefulCount(): number {
    return this.#usefulCount;
  }

  /** Whether it has the piece. */
  has(piece: number): boolean {
    return this.#isSeed || (this.#bits !== null && (this.#bits[piece >> 3]! & (0x80 >> (piece & 7))) !== 0);
  }

  /** The peer has one more of `pieceCount` pieces. */
  add(piece: number, pieceCount: number): void {
    this.#bits ??= new Uint8Array((pieceCount + 7) >> 3);
    this.#bits[piece >> 3]! |= 0x80 >> (piece & 7);
  }

  /** The peer has one piece less; not for seeds. */
  remove(piece: number): void {
    if (this.#bits !== null) this.#bits[piece >> 3]! &= ~(0x80 >> (piece & 7));
  }

  /** Replaces what it has, with nothing counted as useful yet; `bits` are kept. */
  replace(bits: Uint8Array | "all" | null): void {
    this.#isSeed = bits === "all";
    this.#bits = bits === "all" ? null : bits;
    this.#usefulCount = 0;
  }

  /** So many more of its pieces, or fewer, are lacking here. */
  countUseful(change: 1 | -1): void {
    this.#usefulCount += change;
  }
}
