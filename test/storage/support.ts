/** Torrents for storage tests. */
import { createHash } from "node:crypto";
import type { Logger } from "../../src/ports.ts";
import type { TorrentLayout } from "../../src/storage/piece-store.ts";
import { noise } from "../support/random.ts";

export const silent: Logger = { log() {}, child: () => silent };

/** A torrent with its content. */
export interface Sample {
  readonly layout: TorrentLayout;
  readonly content: Uint8Array;
  piece(index: number): Uint8Array<ArrayBuffer>;
}

/** Files of the given sizes with content that never repeats; "pad:" before a path marks padding (zeros). */
export function sample(files: Record<string, number>, pieceLengthBytes = 16384, seed = 1): Sample {
  let offset = 0;
  const list = Object.entries(files).map(([path, sizeBytes]) => {
    const padding = path.startsWith("pad:");
    const file = { path: path.replace("pad:", ""), sizeBytes, offset, padding };
    offset += sizeBytes;
    return file;
  });
  const content = noise(offset, seed);
  for (const file of list) if (file.padding) content.fill(0, file.offset, file.offset + file.sizeBytes);
  const pieceCount = Math.ceil(offset / pieceLengthBytes);
  const piece = (index: number) => content.slice(index * pieceLengthBytes, (index + 1) * pieceLengthBytes);
  const pieceHashes = new Uint8Array(20 * pieceCount);
  for (let i = 0; i < pieceCount; i++) pieceHashes.set(createHash("sha1").update(piece(i)).digest(), 20 * i);
  return {
    content,
    piece,
    layout: {
      infohashHex: createHash("sha1").update(content).digest("hex"),
      name: "pack",
      pieceLengthBytes,
      pieceCount,
      totalBytes: offset,
      pieceHashes,
      files: list,
      multiFile: true,
    },
  };
}
