/** The `info` dictionary of a VOD torrent (BEP 3, BEP 27, BEP 47, BEP 52), read defensively. */
import { type BencodeDictionary, decodeBencodeInTurns, integerWithin, isDictionary } from "../bytes/bencode.ts";
import { toHex } from "../bytes/hex.ts";
import { isTurnDue, nextTurn } from "../bytes/turn.ts";
import { MillraceError } from "../errors.ts";
import { decodeName, distinctPaths, type FilePath, filePath } from "./file-path.ts";
import { readHybridTrees, readTreeLayout } from "./hash-trees.ts";
import { MAX_FILES, MAX_PIECE_LENGTH_BYTES, MAX_TRANSPORT_FILE_BYTES, MIN_PIECE_LENGTH_BYTES } from "./limits.ts";
import type { HashTree, Metainfo, MetainfoFile } from "./types.ts";

/** The fields around `info` in a transport file, or those that came with a magnet link. */
export interface InfoExtras {
  readonly trackers?: readonly (readonly string[])[];
  readonly webSeeds?: readonly string[];
  readonly httpSeeds?: readonly string[];
  readonly nodes?: readonly string[];
  /** The decoded `piece layers` (BEP 52). */
  readonly pieceLayers?: unknown;
}

const HASH_BYTES = 20;

/** Files read between two chances for a turn: about a millisecond. */
const FILES_PER_STEP = 256;

function bad(reason: string): MillraceError {
  return new MillraceError("bad_transport_file", `bad transport file: ${reason}`);
}

/** SHA-1 of the bencoded `info`, 20 bytes: the infohash, except of torrents of version 2 alone. */
export async function infohashOf(infoBytes: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-1", infoBytes as Uint8Array<ArrayBuffer>));
}

/**
 * Reads the bencoded `info` as received (ut_metadata, or a slice of a transport file). The infohash is computed from
 * these exact bytes, so a peer's metadata is checked by comparing it. Rejects with `bad_transport_file`, or `too_large`
 * above 16 MiB.
 */
export async function parseInfo(infoBytes: Uint8Array, extras: InfoExtras = {}): Promise<Metainfo> {
  return await metainfoOf(await decodeInfo(infoBytes), infoBytes, extras);
}

/**
 * Decodes a bencoded `info`, in turns if it is large.
 *
 * @throws `bad_transport_file`, `too_large`: as `parseInfo`
 */
export async function decodeInfo(infoBytes: Uint8Array): Promise<unknown> {
  if (infoBytes.length > MAX_TRANSPORT_FILE_BYTES) {
    throw new MillraceError("too_large", `metadata above ${MAX_TRANSPORT_FILE_BYTES} bytes is not accepted`);
  }
  const { end, value } = await decodeBencodeInTurns(infoBytes, { errorCode: "bad_transport_file" });
  if (end !== infoBytes.length) throw bad(`${infoBytes.length - end} bytes follow info`);
  return value;
}

/** `parseInfo` of an `info` that was decoded from `infoBytes` before. */
export async function metainfoOf(info: unknown, infoBytes: Uint8Array, extras: InfoExtras = {}): Promise<Metainfo> {
  if (!isDictionary(info)) throw bad("info is not a dictionary");
  if (isDictionary(info["live"])) throw bad("it describes a live broadcast, not files");

  const pieceLengthBytes = readPieceLength(info);
  const name = readName(info);
  const ownInfoBytes = infoBytes.slice();
  const content = info["pieces"] === undefined && info["meta version"] !== undefined
    ? await readV2(info, ownInfoBytes, name, pieceLengthBytes, extras)
    : await readV1(info, ownInfoBytes, name, pieceLengthBytes, extras);
  return {
    infohashHex: toHex(content.infohash),
    name: name.path,
    ...(name.webPath === null ? {} : { webName: name.webPath }),
    pieceLengthBytes,
    ...content,
    isPrivate: info["private"] === 1,
    infoBytes: ownInfoBytes,
    trackers: extras.trackers ?? [],
    webSeeds: extras.webSeeds ?? [],
    ...(extras.httpSeeds === undefined || extras.httpSeeds.length === 0 ? {} : { httpSeeds: extras.httpSeeds }),
    nodes: extras.nodes ?? [],
  };
}

/** What the versions describe each in its own way. */
type Content = Pick<
  Metainfo,
  | "infohash"
  | "infohashV2"
  | "pieceCount"
  | "totalBytes"
  | "pieceHashes"
  | "files"
  | "multiFile"
  | "shortPieces"
  | "trees"
>;

/** A torrent of version 1, or of both versions, which is read as version 1. */
async function readV1(
  info: BencodeDictionary,
  infoBytes: Uint8Array<ArrayBuffer>,
  name: FilePath,
  pieceLengthBytes: number,
  { pieceLayers }: InfoExtras,
): Promise<Content> {
  const hashes = info["pieces"];
  if (!(hashes instanceof Uint8Array)) throw bad("info.pieces is missing");
  if (hashes.length === 0 || hashes.length % HASH_BYTES !== 0) throw bad("info.pieces is not a list of SHA-1 hashes");
  const files = await readFiles(info, name);
  const last = files[files.length - 1]!;
  const totalBytes = last.offset + last.sizeBytes;
  if (totalBytes === 0) throw bad("it holds no data");
  const pieceCount = hashes.length / HASH_BYTES;
  if (pieceCount !== Math.ceil(totalBytes / pieceLengthBytes)) {
    throw bad(`${pieceCount} piece hashes do not fit ${totalBytes} bytes in pieces of ${pieceLengthBytes}`);
  }
  const trees = info["meta version"] === 2 ? await hybridTrees(infoBytes, files, pieceLengthBytes, pieceLayers) : null;
  return {
    infohash: await infohashOf(infoBytes),
    pieceCount,
    totalBytes,
    pieceHashes: hashes,
    files,
    multiFile: info["files"] !== undefined,
    ...(trees === null ? {} : { infohashV2: await infohashV2Of(infoBytes), trees }),
  };
}

