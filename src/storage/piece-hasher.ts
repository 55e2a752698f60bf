/** Checks pieces against their hashes, off the main thread where that can be (crypto.subtle), a few at once. */
import { equalBytes } from "../bytes/hex.ts";
import { hashAt, pieceRoot } from "../bytes/merkle.ts";
import type { Digest } from "../ports.ts";
import type { TorrentLayout } from "./piece-store.ts";

/** Default number of concurrent hashes: more than the cores of a small machine gains nothing and copies more. */
const DEFAULT_CONCURRENCY = 4;

/** SHA-1, 20 bytes. `data` must not change before it resolves. */
export async function hashPiece(data: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest("SHA-1", data as Uint8Array<ArrayBuffer>));
}

const sha256: Digest = async (data) => {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", data as Uint8Array<ArrayBuffer>));
};

/** Queues hashes so that only a few are under way, in order of arrival. */
export class PieceHasher {
  readonly #concurrency: number;
  readonly #sha256: Digest;
  #active = 0;
  readonly #waiting: (() => void)[] = [];

  /** At most `concurrency` (≥ 1, default 4) at once. `digest`: SHA-256 of blocks of 16 KiB. */
  constructor(concurrency: number = DEFAULT_CONCURRENCY, digest: Digest = sha256) {
    this.#concurrency = concurrency;
    this.#sha256 = digest;
  }

  /** As `hashPiece`, in turn. */
  async hash(data: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
    return await this.#inTurn(() => hashPiece(data));
  }

  /** Whether `data` is the piece. */
  async matches(
    data: Uint8Array,
    { pieceHashes, pieceLengthBytes, shortPieces }: Pick<
      TorrentLayout,
      "pieceHashes" | "pieceLengthBytes" | "shortPieces"
    >,
    piece: number,
  ): Promise<boolean> {
    if (shortPieces === undefined) {
      return equalBytes(await this.hash(data), pieceHashes.subarray(20 * piece, 20 * piece + 20));
    }
    const root = await this.#inTurn(() => pieceRoot(data, pieceLengthBytes, this.#sha256));
    return equalBytes(root, hashAt(pieceHashes, piece));
  }

  async #inTurn<T>(hash: () => Promise<T>): Promise<T> {
    if (this.#active >= this.#concurrency) await new Promise<void>((go) => this.#waiting.push(go));
    else this.#active++;
    try {
      return await hash();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#active--;
      else next();
    }
  }
}
