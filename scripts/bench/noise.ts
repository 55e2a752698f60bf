/** Incompressible data to move, and torrents of it. */
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { randomBytes } from "node:crypto";
import path from "node:path";
import { createTransportFile, hashPieces } from "../../src/metainfo/create.ts";

const MIB = 1 << 20;
const NAME = "noise.bin";

/** One file of random bytes, in pieces of 1 MiB. */
export class Noise {
  /** Where the file is. */
  readonly directory: string;
  readonly sizeBytes: number;
  readonly #pieceHashes: Uint8Array;

  private constructor(directory: string, sizeBytes: number, pieceHashes: Uint8Array) {
    this.directory = directory;
    this.sizeBytes = sizeBytes;
    this.#pieceHashes = pieceHashes;
  }

  /** Writes `mib` MiB into `directory`, which is made. */
  static async make(directory: string, mib: number): Promise<Noise> {
    mkdirSync(directory);
    const file = path.join(directory, NAME);
    const out = openSync(file, "w");
    for (let i = 0; i < mib; i++) writeSync(out, randomBytes(MIB));
    closeSync(out);
    const data = readFileSync(file);
    const read = (at: number, length: number) => Promise.resolve(data.subarray(at, at + length));
    return new Noise(directory, data.length, await hashPieces(data.length, MIB, read));
  }

  /** Writes a torrent whose peers come from `tracker` to `file`. */
  async writeTorrent(file: string, tracker: string): Promise<void> {
    const contents = {
      name: NAME,
      sizeBytes: this.sizeBytes,
      pieceLengthBytes: MIB,
      pieceHashes: this.#pieceHashes,
      trackers: [[tracker]],
    };
    writeFileSync(file, (await createTransportFile(contents)).bytes);
  }
}
