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

/** The blocks of a bad piece that are wrong, by index; null where nobody knows. */
export type BlockCheck = (piece: number, data: Uint8Array) => Promise<readonly number[] | null>;

/** The check of blocks by `leavesOfPiece`, which gives SHA-256 of each block of a piece, proven, or null. */
export function blockCheck(leavesOfPiece: (piece: number) => Promise<Uint8Array | null>, sha256: Digest): BlockCheck {
  return async (piece, data) => {
    const leaves = await leavesOfPiece(piece);
    return leaves === null ? null : await wrongLeaves(data, leaves, sha256);
  };
}

/** The blocks of `data` that are not those of `leaves`, SHA-256 of each. */
async function wrongLeaves(data: Uint8Array, leaves: Uint8Array, sha256: Digest): Promise<number[]> {
  const own = await leavesOf(data, sha256);
  const blocks = Array.from({ length: own.length / TREE_HASH_BYTES }, (_, block) => block);
  return blocks.filter((block) => !equalBytes(hashAt(own, block), hashAt(leaves, block)));
}
