/** Bounds the blocks and headers that wait to be verified, whatever peers send. */
import type { PieceHeader } from "../header.ts";
import type { LiveVerifier } from "../signer.ts";

/** Blocks under verification at which reading stops, 16 KiB each: 1 MiB, some milliseconds of hashing. */
const MAX_PENDING = 64;

/** Stops the reading from peers while a verifier has enough to do. */
export class BoundedVerifier implements LiveVerifier {
  readonly #verifier: LiveVerifier;
  readonly #congested: (value: boolean) => void;
  #pending = 0;
  #isFull = false;

  /** `congested`: stop (or resume) reading from peers. */
  constructor(verifier: LiveVerifier, congested: (value: boolean) => void) {
    this.#verifier = verifier;
    this.#congested = congested;
  }

  header(header: PieceHeader, done: (genuine: boolean) => void): void {
    this.#verifier.header(header, this.#counted(done));
  }

  block(data: Uint8Array, hash: Uint8Array, done: (genuine: boolean) => void): void {
    this.#verifier.block(data, hash, this.#counted(done));
  }

  #counted(done: (genuine: boolean) => void): (genuine: boolean) => void {
    this.#pending++;
    this.#update();
    return (genuine) => {
      this.#pending--;
      this.#update();
      done(genuine);
    };
  }

  #update(): void {
    const isFull = this.#isFull ? this.#pending > MAX_PENDING / 2 : this.#pending >= MAX_PENDING;
    if (isFull === this.#isFull) return;
    this.#isFull = isFull;
    this.#congested(isFull);
  }
}
