/** The `info` dictionary of a VOD torrent (BEP 3, BEP 27, BEP 47), read defensively. */
import { type BencodeDictionary, decodeBencode, integerWithin, isDictionary } from "../bytes/bencode.ts";
import { toHex } from "../bytes/hex.ts";
import { MillraceError } from "../errors.ts";
import { decodeName, refusePathClashes, safeComponent, safePath } from "./file-path.ts";
import { MAX_FILES, MAX_PIECE_LENGTH_BYTES, MAX_TRANSPORT_FILE_BYTES, PIECE_LENGTH_STEP_BYTES } from "./limits.ts";
import type { Metainfo, MetainfoFile } from "./types.ts";

/** The fields around `info` in a transport file, or those that came with a magnet link. */
export interface InfoExtras {
  readonly trackers?: readonly (readonly string[])[];
  readonly webSeeds?: readonly string[];
  readonly nodes?: readonly string[];
}

const HASH_BYTES = 20;

function bad(reason: string): MillraceError {
  return new MillraceError("bad_transport_file", `bad transport file: ${reason}`);
}

/** SHA-1 of the bencoded `info`, 20 bytes. */
export async function infohashOf(infoBytes: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-1", infoBytes as Uint8Array<ArrayBuffer>));
}

/**
 * Reads the bencoded `info` as received (ut_metadata, or a slice of a transport file). The infohash is computed from
 * these exact bytes, so a peer's metadata is checked by comparing it. Throws `bad_transport_file`, or `too_large` above
 * 16 MiB.
 */
export async function parseInfo(infoBytes: Uint8Array, extras: InfoExtras = {}): Promise<Metainfo> {
  if (infoBytes.length > MAX_TRANSPORT_FILE_BYTES) {
    throw new MillraceError("too_large", `metadata above ${MAX_TRANSPORT_FILE_BYTES} bytes is not accepted`);
  }
  const info = decodeBencode(infoBytes, { errorCode: "bad_transport_file" });
  if (!isDictionary(info)) throw bad("info is not a dictionary");
  if (isDictionary(info["live"])) throw bad("it describes a live broadcast, not files");

  const pieceLengthBytes = readPieceLength(info);
  const hashes = info["pieces"];
  if (!(hashes instanceof Uint8Array)) {
    throw bad(info["meta version"] === 2 ? "torrents of version 2 only are not supported" : "info.pieces is missing");
  }
  if (hashes.length === 0 || hashes.length % HASH_BYTES !== 0) throw bad("info.pieces is not a list of SHA-1 hashes");
  const name = readName(info);
  const files = readFiles(info, name);
  const last = files[files.length - 1]!;
  const totalBytes = last.offset + last.sizeBytes;
  if (totalBytes === 0) throw bad("it holds no data");
  const pieceCount = hashes.length / HASH_BYTES;
  if (pieceCount !== Math.ceil(totalBytes / pieceLengthBytes)) {
    throw bad(`${pieceCount} piece hashes do not fit ${totalBytes} bytes in pieces of ${pieceLengthBytes}`);
  }

  const ownInfoBytes = infoBytes.slice();
  const infohash = await infohashOf(ownInfoBytes);
  return {
    infohash,
    infohashHex: toHex(infohash),
    name,
    pieceLengthBytes,
    pieceCount,
    totalBytes,
    pieceHashes: hashes,
    files,
    multiFile: info["files"] !== undefined,
    isPrivate: info["private"] === 1,
    infoBytes: ownInfoBytes,
    trackers: extras.trackers ?? [],
    webSeeds: extras.webSeeds ?? [],
    nodes: extras.nodes ?? [],
  };
}

function readPieceLength(info: BencodeDictionary): number {
  const length = integerWithin(info["piece length"], PIECE_LENGTH_STEP_BYTES, MAX_PIECE_LENGTH_BYTES);
  if (length === null || length % PIECE_LENGTH_STEP_BYTES !== 0) {
    throw bad(
      `info["piece length"] must be a multiple of ${PIECE_LENGTH_STEP_BYTES} up to ${MAX_PIECE_LENGTH_BYTES} bytes`,
    );
  }
  return length;
}

function readName(info: BencodeDictionary): string {
  const bytes = info["name.utf-8"] ?? info["name"];
  if (!(bytes instanceof Uint8Array)) throw bad("info.name is missing");
  return safeComponent(decodeName(bytes));
}

function readFiles(info: BencodeDictionary, name: string): MetainfoFile[] {
  const list = info["files"];
  if (list === undefined) {
    const sizeBytes = integerWithin(info["length"], 0, Number.MAX_SAFE_INTEGER);
    if (sizeBytes === null) throw bad("info.length is missing or out of range");
    return [{ index: 0, path: name, name, sizeBytes, offset: 0, padding: false }];
  }
  if (!Array.isArray(list) || list.length === 0) throw bad("info.files is not a list of files");
  if (list.length > MAX_FILES) throw bad(`more than ${MAX_FILES} files`);
  let offset = 0;
  const files = list.map((entry: unknown, index): MetainfoFile => {
    const file = readFile(entry, index, offset);
    offset += file.sizeBytes;
    if (!Number.isSafeInteger(offset)) throw bad("the files are too large together");
    return file;
  });
  // Padding files of equal size share a name by convention; nobody reads them.
  refusePathClashes(files.filter((file) => !file.padding).map((file) => file.path));
  return files;
}

function readFile(entry: unknown, index: number, offset: number): MetainfoFile {
  if (!isDictionary(entry)) throw bad(`info.files[${index}] is not a dictionary`);
  const parts = entry["path.utf-8"] ?? entry["path"];
  if (!Array.isArray(parts) || !parts.every((part) => part instanceof Uint8Array)) {
    throw bad(`info.files[${index}] has no path`);
  }
  const path = safePath(parts.map(decodeName));
  const attributes = entry["attr"] instanceof Uint8Array ? decodeName(entry["attr"]) : "";
  // A symlink (BEP 47) has no data of its own; it is never created on disk.
  const sizeBytes = attributes.includes("l") ? 0 : integerWithin(entry["length"], 0, Number.MAX_SAFE_INTEGER);
  if (sizeBytes === null) throw bad(`info.files[${index}].length is missing or out of range`);
  const name = path.slice(path.lastIndexOf("/") + 1);
  const padding = attributes.includes("p") || name.startsWith("_____padding_file_");
  return { index, path, name, sizeBytes, offset, padding };
}
