/** Cuts a web seed's bytes into blocks and delivers them. */
import { BLOCK_BYTES } from "../../wire/types.ts";
import { pieceBytes } from "../data/layout.ts";
import type { Transfer } from "../data/transfer.ts";

/** Whether a block is to be delivered; all else is thrown away. */
export type Accept = (piece: number, offset: number, lengthBytes: number) => boolean;

/**
 * Takes bytes in order, from one place of the torrent on. A block is delivered once it is whole: a source may deliver
 * only one at a time, and several requests to one server run side by side.
 */
export class BlockWriter {
  readonly #transfer: Transfer;
  readonly #source: number;
  readonly #accept: Accept;
  #at: number;
  #piece = 0;
  #offset = 0;
  #lengthBytes = 0;
  /** Bytes of the block that are still to come. */
  #left = 0;
  #isKept = false;
  #part: Uint8Array | null = null;

  /** `at`: of the first byte, in the torrent. A block that begins before it is not delivered. Default: all others are. */
  constructor(transfer: Transfer, source: number, at: number, accept: Accept = () => true) {
    this.#transfer = transfer;
    this.#source = source;
    this.#at = at;
    this.#accept = accept;
  }

  /** The next bytes; they may be changed afterwards. */
  write(bytes: Uint8Array): void {
    for (let from = 0; from < bytes.length;) {
      if (this.#left === 0) this.#begin();
      const count = Math.min(bytes.length - from, this.#left);
      if (this.#isKept) this.#keep(bytes.subarray(from, from + count));
      this.#left -= count;
      this.#at += count;
      from += count;
    }
  }

  /** `count` bytes of padding (BEP 47). */
  writeZeros(count: number): void {
    const zeros = new Uint8Array(Math.min(count, BLOCK_BYTES));
    for (let left = count; left > 0; left -= zeros.length) this.write(zeros.subarray(0, left));
  }

  #begin(): void {
    const { metainfo } = this.#transfer;
    this.#piece = Math.floor(this.#at / metainfo.pieceLengthBytes);
    const inPiece = this.#at - this.#piece * metainfo.pieceLengthBytes;
    this.#offset = inPiece - inPiece % BLOCK_BYTES;
    this.#lengthBytes = Math.min(BLOCK_BYTES, pieceBytes(metainfo, this.#piece) - this.#offset);
    this.#left = this.#offset + this.#lengthBytes - inPiece;
    this.#isKept = inPiece === this.#offset && this.#accept(this.#piece, this.#offset, this.#lengthBytes);
  }

  #keep(bytes: Uint8Array): void {
    if (bytes.length === this.#lengthBytes) return this.#deliver(bytes);
    this.#part ??= new Uint8Array(BLOCK_BYTES);
    this.#part.set(bytes, this.#lengthBytes - this.#left);
    if (bytes.length === this.#left) this.#deliver(this.#part.subarray(0, this.#lengthBytes));
  }

  #deliver(block: Uint8Array): void {
    const target = this.#transfer.blockTarget(this.#source, this.#piece, this.#offset, block.length);
    target?.set(block);
    this.#transfer.blockArrived(this.#source, this.#piece, this.#offset, block.length, target !== null);
  }
}
