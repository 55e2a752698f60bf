/** Bounds the blocks and headers that wait to be verified, whatever peers send. */
import type { PieceHeader } from "../header.ts";
import type { LiveVerifier } from "../signer.ts";

/** Blocks under verification at which reading stops, 16 KiB each: 1 MiB, some milliseconds of hashing. */
const MAX_PENDING = 64;

/** A verifier that may still be under construction. */
export class BoundedVerifier implements LiveVerifier {
  readonly #verifier: Promise<LiveVerifier>;
  readonly #congested: (value: boolean) => void;
  #pending = 0;
  #isFull = false;

  /** `congested`: stop (or resume) reading from peers. When `verifier` rejects, nothing is ever found genuine or false. */
  constructor(verifier: Promise<LiveVerifier>, congested: (value: boolean) => void) {
    this.#verifier = verifier;
    this.#congested = congested;
    verifier.catch(() => {});
  }

  header(header: PieceHeader, done: (genuine: boolean) => void): void {
    this.#run((verifier, finished) => verifier.header(header, finished), done);
  }

  block(data: Uint8Array, hash: Uint8Array, done: (genuine: boolean) => void): void {
    this.#run((verifier, finished) => verifier.block(data, hash, finished), done);
  }

  #run(
    check: (verifier: LiveVerifier, finished: (genuine: boolean) => void) => void,
    done: (genuine: boolean) => void,
  ): void {
    this.#pending++;
    this.#update();
    const finished = (genuine: boolean) => {
      this.#pending--;
      this.#update();
      done(genuine);
    };
    this.#verifier.then((verifier) => check(verifier, finished), () => {});
  }

  #update(): void {
    const isFull = this.#isFull ? this.#pending > MAX_PENDING / 2 : this.#pending >= MAX_PENDING;
    if (isFull === this.#isFull) return;
    this.#isFull = isFull;
    this.#congested(isFull);
  }
}
