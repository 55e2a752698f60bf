/** Whether a piece is the one that the torrent describes: by its SHA-1, or by its hash tree (BEP 52). */
import { equalBytes } from "../../bytes/hex.ts";
import { hashAt, leavesOf, pieceRoot, TREE_HASH_BYTES } from "../../bytes/merkle.ts";
import type { Metainfo } from "../../metainfo/types.ts";
import type { Digest } from "../../ports.ts";

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

/** The blocks of `data` that are not those of `leaves`, SHA-256 of each. */
export async function wrongLeaves(data: Uint8Array, leaves: Uint8Array, sha256: Digest): Promise<number[]> {
  const own = await leavesOf(data, sha256);
  const blocks = Array.from({ length: own.length / TREE_HASH_BYTES }, (_, block) => block);
  return blocks.filter((block) => !equalBytes(hashAt(own, block), hashAt(leaves, block)));
}
