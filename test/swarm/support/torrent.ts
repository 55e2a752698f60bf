/** Small torrents made for a test. */
import { encodeBencode } from "../../../src/bytes/bencode.ts";
import { parseInfo } from "../../../src/metainfo/info.ts";
import type { Metainfo } from "../../../src/metainfo/types.ts";
import { noise } from "../../support/random.ts";

/** A torrent and its bytes. */
export interface TestTorrent {
  readonly metainfo: Metainfo;
  readonly data: Uint8Array<ArrayBuffer>;
  piece(index: number): Uint8Array<ArrayBuffer>;
}

/** Options of `makeTorrent`. */
export interface TestTorrentOptions {
  readonly bytes: number;
  readonly pieceLength?: number;
  readonly seed?: number;
  readonly isPrivate?: boolean;
  /** Sizes of files; default a single file. Must add up to `bytes`. */
  readonly files?: readonly number[];
  readonly webSeeds?: readonly string[];
}

/** Makes a torrent of noise. */
export async function makeTorrent(options: TestTorrentOptions): Promise<TestTorrent> {
  const { bytes, pieceLength = 65536, seed = 7 } = options;
  const data = noise(bytes, seed);
  const pieces = new Uint8Array(Math.ceil(bytes / pieceLength) * 20);
  for (let i = 0; i * 20 < pieces.length; i++) {
    const piece = data.subarray(i * pieceLength, (i + 1) * pieceLength);
    pieces.set(new Uint8Array(await crypto.subtle.digest("SHA-1", piece)), i * 20);
  }
  const info: Record<string, unknown> = { name: `noise-${seed}`, "piece length": pieceLength, pieces };
  if (options.files === undefined) info["length"] = bytes;
  else info["files"] = options.files.map((length, i) => ({ length, path: ["sub dir", `file ${i}.bin`] }));
  if (options.isPrivate) info["private"] = 1;
  const metainfo = await parseInfo(encodeBencode(info as never), { webSeeds: options.webSeeds ?? [] });
  return { metainfo, data, piece: (i) => data.slice(i * pieceLength, (i + 1) * pieceLength) };
}
