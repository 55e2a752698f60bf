/** The messages that carry hash trees (BEP 52): hash request, hashes, hash reject. */
import { TREE_HASH_BYTES } from "../bytes/merkle.ts";

/** Ids of the messages. */
export const HashMessageId = { request: 21, hashes: 22, reject: 23 } as const;

/** A row of nodes of a file's tree, and the way from there to its root. */
export interface HashRequest {
  /** Root of the file's tree, 32 bytes. */
  readonly root: Uint8Array;
  /** Level of the nodes; 0: the leaves. */
  readonly level: number;
  /** Number of the first node in its level; a multiple of `count`. */
  readonly index: number;
  /** A power of two. */
  readonly count: number;
  /** Levels above `level` that have to be proven; those that the nodes themselves give are left out of the answer. */
  readonly proofLevels: number;
}

/** Most nodes that we ask for or send at once, and most levels above them: 16 KiB of hashes, as other clients ask for. */
export const MAX_HASHES = 512;
const MAX_PROOFS = 64;

/** Bytes of a message before its hashes, with its id. */
const HEAD_BYTES = 1 + TREE_HASH_BYTES + 16;

/** Longest message, its id included: `hashes`. */
export const MAX_HASH_MESSAGE_BYTES = HEAD_BYTES + (MAX_HASHES + MAX_PROOFS) * TREE_HASH_BYTES;

/** Whether a message of this id may have this length. */
export function isHashLength(id: number, lengthBytes: number): boolean {
  if (id !== HashMessageId.hashes) return lengthBytes === HEAD_BYTES;
  const hashes = lengthBytes - HEAD_BYTES;
  return hashes >= 0 && hashes % TREE_HASH_BYTES === 0 && lengthBytes <= MAX_HASH_MESSAGE_BYTES;
}

/** A message with its length; `hashes` only for that of this name. */
export function hashMessage(id: number, request: HashRequest, hashes: Uint8Array = new Uint8Array()): Uint8Array {
  const message = new Uint8Array(4 + HEAD_BYTES + hashes.length);
  const view = new DataView(message.buffer);
  view.setUint32(0, message.length - 4);
  message[4] = id;
  message.set(request.root, 5);
  const { level, index, count, proofLevels } = request;
  [level, index, count, proofLevels].forEach((value, i) => view.setUint32(5 + TREE_HASH_BYTES + 4 * i, value));
  message.set(hashes, 4 + HEAD_BYTES);
  return message;
}

/** Reads a message without its length, as long as `isHashLength` says. `hashes` is a view. */
export function readHashMessage(message: Uint8Array): { request: HashRequest; hashes: Uint8Array } {
  const view = new DataView(message.buffer, message.byteOffset);
  const number = (i: number) => view.getUint32(1 + TREE_HASH_BYTES + 4 * i);
  return {
    request: {
      root: message.slice(1, 1 + TREE_HASH_BYTES),
      level: number(0),
      index: number(1),
      count: number(2),
      proofLevels: number(3),
    },
    hashes: message.subarray(HEAD_BYTES),
  };
}

/** Bytes of the answer to a request. */
export function answerBytes(request: HashRequest): number {
  return HEAD_BYTES + (request.count + uncleCount(request)) * TREE_HASH_BYTES;
}

/** How many hashes of the way to the root follow the nodes in an answer. */
export function uncleCount({ count, proofLevels }: Pick<HashRequest, "count" | "proofLevels">): number {
  return Math.max(0, proofLevels - Math.max(0, Math.log2(count) - 1));
}
