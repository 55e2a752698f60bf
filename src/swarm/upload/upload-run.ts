/** A run of adjacent blocks of one piece in memory, ready to be sent. */
import type { PeerLink } from "../../wire/types.ts";
import { PIECE_MESSAGE_BYTES } from "../../wire/piece-messages.ts";
import { BLOCK_BYTES } from "../../wire/types.ts";

/** What a run needs from the link that sends from its memory. */
export type Borrower = Pick<PeerLink, "writtenBytes">;

/**
 * The `piece` messages of a run. Links send from its memory without a copy, and the run knows which of them still do.
 */
export class UploadRun {
  readonly piece: number;
  /** Where its first block stands in the piece, bytes. */
  readonly offset: number;
  /** As `makeMessages` left it; never to be written to while `isLent`. */
  readonly memory: Uint8Array;
  /** How much each link must have written until it no longer needs the memory. */
  readonly #loans = new Map<Borrower, number>();

  constructor(piece: number, offset: number, memory: Uint8Array) {
    this.piece = piece;
    this.offset = offset;
    this.memory = memory;
  }

  /** The messages of `count` blocks from `offset` in the piece on: a view. */
  messages(offset: number, count: number): Uint8Array {
    const first = (offset - this.offset) / BLOCK_BYTES;
    return this.memory.subarray(first * PIECE_MESSAGE_BYTES, (first + count) * PIECE_MESSAGE_BYTES);
  }

  /** `link` sends from this memory until it has written `untilBytes`. */
  lend(link: Borrower, untilBytes: number): void {
    this.#loans.set(link, untilBytes);
  }

  /** Whether `link` still sends from this memory. */
  isLentTo(link: Borrower): boolean {
    const untilBytes = this.#loans.get(link);
    if (untilBytes === undefined) return false;
    if (link.writtenBytes < untilBytes) return true;
    this.#loans.delete(link);
    return false;
  }

  /** Whether any link still sends from this memory. */
  get isLent(): boolean {
    for (const link of this.#loans.keys()) if (this.isLentTo(link)) return true;
    return false;
  }
}
