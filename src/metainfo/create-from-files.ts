/** Creates the transport file of given files, for the versions of BitTorrent that are wanted. */
import { MillraceError } from "../errors.ts";
import type { Digest } from "../ports.ts";
import { choosePieceLength, type CreatedTransportFile, createTransportFile, hashPieces } from "./create.ts";
import { createTransportFileV2, type HashedFile, hashFile } from "./create-v2.ts";
import { inTreeOrder, paddedFiles, type PlacedFile } from "./tree-order.ts";

/** Versions that a transport file describes. */
export type TorrentFormat = "v1" | "hybrid" | "v2";

/** A file that is to be shared. */
export interface SourceFile extends PlacedFile {
  /** Returns `[offset, offset + length)`; less where the file has become shorter. */
  read(offset: number, length: number): Promise<Uint8Array>;
}

/** What is to be shared. */
export interface SharedFiles {
  readonly format: TorrentFormat;
  /** Name of the file, or of the folder that holds the files. */
  readonly name: string;
  readonly isFolder: boolean;
  /** In any order. Without `isFolder` one, whose path is `name`. */
  readonly files: readonly SourceFile[];
}

/**
 * Hashes the files and makes their transport file: once for version 1 or 2, twice for both. Files have the order of
 * version 2 in all formats. Rejects with `invalid_argument` when a file became shorter, and with `bad_transport_file` when
 * the files make no torrent: all of them are empty, say.
 */
export async function createFromFiles(
  { format, name, isFolder, files }: SharedFiles,
  sha256: Digest,
): Promise<CreatedTransportFile> {
  const sorted = inTreeOrder(files);
  const pieceLengthBytes = choosePieceLength(sizeOf(sorted));
  if (format === "v1") {
    const pieceHashes = await hashPieces(sizeOf(sorted), pieceLengthBytes, readerOf(sorted));
    const what = isFolder ? { files: sorted } : { sizeBytes: sizeOf(sorted) };
    return await createTransportFile({ name, pieceLengthBytes, pieceHashes, ...what });
  }
  if (isFolder && sorted.length === 1 && sorted[0]!.path === name) {
    const reason = "a folder whose only file has its name is no folder in version 2: share the file";
    throw new MillraceError("invalid_argument", reason);
  }
  const hashed: HashedFile[] = [];
  for (const { path, sizeBytes, read } of sorted) {
    hashed.push({ path, sizeBytes, hashes: await hashFile(sizeBytes, pieceLengthBytes, read, sha256) });
  }
  const contents = { name, files: hashed, pieceLengthBytes };
  if (format === "v2") return await createTransportFileV2(contents);
  const padded = paddedFiles(sorted, pieceLengthBytes);
  const pieceHashes = await hashPieces(sizeOf(padded), pieceLengthBytes, readerOf(padded));
  return await createTransportFileV2({ ...contents, pieceHashes });
}

function sizeOf(files: readonly PlacedFile[]): number {
  return files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}

/** Reads across the files, one after another; padding files hold zeros. */
function readerOf(files: readonly (SourceFile | PlacedFile)[]): SourceFile["read"] {
  const starts: number[] = [];
  let end = 0;
  for (const { sizeBytes } of files) {
    starts.push(end);
    end += sizeBytes;
  }
  return async (offset, length) => {
    const bytes = new Uint8Array(length);
    let index = starts.findLastIndex((start) => start <= offset);
    for (let at = 0; at < length; index++) {
      const file = files[index]!;
      const from = offset + at - starts[index]!;
      const wanted = Math.min(length - at, file.sizeBytes - from);
      if (wanted <= 0) continue;
      if ("read" in file) {
        const part = await file.read(from, wanted);
        bytes.set(part, at);
        if (part.length < wanted) return bytes.subarray(0, at + part.length);
      }
      at += wanted;
    }
    return bytes;
  };
}
