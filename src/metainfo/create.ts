/** Creates transport files (BEP 3, BEP 12, BEP 19, BEP 27). */
import { encodeBencode } from "../bytes/bencode.ts";
import { MillraceError } from "../errors.ts";
import { parseInfo } from "./info.ts";
import { PIECE_LENGTH_STEP_BYTES } from "./limits.ts";
import { encodeMetainfo } from "./transport-file.ts";
import type { Metainfo } from "./types.ts";

/** The contents of a new transport file. */
export interface TransportFileContents {
  /** Name of the file, or of the directory when `files` is given. */
  readonly name: string;
  /** Size of the only file, bytes; omit it when `files` is given. */
  readonly sizeBytes?: number;
  /** Several files in order: `/`-separated paths below `name`. */
  readonly files?: readonly { readonly path: string; readonly sizeBytes: number; readonly padding?: boolean }[];
  /** Multiple of 16 KiB. */
  readonly pieceLengthBytes: number;
  /** SHA-1 of all pieces, 20 bytes each. */
  readonly pieceHashes: Uint8Array;
  /** Tracker tiers. Default none. */
  readonly trackers?: readonly (readonly string[])[];
  /** Default none. */
  readonly webSeeds?: readonly string[];
  /** DHT nodes, `host:port`. Default none. */
  readonly nodes?: readonly string[];
  /** BEP 27. Default false. */
  readonly isPrivate?: boolean;
}

/** A new transport file and its parsed contents. */
export interface CreatedTransportFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly metainfo: Metainfo;
}

/** The number of pieces to aim for: 1,500 hashes are 30 KB, quick to get from a peer. */
const TARGET_PIECES = 1500;

/** The largest piece that we make, bytes: nothing of a piece can be played before all of it is downloaded. */
const LARGEST_MADE_BYTES = 16 * 1024 * 1024;

/** Makes a transport file and reads it back as a check: throws `bad_transport_file` if it isn't valid. */
export async function createTransportFile(contents: TransportFileContents): Promise<CreatedTransportFile> {
  const files = contents.files?.map(listedFile);
  const infoBytes = encodeBencode({
    files,
    length: files === undefined ? contents.sizeBytes : undefined,
    name: contents.name,
    "piece length": contents.pieceLengthBytes,
    pieces: contents.pieceHashes,
    private: contents.isPrivate === true ? 1 : undefined,
  });
  const metainfo = await parseInfo(infoBytes, contents);
  return { bytes: encodeMetainfo(metainfo), metainfo };
}

/** An entry of `info.files` (BEP 3, BEP 47). */
export function listedFile(file: { readonly path: string; readonly sizeBytes: number; readonly padding?: boolean }) {
  return {
    attr: file.padding === true ? "p" : undefined,
    length: file.sizeBytes,
    path: file.path.split("/"),
  };
}

/** A piece length for `totalBytes`: a power of two from 16 KiB to 16 MiB that gives about 1,500 pieces or fewer. */
export function choosePieceLength(totalBytes: number): number {
  let length = PIECE_LENGTH_STEP_BYTES;
  while (length < LARGEST_MADE_BYTES && totalBytes / length > TARGET_PIECES) length *= 2;
  return length;
}

/**
 * SHA-1 of each piece of `totalBytes` bytes from `read`, 20 bytes each, a few hashed at once. `read` must return
 * exactly `[offset, offset + length)`; otherwise throws `invalid_argument`.
 */
export async function hashPieces(
  totalBytes: number,
  pieceLengthBytes: number,
  read: (offset: number, length: number) => Promise<Uint8Array>,
): Promise<Uint8Array<ArrayBuffer>> {
  const count = Math.ceil(totalBytes / pieceLengthBytes);
  const hashes = new Uint8Array(20 * count);
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < count) {
      const piece = next++;
      const offset = piece * pieceLengthBytes;
      const length = Math.min(pieceLengthBytes, totalBytes - offset);
      const data = await read(offset, length);
      if (data.length !== length) throw new MillraceError("invalid_argument", "the file is shorter than announced");
      hashes.set(new Uint8Array(await crypto.subtle.digest("SHA-1", data as Uint8Array<ArrayBuffer>)), 20 * piece);
    }
  };
  await Promise.all(Array.from({ length: Math.min(4, count) }, work));
  return hashes;
}
