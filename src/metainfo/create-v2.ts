/** Creates transport files of version 2, or for both versions (BEP 52). */
import { leavesOf, pieceLevel, rootLevel, rootOf, TREE_HASH_BYTES } from "../bytes/merkle.ts";
import { MillraceError } from "../errors.ts";
import type { Digest } from "../ports.ts";
import { type CreatedTransportFile, listedFile, type TransportFileContents } from "./create.ts";
import { encodeAround, encodeMetainfo, parseTransportFile } from "./transport-file.ts";
import { encodeFileTree, inTreeOrder, paddedFiles, type PlacedFile } from "./tree-order.ts";

/** A file and its hashes. */
export interface HashedFile extends PlacedFile {
  readonly hashes: FileHashes;
}

/** What `hashFile` makes of a file. */
export interface FileHashes {
  /** 32 bytes; null for an empty file. */
  readonly root: Uint8Array | null;
  /** The nodes that cover a piece each, 32 bytes per piece; null for a file of one piece or none. */
  readonly layer: Uint8Array | null;
}

/** The contents of a new transport file. */
export type V2Contents =
  & Pick<TransportFileContents, "name" | "pieceLengthBytes" | "trackers" | "webSeeds" | "nodes" | "isPrivate">
  & {
    /** In any order. One that is named like the torrent is the only one. */
    readonly files: readonly HashedFile[];
    /** SHA-1 of all pieces of `paddedFiles`, in the order of the tree, 20 bytes each; with them it has both versions. */
    readonly pieceHashes?: Uint8Array;
  };

/** Pieces hashed at once. */
const CONCURRENCY = 4;

/**
 * Hashes a file of `sizeBytes` bytes. `read` must return exactly `[offset, offset + length)`; otherwise rejects with
 * `invalid_argument`.
 */
export async function hashFile(
  sizeBytes: number,
  pieceLengthBytes: number,
  read: (offset: number, length: number) => Promise<Uint8Array>,
  sha256: Digest,
): Promise<FileHashes> {
  const pieceCount = Math.ceil(sizeBytes / pieceLengthBytes);
  if (pieceCount === 0) return { root: null, layer: null };
  const level = pieceLevel(pieceLengthBytes);
  const top = rootLevel(sizeBytes);
  const layer = new Uint8Array(pieceCount * TREE_HASH_BYTES);
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < pieceCount) {
      const piece = next++;
      const offset = piece * pieceLengthBytes;
      const length = Math.min(pieceLengthBytes, sizeBytes - offset);
      const data = await read(offset, length);
      if (data.length !== length) throw new MillraceError("invalid_argument", "the file is shorter than announced");
      layer.set(await rootOf(await leavesOf(data, sha256), 0, Math.min(level, top)), piece * TREE_HASH_BYTES);
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, pieceCount) }, work));
  return pieceCount === 1 ? { root: layer, layer: null } : { root: await rootOf(layer, level, top), layer };
}

/** Makes a transport file and reads it back as a check: rejects with `bad_transport_file` if it isn't valid. */
export async function createTransportFileV2(contents: V2Contents): Promise<CreatedTransportFile> {
  const { name, pieceLengthBytes, pieceHashes } = contents;
  const files = inTreeOrder(contents.files);
  const tree = encodeFileTree(files, ({ sizeBytes, hashes }) => ({
    length: sizeBytes,
    "pieces root": hashes.root ?? undefined,
  }));
  const infoBytes = encodeAround([["file tree", tree]], {
    ...(pieceHashes === undefined ? {} : { ...filesOfV1(name, files, pieceLengthBytes), pieces: pieceHashes }),
    "meta version": 2,
    name,
    "piece length": pieceLengthBytes,
    private: contents.isPrivate === true ? 1 : undefined,
  });
  const trees = files.flatMap(({ hashes: { root, layer } }) => root === null ? [] : [{ root, layer }]);
  const bytes = encodeMetainfo({ trackers: [], webSeeds: [], nodes: [], ...contents, infoBytes, trees });
  return { bytes, metainfo: await parseTransportFile(bytes) };
}

/** The fields of `info` by which version 1 knows the files. */
function filesOfV1(name: string, files: readonly HashedFile[], pieceLengthBytes: number): Record<string, unknown> {
  if (files.length === 1 && files[0]!.path === name) return { length: files[0]!.sizeBytes };
  return { files: paddedFiles(files, pieceLengthBytes).map(listedFile) };
}
