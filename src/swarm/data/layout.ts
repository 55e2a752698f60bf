/** Arithmetic on a torrent's pieces and blocks. */
import { pieceBytes, type PieceSizes as PieceSizes, requestableBytes } from "../../bytes/piece-shape.ts";
import { BLOCK_BYTES } from "../../wire/types.ts";

export { pieceBytes };

/** The sizes that place every piece and block. */
export interface PieceShape extends PieceSizes {
  readonly pieceCount: number;
}

/** Whether `[offset, offset + length)` lies in the piece and is one whole block of it. */
export function isBlock(shape: PieceShape, piece: number, offset: number, length: number): boolean {
  if (piece < 0 || piece >= shape.pieceCount || offset < 0 || offset % BLOCK_BYTES !== 0) return false;
  return length === Math.min(BLOCK_BYTES, pieceBytes(shape, piece) - offset) && length > 0;
}

/** Whether `[offset, offset + length)` lies within one block of the piece. */
export function isWithinBlock(shape: PieceShape, piece: number, offset: number, length: number): boolean {
  if (piece < 0 || piece >= shape.pieceCount || offset < 0 || length <= 0) return false;
  return offset % BLOCK_BYTES + length <= BLOCK_BYTES && offset + length <= pieceBytes(shape, piece);
}

/** Largest request served to a peer, bytes: 128 KiB is what other implementations accept. */
const MAX_REQUEST_BYTES = 131072;

/** Whether a peer may ask for `[offset, offset + length)` of the piece. */
export function isServable(shape: PieceShape, piece: number, offset: number, length: number): boolean {
  if (piece < 0 || piece >= shape.pieceCount || offset < 0 || length <= 0 || length > MAX_REQUEST_BYTES) return false;
  return offset + length <= requestableBytes(shape, piece);
}
