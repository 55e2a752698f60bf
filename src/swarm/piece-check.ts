/** Whether a piece is the one that the torrent describes: by its SHA-1, or by its hash tree (BEP 52). */
import { equalBytes } from "../bytes/hex.ts";
import { hashAt, pieceRoot } from "../bytes/merkle.ts";
import type { Metainfo } from "../metainfo/types.ts";
import type { Digest } from "../ports.ts";

/** Checks a whole piece. Rejects when there is no memory to hash it. */
export type PieceCheck = (piece: number, data: Uint8Array) => Promise<boolean>;

/** The check of a torrent's pieces. */
export function pieceCheck(
  { pieceHashes, pieceLengthBytes, shortPieces }: Pick<Metainfo, "pieceHashes" | "pieceLengthBytes" | "shortPieces">,
  { sha1, sha256 }: { readonly sha1: Digest; readonly sha256: Digest },
): PieceCheck {
  if (shortPieces === undefined) {
    return async (piece, data) => equalBytes(await sha1(data), pieceHashes.subarray(20 * piece, 20 * piece + 20));
  }
  return async (piece, data) => {
    return equalBytes(await pieceRoot(data, pieceLengthBytes, sha256), hashAt(pieceHashes, piece));
  };
}
