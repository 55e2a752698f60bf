/** The hash trees of BEP 52: SHA-256 of blocks of 16 KiB, joined in pairs up to one root per file. */
import { sha256 } from "@noble/hashes/sha2.js";
import type { Digest } from "../ports.ts";
import { isTurnDue, nextTurn } from "./turn.ts";

/** Bytes of a hash. */
export const TREE_HASH_BYTES = 32;

/** Bytes below a leaf. */
export const LEAF_BYTES = 16 * 1024;

/** Leaves hashed between two turns: 4 MiB of data take 2 to 4 ms. */
const LEAVES_PER_TURN = 256;

/** Nodes joined between two turns: some 4 ms. */
const NODES_PER_TURN = 4096;

/** Hashes of subtrees that lie behind the end of a file, by level: a missing leaf counts as a hash of zeros. */
const EMPTY: Uint8Array[] = [new Uint8Array(TREE_HASH_BYTES)];

/** The hash of a subtree of `level` (0: a leaf) that holds nothing. */
export function emptyHash(level: number): Uint8Array {
  for (let next = EMPTY.length; next <= level; next++) EMPTY.push(joined(EMPTY[next - 1]!, EMPTY[next - 1]!));
  return EMPTY[level]!;
}

function joined(left: Uint8Array, right: Uint8Array): Uint8Array {
  return sha256.create().update(left).update(right).digest();
}

/** The level whose nodes cover a piece of this length, a power of two from 16 KiB on. */
export function pieceLevel(pieceLengthBytes: number): number {
  return Math.log2(pieceLengthBytes / LEAF_BYTES);
}

/** The level of the root of a file: the lowest that covers all of it. */
export function rootLevel(sizeBytes: number): number {
  return Math.ceil(Math.log2(Math.ceil(sizeBytes / LEAF_BYTES)));
}

/**
 * The nodes above `nodes`, the leftmost of their `level`, 32 bytes each: one level up. What lacks a right neighbour is
 * joined with an empty subtree. Long rows are hashed in turns.
 */
export async function levelAbove(nodes: Uint8Array, level: number): Promise<Uint8Array<ArrayBuffer>> {
  const count = nodes.length / TREE_HASH_BYTES;
  const above = new Uint8Array(Math.ceil(count / 2) * TREE_HASH_BYTES);
  for (let at = 0; at < count; at += 2) {
    if (at % NODES_PER_TURN === 0 && at > 0 && isTurnDue()) await nextTurn();
    const right = at + 1 < count ? hashAt(nodes, at + 1) : emptyHash(level);
    above.set(joined(hashAt(nodes, at), right), at / 2 * TREE_HASH_BYTES);
  }
  return above;
}

/** The one node of level `top` above `nodes`, the leftmost of their `level`. */
export async function rootOf(nodes: Uint8Array, level: number, top: number): Promise<Uint8Array> {
  let row = nodes;
  for (let at = level; at < top; at++) row = await levelAbove(row, at);
  return row;
}

/**
 * The root above nodes `index` and following of `level`, a power of two of them: `uncles` are the nodes beside the way up,
 * lowest first.
 */
export async function rootAbove(
  nodes: Uint8Array,
  level: number,
  index: number,
  uncles: Uint8Array,
): Promise<Uint8Array> {
  const count = nodes.length / TREE_HASH_BYTES;
  let root = await rootOf(nodes, level, level + Math.log2(count));
  let position = index / count;
  for (let at = 0; at * TREE_HASH_BYTES < uncles.length; at++) {
    const uncle = hashAt(uncles, at);
    root = position % 2 === 0 ? joined(root, uncle) : joined(uncle, root);
    position = Math.floor(position / 2);
  }
  return root;
}

/** The node that covers a piece: `data` is the piece, which may end early. */
export async function pieceRoot(data: Uint8Array, pieceLengthBytes: number, digest: Digest): Promise<Uint8Array> {
  return await rootOf(await leavesOf(data, digest), 0, pieceLevel(pieceLengthBytes));
}

/** The leaves of `data`, 32 bytes each. */
export async function leavesOf(data: Uint8Array, digest: Digest): Promise<Uint8Array> {
  const leaves = new Uint8Array(Math.ceil(data.length / LEAF_BYTES) * TREE_HASH_BYTES);
  for (let leaf = 0; leaf * LEAF_BYTES < data.length; leaf++) {
    if (leaf % LEAVES_PER_TURN === 0 && leaf > 0) await nextTurn();
    leaves.set(await digest(data.subarray(leaf * LEAF_BYTES, (leaf + 1) * LEAF_BYTES)), leaf * TREE_HASH_BYTES);
  }
  return leaves;
}

/** Hash number `index` of `nodes`: a view. */
export function hashAt(nodes: Uint8Array, index: number): Uint8Array {
  return nodes.subarray(index * TREE_HASH_BYTES, (index + 1) * TREE_HASH_BYTES);
}
