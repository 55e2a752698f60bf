/** Answers peers that ask for the hash trees of a torrent's files (BEP 52). */
import { toHex } from "../../bytes/hex.ts";
import {
  emptyHash,
  hashAt,
  LEAF_BYTES,
  leavesOf,
  levelAbove,
  pieceLevel,
  rootLevel,
  TREE_HASH_BYTES,
} from "../../bytes/merkle.ts";
import type { HashTree, Metainfo } from "../../metainfo/types.ts";
import type { Digest } from "../../ports.ts";
import { type HashRequest, MAX_HASHES, uncleCount } from "../../wire/hash-messages.ts";
import type { PieceBank } from "../data/piece-bank.ts";

/** The nodes of one level from `first` on; what is missing behind them belongs to empty subtrees. */
interface Row {
  readonly first: number;
  readonly nodes: Uint8Array;
}

/** The hash trees of one torrent. */
export class HashServer {
  readonly #trees: ReadonlyMap<string, HashTree>;
  readonly #level: number;
  readonly #bank: Pick<PieceBank, "have" | "read">;
  readonly #pieceBytes: (piece: number) => number;
  readonly #sha256: Digest;
  /** The levels from that of pieces up, made when they are first asked for: as much again as the layers. */
  readonly #upper = new Map<HashTree, Promise<readonly Row[]>>();

  constructor(
    { trees = [], pieceLengthBytes }: Pick<Metainfo, "trees" | "pieceLengthBytes">,
    bank: Pick<PieceBank, "have" | "read">,
    pieceBytes: (piece: number) => number,
    sha256: Digest,
  ) {
    this.#trees = new Map(trees.map((tree) => [toHex(tree.root), tree]));
    this.#level = pieceLevel(pieceLengthBytes);
    this.#bank = bank;
    this.#pieceBytes = pieceBytes;
    this.#sha256 = sha256;
  }

  /** Bytes that have to be read and hashed for an answer. */
  hashedBytes({ level }: HashRequest): number {
    return level < this.#level ? 2 ** this.#level * LEAF_BYTES : 0;
  }

  /** The nodes and the way to the root; null when they are not here, or there are none such. Rejects when the disk fails. */
  async answer(request: HashRequest): Promise<Uint8Array | null> {
    const { level, index, count, proofLevels } = request;
    const tree = this.#trees.get(toHex(request.root));
    if (tree === undefined || count < 2 || count > MAX_HASHES || !Number.isInteger(Math.log2(count))) return null;
    const top = rootLevel(tree.sizeBytes);
    const isInside = index % count === 0 && level < top && index + count <= 2 ** (top - level);
    if (!isInside || (proofLevels > 0 && level + proofLevels >= top)) return null;
    const rows = await this.#rows(tree, level, index, count);
    if (rows === null) return null;
    const uncles = uncleCount(request);
    const answer = new Uint8Array((count + uncles) * TREE_HASH_BYTES);
    for (let at = 0; at < count; at++) answer.set(nodeOf(rows, level, index + at), at * TREE_HASH_BYTES);
    for (let at = 0; at < uncles; at++) {
      const uncleLevel = level + Math.log2(count) + at;
      const beside = Math.floor(index / 2 ** (uncleLevel - level)) ^ 1;
      answer.set(nodeOf(rows, uncleLevel, beside), (count + at) * TREE_HASH_BYTES);
    }
    return answer;
  }

  /** The rows of all levels from `level` on. Below the level of pieces there are only those of one piece that has arrived. */
  async #rows(tree: HashTree, level: number, index: number, count: number): Promise<ReadonlyMap<number, Row> | null> {
    const rows = new Map<number, Row>();
    if (tree.pieceCount > 1) {
      if (tree.layer === null) return null;
      let upper = this.#upper.get(tree);
      if (upper === undefined) this.#upper.set(tree, upper = this.#upperRows(tree.layer, rootLevel(tree.sizeBytes)));
      (await upper).forEach((row, at) => rows.set(this.#level + at, row));
    }
    if (level >= this.#level) return rows;
    const perPiece = 2 ** (this.#level - level);
    const nth = Math.floor(index / perPiece);
    const piece = tree.firstPiece + nth;
    const isOne = tree.pieceCount === 1 || index + count <= (nth + 1) * perPiece;
    if (nth >= tree.pieceCount || !isOne || !this.#bank.have.has(piece)) return null;
    const data = await this.#bank.read(piece, 0, this.#pieceBytes(piece));
    let nodes: Uint8Array = await leavesOf(data, this.#sha256);
    for (let at = 0; at < this.#level; at++) {
      rows.set(at, { first: nth * 2 ** (this.#level - at), nodes });
      nodes = await levelAbove(nodes, at);
    }
    return rows;
  }

  async #upperRows(layer: Uint8Array, top: number): Promise<Row[]> {
    const rows: Row[] = [];
    let nodes = layer;
    for (let level = this.#level; level < top; level++) {
      rows.push({ first: 0, nodes });
      nodes = await levelAbove(nodes, level);
    }
    return rows;
  }
}

function nodeOf(rows: ReadonlyMap<number, Row>, level: number, index: number): Uint8Array {
  const row = rows.get(level);
  if (row === undefined) return emptyHash(level);
  const node = hashAt(row.nodes, index - row.first);
  return node.length > 0 ? node : emptyHash(level);
}