/** Null when the torrent is no good as version 2: it is then one of version 1. */
async function hybridTrees(
  infoBytes: Uint8Array,
  files: readonly MetainfoFile[],
  pieceLengthBytes: number,
  layers: unknown,
): Promise<readonly HashTree[] | null> {
  try {
    return await readHybridTrees(infoBytes, files, pieceLengthBytes, layers);
  } catch (error) {
    if (error instanceof MillraceError) return null;
    throw error;
  }
}

async function readV2(
  info: BencodeDictionary,
  infoBytes: Uint8Array<ArrayBuffer>,
  name: FilePath,
  pieceLengthBytes: number,
  { pieceLayers }: InfoExtras,
): Promise<Content> {
  const version = info["meta version"];
  if (version !== 2) throw bad(`torrents of version ${Number(version)} are not supported`);
  const layout = await readTreeLayout(infoBytes, name.path, pieceLengthBytes, pieceLayers);
  const infohashV2 = await infohashV2Of(infoBytes);
  return { infohash: infohashV2.slice(0, HASH_BYTES), infohashV2, ...layout };
}

/** SHA-256 of the bencoded `info`, 32 bytes (BEP 52). */
async function infohashV2Of(infoBytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", infoBytes));
}

function readPieceLength(info: BencodeDictionary): number {
  const length = integerWithin(info["piece length"], MIN_PIECE_LENGTH_BYTES, MAX_PIECE_LENGTH_BYTES);
  if (length === null) {
    throw bad(`info["piece length"] must be from ${MIN_PIECE_LENGTH_BYTES} to ${MAX_PIECE_LENGTH_BYTES} bytes`);
  }
  return length;
}

/** The first of `name.utf-8` and `name` that says something. */
function readName(info: BencodeDictionary): FilePath {
  const bytes = [info["name.utf-8"], info["name"]].find((value) => value instanceof Uint8Array && value.length > 0);
  return filePath(bytes === undefined ? [] : [bytes as Uint8Array]);
}

async function readFiles(info: BencodeDictionary, name: FilePath): Promise<MetainfoFile[]> {
  const list = info["files"];
  if (list === undefined) {
    const sizeBytes = integerWithin(info["length"], 0, Number.MAX_SAFE_INTEGER);
    if (sizeBytes === null) throw bad("info.length is missing or out of range");
    return [{ index: 0, path: name.path, name: name.path, sizeBytes, offset: 0, padding: false }];
  }
  if (!Array.isArray(list) || list.length === 0) throw bad("info.files is not a list of files");
  if (list.length > MAX_FILES) throw bad(`more than ${MAX_FILES} files`);
  const entries: ReturnType<typeof readEntry>[] = [];
  for (let index = 0; index < list.length; index++) {
    if (index % FILES_PER_STEP === 0 && isTurnDue()) await nextTurn();
    entries.push(readEntry(list[index], index));
  }
  // Padding files of equal size share a name by convention; nobody reads them.
  const paths = distinctPaths(entries.filter((entry) => !entry.padding).map((entry) => entry.path)).values();
  let offset = 0;
  return entries.map(({ webPath, ...entry }, index): MetainfoFile => {
    const path = entry.padding ? entry.path : paths.next().value!;
    const file = { ...entry, index, path, name: path.slice(path.lastIndexOf("/") + 1), offset };
    offset += file.sizeBytes;
    if (!Number.isSafeInteger(offset)) throw bad("the files are too large together");
    return webPath === null ? file : { ...file, webPath };
  });
}

function readEntry(entry: unknown, index: number): FilePath & Pick<MetainfoFile, "sizeBytes" | "padding"> {
  if (!isDictionary(entry)) throw bad(`info.files[${index}] is not a dictionary`);
  const components = readComponents(entry["path.utf-8"]) ?? readComponents(entry["path"]);
  if (components === null) throw bad(`info.files[${index}] has no path`);
  const path = filePath(components);
  const attributes = entry["attr"] instanceof Uint8Array ? decodeName(entry["attr"]) : "";
  // A symlink (BEP 47) has no data of its own; it is never created on disk.
  const sizeBytes = attributes.includes("l") ? 0 : integerWithin(entry["length"], 0, Number.MAX_SAFE_INTEGER);
  if (sizeBytes === null) throw bad(`info.files[${index}].length is missing or out of range`);
  const padding = attributes.includes("p") || /(?:^|\/)_____padding_file_[^/]*$/.test(path.path);
  return { ...path, sizeBytes, padding };
}

/** The components of a path; some creators write a single one as a string. Null when there is none. */
function readComponents(value: unknown): Uint8Array[] | null {
  if (value instanceof Uint8Array) return value.length > 0 ? [value] : null;
  const isPath = Array.isArray(value) && value.length > 0 && value.every((part) => part instanceof Uint8Array);
  return isPath ? value : null;
}
