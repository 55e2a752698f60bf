/** Torrents of version 2 (BEP 52) made for a test. */
import { createTransportFileV2, hashFile, type V2Contents } from "../../src/metainfo/create-v2.ts";
import type { Metainfo } from "../../src/metainfo/types.ts";
import { noise } from "./random.ts";

/** A torrent and its bytes. */
export interface V2Torrent {
  readonly metainfo: Metainfo;
  readonly transportFile: Uint8Array<ArrayBuffer>;
  /** Of each file, in the order of the torrent. */
  readonly contents: readonly Uint8Array<ArrayBuffer>[];
  /** The byte space, with zeros where no file lies. */
  readonly data: Uint8Array<ArrayBuffer>;
  piece(index: number): Uint8Array<ArrayBuffer>;
}

/** SHA-256. */
export async function sha256(data: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new Uint8Array(data)));
}

/** Makes a torrent of noise. `files`: sizes by path; of one file, the path is the name. */
export async function makeV2Torrent(
  files: Readonly<Record<string, number>>,
  pieceLengthBytes = 65_536,
  more: Partial<V2Contents> = {},
): Promise<V2Torrent> {
  const sizes = Object.entries(files);
  const bytesOf = new Map(sizes.map(([path, sizeBytes], index) => [path, noise(sizeBytes, index + 7)]));
  const hashed = await Promise.all(sizes.map(async ([path, sizeBytes]) => {
    const read = (at: number, length: number) => Promise.resolve(bytesOf.get(path)!.subarray(at, at + length));
    return { path, sizeBytes, hashes: await hashFile(sizeBytes, pieceLengthBytes, read, sha256) };
  }));
  const name = sizes.length === 1 ? sizes[0]![0] : "pack";
  const { bytes, metainfo } = await createTransportFileV2({ name, files: hashed, pieceLengthBytes, ...more });
  const data = new Uint8Array(metainfo.totalBytes);
  const real = metainfo.files.filter((file) => !file.padding);
  const contents = real.map(({ path }) => bytesOf.get(path)!);
  real.forEach(({ offset, sizeBytes }, index) => sizeBytes > 0 && data.set(contents[index]!, offset));
  return {
    metainfo,
    transportFile: bytes,
    contents,
    data,
    piece(index) {
      const start = index * pieceLengthBytes;
      const end = metainfo.shortPieces?.get(index) ?? pieceLengthBytes;
      return data.slice(start, start + end);
    },
  };
}
