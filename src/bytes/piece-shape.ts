/** How long the pieces of a torrent are. */

import { LEAF_BYTES } from "./merkle.ts";

/** The sizes that place every piece. */
export interface PieceSizes {
  readonly pieceLengthBytes: number;
  /** The torrent's byte space: where its last piece ends. */
  readonly totalBytes: number;
  /**
   * In a torrent of version 2 alone (BEP 52) every file begins with a piece of its own, and nothing lies between the end
   * of a file and the next piece: the bytes of each piece that its file ends, where another file follows. Present, if
   * perhaps empty, in those torrents and in no others.
   */
  readonly shortPieces?: ReadonlyMap<number, number>;
}

/** Bytes of a piece: all are equal but the last one of the torrent, or of each file. */
export function pieceBytes(shape: PieceSizes, piece: number): number {
  const { pieceLengthBytes, totalBytes, shortPieces } = shape;
  return shortPieces?.get(piece) ?? Math.min(pieceLengthBytes, totalBytes - piece * pieceLengthBytes);
}

/**
 * Bytes of a piece that a peer may request. In a torrent of version 2 alone some ask for the last block of each file whole
 * and take it only with zeros after the end of the file.
 */
export function requestableBytes(shape: PieceSizes, piece: number): number {
  const bytes = pieceBytes(shape, piece);
  return shape.shortPieces === undefined ? bytes : Math.ceil(bytes / LEAF_BYTES) * LEAF_BYTES;
}
