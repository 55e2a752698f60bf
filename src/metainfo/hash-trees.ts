/** What a torrent of version 2 (BEP 52) says of its files: where they lie, and their hash trees. */
import { type BencodeDictionary, isDictionary } from "../bytes/bencode.ts";
import { equalBytes, toHex } from "../bytes/hex.ts";
import { hashAt, LEAF_BYTES, pieceLevel, rootLevel, rootOf, TREE_HASH_BYTES } from "../bytes/merkle.ts";
import { isTurnDue, nextTurn } from "../bytes/turn.ts";
import { MillraceError } from "../errors.ts";
import { distinctPaths, filePath } from "./file-path.ts";
import { readFileTree, type TreeFile } from "./file-tree.ts";
import { MAX_PIECES } from "./limits.ts";
import type { HashTree, Metainfo, MetainfoFile } from "./types.ts";

/** How the files of a torrent of version 2 alone lie in its byte space. */
export type TreeLayout = Pick<Metainfo, "files" | "multiFile" | "pieceCount" | "totalBytes" | "pieceHashes"> & {
  readonly shortPieces: ReadonlyMap<number, number>;
  readonly trees: readonly HashTree[];
};

const TEXT = new TextDecoder("utf-8", { ignoreBOM: true });

function bad(reason: string): MillraceError {
  return new MillraceError("bad_transport_file", `bad transport file: ${reason}`);
}

/**
 * Lays out a torrent of version 2 alone: each file begins with a piece of its own. What lies between counts as a padding
 * file, so that files have the numbers that libtorrent gives them, and those of a hybrid of the same files. `name`: the torrent's, made harmless;
 * `layers`: the decoded `piece layers`, if any. Rejects with `bad_transport_file`.
 */
export async function readTreeLayout(
  infoBytes: Uint8Array,
  name: string,
  pieceLengthBytes: number,
  layers: unknown,
): Promise<TreeLayout> {
  checkPieceLength(pieceLengthBytes);
  const entries = await readFileTree(infoBytes);
  const paths = entries.map(({ components }) => filePath(components));
  const own = distinctPaths(paths.map(({ path }) => path));
  const files: MetainfoFile[] = [];
  const real: MetainfoFile[] = [];
  let offset = 0;
  let totalBytes = 0;
  const shortPieces = new Map<number, number>();
  const add = (path: string, sizeBytes: number, padding: boolean, webPath: string | null): MetainfoFile => {
    const file = { index: files.length, path, name: path.slice(path.lastIndexOf("/") + 1), sizeBytes, offset, padding };
    files.push(webPath === null ? file : { ...file, webPath });
    offset += sizeBytes;
    if (!Number.isSafeInteger(offset)) throw bad("the files are too large together");
    return file;
  };
  entries.forEach(({ sizeBytes, padding }, i) => {
    real.push(add(own[i]!, sizeBytes, padding, paths[i]!.webPath));
    if (sizeBytes === 0) return;
    totalBytes = offset;
    const lastBytes = sizeBytes % pieceLengthBytes;
    if (lastBytes === 0) return;
    shortPieces.set(Math.floor(offset / pieceLengthBytes), lastBytes);
    add(`.pad/${pieceLengthBytes - lastBytes}`, pieceLengthBytes - lastBytes, true, null);
  });
  if (totalBytes === 0) throw bad("it holds no data");
  const pieceCount = Math.ceil(totalBytes / pieceLengthBytes);
  if (pieceCount > MAX_PIECES) throw bad(`more than ${MAX_PIECES} pieces`);
  // The last piece ends with the torrent.
  shortPieces.delete(pieceCount - 1);
  const pieceHashes = new Uint8Array(pieceCount * TREE_HASH_BYTES);
  const trees = await readTrees(entries, real, pieceLengthBytes, layers, pieceHashes);
  const isFile = real.length === 1 && real[0]!.path === name;
  return { files, multiFile: !isFile, pieceCount, totalBytes, pieceHashes, shortPieces, trees };
}

/**
 * The hash trees of a torrent of both versions, whose `files` are those of version 1; null when the versions do not
 * describe the same files.
 */
