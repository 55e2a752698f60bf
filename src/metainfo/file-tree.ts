/** The files of a torrent of version 2, or of both versions: `info["file tree"]` (BEP 52). */
import { decodeBencode, integerWithin, isDictionary } from "../bytes/bencode.ts";
import { TREE_HASH_BYTES } from "../bytes/merkle.ts";
import { isTurnDue, nextTurn } from "../bytes/turn.ts";
import { MillraceError } from "../errors.ts";
import { decodeName } from "./file-path.ts";
import { MAX_FILES } from "./limits.ts";

/** A file of the tree, as the torrent names it. */
export interface TreeFile {
  /** Names of its directories and its own, root first. */
  readonly components: readonly Uint8Array[];
  readonly sizeBytes: number;
  /** Root of its hash tree, 32 bytes; null for an empty file. */
  readonly root: Uint8Array | null;
  readonly padding: boolean;
}

const COLON = 0x3a;
const DICTIONARY = 0x64;
const END = 0x65;
const INTEGER = 0x69;
const LIST = 0x6c;

/** Files read between two chances for a turn: about a millisecond. */
const FILES_PER_STEP = 256;

function bad(reason: string): MillraceError {
  return new MillraceError("bad_transport_file", `bad transport file: ${reason}`);
}

/**
 * The files of `infoBytes`, a bencoded `info` that was decoded without a fault, in the order in which they stand there:
 * decoded dictionaries do not keep it, and it decides which pieces are whose. Rejects with `bad_transport_file`.
 */
export async function readFileTree(infoBytes: Uint8Array): Promise<TreeFile[]> {
  const start = treeStart(infoBytes);
  if (start === null || infoBytes[start] !== DICTIONARY) throw bad('info["file tree"] is missing');
  const files: TreeFile[] = [];
  for (const file of filesBelow(infoBytes, start, [])) {
    files.push(file);
    if (files.length > MAX_FILES) throw bad(`more than ${MAX_FILES} files`);
    if (files.length % FILES_PER_STEP === 0 && isTurnDue()) await nextTurn();
  }
  if (files.length === 0) throw bad('info["file tree"] is empty');
  return files;
}

function treeStart(infoBytes: Uint8Array): number | null {
  for (let at = 1; infoBytes[at] !== END;) {
    const start = endOf(infoBytes, at);
    if (decodeName(keyAt(infoBytes, at, start)) === "file tree") return start;
    at = endOf(infoBytes, start);
  }
  return null;
}

/** The files below the directory at `at`; returns where that ends. Its depth is bounded by the decoder's. */
function* filesBelow(bytes: Uint8Array, at: number, path: readonly Uint8Array[]): Generator<TreeFile, number> {
  at++;
  while (bytes[at] !== END) {
    const start = endOf(bytes, at);
    const key = keyAt(bytes, at, start);
    if (bytes[start] !== DICTIONARY) throw bad('info["file tree"] holds something that is no file');
    if (key.length > 0) at = yield* filesBelow(bytes, start, [...path, key]);
    else {
      if (path.length === 0) throw bad('a file of info["file tree"] has no name');
      at = endOf(bytes, start);
      yield fileOf(decodeBencode(bytes.subarray(start, at), { errorCode: "bad_transport_file" }), path);
    }
  }
  return at + 1;
}

function fileOf(value: unknown, components: readonly Uint8Array[]): TreeFile {
  const name = components.map(decodeName).join("/");
  if (!isDictionary(value)) throw bad(`the file "${name}" is not described`);
  const attributes = value["attr"] instanceof Uint8Array ? decodeName(value["attr"]) : "";
  // A symlink (BEP 47) has no data of its own; it is never created on disk.
  const sizeBytes = attributes.includes("l") ? 0 : integerWithin(value["length"], 0, Number.MAX_SAFE_INTEGER);
  if (sizeBytes === null) throw bad(`the length of the file "${name}" is missing or out of range`);
  const root = value["pieces root"];
  const hasRoot = root instanceof Uint8Array && root.length === TREE_HASH_BYTES;
  if (sizeBytes > 0 && !hasRoot) throw bad(`the file "${name}" has no hash`);
  return { components, sizeBytes, root: sizeBytes > 0 ? root as Uint8Array : null, padding: attributes.includes("p") };
}

function keyAt(bytes: Uint8Array, at: number, end: number): Uint8Array {
  return bytes.slice(bytes.indexOf(COLON, at) + 1, end);
}

/** Where the value at `at` ends. */
function endOf(bytes: Uint8Array, at: number): number {
  let depth = 0;
  do {
    const byte = bytes[at]!;
    if (byte === END) depth--;
    else if (byte === LIST || byte === DICTIONARY) depth++;
    else if (byte === INTEGER) at = bytes.indexOf(END, at);
    else {
      let length = 0;
      for (; bytes[at] !== COLON; at++) length = length * 10 + bytes[at]! - 0x30;
      at += length;
    }
    at++;
  } while (depth > 0);
  return at;
}
