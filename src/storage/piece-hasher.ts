/** SHA-1 of pieces, off the main thread (crypto.subtle), a few at once. */

/** Default number of concurrent hashes: more than the cores of a small machine gains nothing and copies more. */
const DEFAULT_CONCURRENCY = 4;

/** SHA-1, 20 bytes. `data` must not change before it resolves. */
export async function hashPiece(data: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest("SHA-1", data as Uint8Array<ArrayBuffer>));
}

/** Queues hashes so that only a few are under way, in order of arrival. */
export class PieceHasher {
  readonly #concurrency: number;
  #active = 0;
  readonly #waiting: (() => void)[] = [];

  /** At most `concurrency` (≥ 1, default 4) at once. */
  constructor(concurrency: number = DEFAULT_CONCURRENCY) {
    this.#concurrency = concurrency;
  }

  /** As `hashPiece`, in turn. */
  async hash(data: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
    if (this.#active >= this.#concurrency) await new Promise<void>((go) => this.#waiting.push(go));
    else this.#active++;
    try {
      return await hashPiece(data);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#active--;
      else next();
    }
  }

  /** Returns whether `data` hashes to the 20 bytes of piece `piece` in `pieceHashes`. */
  async matches(data: Uint8Array, pieceHashes: Uint8Array, piece: number): Promise<boolean> {
    const hash = await this.hash(data);
    return hash.every((byte, i) => byte === pieceHashes[20 * piece + i]);
  }
}