export async function readHybridTrees(
  infoBytes: Uint8Array,
  files: readonly MetainfoFile[],
  pieceLengthBytes: number,
  layers: unknown,
): Promise<readonly HashTree[] | null> {
  checkPieceLength(pieceLengthBytes);
  const entries = await readFileTree(infoBytes);
  const real = files.filter((file) => !file.padding);
  const own = distinctPaths(entries.map(({ components }) => filePath(components).path));
  const isSame = real.length === entries.length &&
    real.every(({ path, sizeBytes, offset }, i) =>
      path === own[i] && sizeBytes === entries[i]!.sizeBytes && (sizeBytes === 0 || offset % pieceLengthBytes === 0)
    );
  return isSame ? await readTrees(entries, real, pieceLengthBytes, layers, null) : null;
}

/** The name by which version 2 knows a torrent of both versions, 40 hexadecimal digits; null for other torrents. */
export function secondName(
  { infohashV2, shortPieces }: Pick<Metainfo, "infohashHex" | "infohashV2" | "shortPieces">,
): string | null {
  return infohashV2 === undefined || shortPieces !== undefined ? null : toHex(infohashV2.subarray(0, 20));
}

/** Whether `infohash`, 20 bytes, is the name by which version 2 knows the torrent. */
export function isNameOfV2(infohash: Uint8Array, { infohashV2 }: Pick<Metainfo, "infohashV2">): boolean {
  return infohashV2 !== undefined && equalBytes(infohashV2.subarray(0, infohash.length), infohash);
}

/** The other name of a torrent of both versions that is known as `infohashHex`; null for other torrents. */
export function otherName(
  infohashHex: string,
  metainfo: Pick<Metainfo, "infohashHex" | "infohashV2" | "shortPieces">,
): string | null {
  const second = secondName(metainfo);
  return second === infohashHex ? metainfo.infohashHex : second;
}

/** Whether the hashes of some pieces are still to be asked for. */
export function lacksLayers({ shortPieces, trees = [] }: Pick<Metainfo, "shortPieces" | "trees">): boolean {
  return shortPieces !== undefined && trees.some(({ pieceCount, layer }) => pieceCount > 1 && layer === null);
}

function checkPieceLength(bytes: number): void {
  if (bytes < LEAF_BYTES || !Number.isInteger(Math.log2(bytes))) {
    throw bad(`info["piece length"] of version 2 must be a power of two from ${LEAF_BYTES} bytes on`);
  }
}

/** The trees of `entries`, which lie as `files`; fills `hashes`, if given, with the nodes that cover a piece each. */
async function readTrees(
  entries: readonly TreeFile[],
  files: readonly MetainfoFile[],
  pieceLengthBytes: number,
  layers: unknown,
  hashes: Uint8Array | null,
): Promise<HashTree[]> {
  const trees: HashTree[] = [];
  const level = pieceLevel(pieceLengthBytes);
  for (const [index, { root, sizeBytes }] of entries.entries()) {
    if (root === null) continue;
    if (isTurnDue()) await nextTurn();
    const firstPiece = files[index]!.offset / pieceLengthBytes;
    const pieceCount = Math.ceil(sizeBytes / pieceLengthBytes);
    const own = hashes?.subarray(firstPiece * TREE_HASH_BYTES, (firstPiece + pieceCount) * TREE_HASH_BYTES);
    const tree = { root, sizeBytes, firstPiece, pieceCount, layer: null };
    if (pieceCount === 1) {
      own?.set(await rootOf(root, rootLevel(sizeBytes), level));
      trees.push(tree);
      continue;
    }
    const layer = isDictionary(layers) ? layerOf(layers, root) : null;
    if (layer === null || !await isLayer(layer, tree, pieceLengthBytes)) trees.push(tree);
    else {
      own?.set(layer);
      trees.push({ ...tree, layer: own ?? layer });
    }
  }
  return trees;
}

/** Whether `layer` holds the nodes of `tree` that cover a piece each. */
export async function isLayer(
  layer: Uint8Array,
  { root, sizeBytes, pieceCount }: Pick<HashTree, "root" | "sizeBytes" | "pieceCount">,
  pieceLengthBytes: number,
): Promise<boolean> {
  if (layer.length !== pieceCount * TREE_HASH_BYTES) return false;
  return equalBytes(root, hashAt(await rootOf(layer, pieceLevel(pieceLengthBytes), rootLevel(sizeBytes)), 0));
}

/** The decoder writes keys that are no text as hexadecimal digits. */
function layerOf(layers: BencodeDictionary, root: Uint8Array): Uint8Array | null {
  const layer = layers[toHex(root)] ?? layers[TEXT.decode(root)];
  return layer instanceof Uint8Array ? layer : null;
}
