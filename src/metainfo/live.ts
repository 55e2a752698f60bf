/** Transport files of live broadcasts: `info.live` describes the stream where a torrent has `pieces`. */
import { type BencodeDictionary, decodeBencode, encodeBencode, integerWithin, isDictionary } from "../bytes/bencode.ts";
import { toHex } from "../bytes/hex.ts";
import { MillraceError } from "../errors.ts";
import { decodeName, safeName } from "./file-path.ts";
import { decodeInfo, type InfoExtras, infohashOf, metainfoOf } from "./info.ts";
import { PIECE_LENGTH_STEP_BYTES } from "./limits.ts";
import { encodeMetainfo, readTransportFile } from "./transport-file.ts";
import type { Metainfo } from "./types.ts";

/** Largest bencoded `info` of a broadcast, bytes: small enough for one DHT item or datagram. */
const MAX_LIVE_INFO_BYTES = 1000;

/** Largest piece of a broadcast, bytes: 64 blocks, half a second at 16 Mb/s. */
const MAX_LIVE_PIECE_BYTES = 1024 * 1024;

/** Fastest broadcast, bytes per second: 100 Mb/s, above what any contribution feed uses. */
export const MAX_LIVE_BYTES_PER_S = 12_500_000;

/** Longest window, s: two hours, a long programme. */
const MAX_LIVE_WINDOW_S = 7200;

/** Shortest window, s: a late joiner starts seconds behind the edge and needs room to catch up. */
const MIN_LIVE_WINDOW_S = 10;

/** Most substreams: a subscription names them in a mask of 8 bits. */
export const MAX_SUBSTREAMS = 8;

const VERSION = 1;
const BLOCK_BYTES = PIECE_LENGTH_STEP_BYTES;
const KEY_BYTES = 32;

/** The `info` dictionary of a broadcast, checked. */
export interface LiveMetainfo {
  /** SHA-1 of the bencoded `info`, 20 bytes. */
  readonly infohash: Uint8Array;
  readonly infohashHex: string;
  readonly name: string;
  /** Most bytes of a piece: a multiple of 16 KiB up to 1 MiB. */
  readonly pieceLengthBytes: number;
  /** Announced bitrate, bytes per second, 1 to 12,500,000. The measured one may differ. */
  readonly bytesPerS: number;
  /** ed25519 key of the broadcaster, 32 bytes. */
  readonly publicKey: Uint8Array;
  /** Substreams, 1–8. */
  readonly substreams: number;
  /** How far back pieces are kept, s, 10–7200. */
  readonly windowS: number;
  /** BEP 27. */
  readonly isPrivate: boolean;
  /** The bencoded `info`, for ut_metadata. */
  readonly infoBytes: Uint8Array;
  /** Tracker tiers (BEP 12). */
  readonly trackers: readonly (readonly string[])[];
  /** DHT nodes named in the file, `host:port`. */
  readonly nodes: readonly string[];
  /** A server of the Internet, or a caller who may name no private address, gave it: the servers in it must be public. */
  readonly isFromPublic?: boolean;
}

/** The parsed `info` of either kind, from a transport file or from peers. */
export type AnyMetainfo = Metainfo | LiveMetainfo;

/** `metainfo`, marked `isFromPublic`. */
export function fromPublic<T extends AnyMetainfo>(metainfo: T): T {
  return metainfo.isFromPublic === true ? metainfo : { ...metainfo, isFromPublic: true };
}

/** True for a broadcast. */
export function isLive(metainfo: AnyMetainfo): metainfo is LiveMetainfo {
  return "publicKey" in metainfo;
}

/** The contents of a broadcast's new transport file. */
export interface LiveFileContents {
  /** Title. */
  readonly name: string;
  readonly publicKey: Uint8Array;
  readonly bytesPerS: number;
  /** Default 65536. */
  readonly pieceLengthBytes?: number;
  /** Default 8. */
  readonly substreams?: number;
  /** Default 60. */
  readonly windowS?: number;
  /** Tracker tiers. Default none. */
  readonly trackers?: readonly (readonly string[])[];
  /** DHT nodes, `host:port`. Default none. */
  readonly nodes?: readonly string[];
  /** BEP 27. Default false. */
  readonly isPrivate?: boolean;
}

function bad(reason: string): MillraceError {
  return new MillraceError("bad_transport_file", `bad live transport file: ${reason}`);
}

function need<T>(value: T | null, field: string): T {
  if (value === null) throw bad(`${field} is missing or out of range`);
  return value;
}

function equalsText(value: unknown, text: string): boolean {
  return value instanceof Uint8Array && decodeName(value) === text;
}

/** Reads the bencoded `info` of a broadcast, from ut_metadata or a file. Throws `bad_transport_file`. */
export async function parseLiveInfo(
  infoBytes: Uint8Array,
  extras: Pick<InfoExtras, "trackers" | "nodes"> = {},
): Promise<LiveMetainfo> {
  if (infoBytes.length > MAX_LIVE_INFO_BYTES) throw bad(`info is longer than ${MAX_LIVE_INFO_BYTES} bytes`);
  const limits = { errorCode: "bad_transport_file", maxDepth: 4, maxValues: MAX_LIVE_INFO_BYTES } as const;
  const info = decodeBencode(infoBytes, limits);
  if (!isDictionary(info)) throw bad("info is not a dictionary");
  const live = info["live"];
  if (!isDictionary(live)) throw bad("info.live is missing");
  if (live["v"] !== VERSION) throw bad("its version is unknown");
  if (!equalsText(live["alg"], "ed25519")) throw bad("its signature algorithm is unknown");
  if (!equalsText(live["t"], "mpegts")) throw bad("its media type is unknown");
  if (live["bs"] !== BLOCK_BYTES) throw bad(`its blocks are not ${BLOCK_BYTES} bytes long`);
  const publicKey = live["k"];
  if (!(publicKey instanceof Uint8Array) || publicKey.length !== KEY_BYTES) throw bad("info.live.k is not a key");
  if (!(info["name"] instanceof Uint8Array)) throw bad("info.name is missing");
  const own = infoBytes.slice();
  const infohash = await infohashOf(own);
  return {
    infohash,
    infohashHex: toHex(infohash),
    name: safeName(decodeName(info["name"])),
    pieceLengthBytes: readPieceLength(info),
    bytesPerS: need(integerWithin(live["br"], 1, MAX_LIVE_BYTES_PER_S), "info.live.br"),
    publicKey: publicKey.slice(),
    substreams: need(integerWithin(live["sub"], 1, MAX_SUBSTREAMS), "info.live.sub"),
    windowS: need(integerWithin(live["w"], MIN_LIVE_WINDOW_S, MAX_LIVE_WINDOW_S), "info.live.w"),
    isPrivate: info["private"] === 1,
    infoBytes: own,
    trackers: extras.trackers ?? [],
    nodes: extras.nodes ?? [],
  };
}

function readPieceLength(info: BencodeDictionary): number {
  const length = integerWithin(info["piece length"], BLOCK_BYTES, MAX_LIVE_PIECE_BYTES);
  if (length === null || length % BLOCK_BYTES !== 0) {
    throw bad(`info["piece length"] must be a multiple of ${BLOCK_BYTES} up to ${MAX_LIVE_PIECE_BYTES} bytes`);
  }
  return length;
}

/** Reads the transport file of a broadcast. Throws `bad_transport_file`, or `too_large` above 16 MiB. */
export async function parseLiveTransportFile(bytes: Uint8Array): Promise<LiveMetainfo> {
  const { infoBytes, extras } = await readTransportFile(bytes);
  return await parseLiveInfo(infoBytes, extras);
}

/**
 * Reads a bencoded `info` of either kind, as received from peers.
 *
 * @throws `bad_transport_file`, `too_large`: as `parseInfo`
 */
export async function parseAnyInfo(infoBytes: Uint8Array, extras: InfoExtras = {}): Promise<AnyMetainfo> {
  return await anyMetainfoOf(await decodeInfo(infoBytes), infoBytes, extras);
}

/**
 * Reads a transport file of either kind.
 *
 * @throws `bad_transport_file`, `too_large`: as `parseTransportFile`
 */
export async function parseAnyTransportFile(bytes: Uint8Array): Promise<AnyMetainfo> {
  const { info, infoBytes, extras } = await readTransportFile(bytes);
  return await anyMetainfoOf(info, infoBytes, extras);
}

async function anyMetainfoOf(info: unknown, infoBytes: Uint8Array, extras: InfoExtras): Promise<AnyMetainfo> {
  const isBroadcast = isDictionary(info) && isDictionary(info["live"]);
  return isBroadcast ? await parseLiveInfo(infoBytes, extras) : await metainfoOf(info, infoBytes, extras);
}

/** The transport file of `metainfo`, as `encodeMetainfo` makes it. */
export function encodeAnyMetainfo(metainfo: AnyMetainfo): Uint8Array<ArrayBuffer> {
  return encodeMetainfo({ webSeeds: [], ...metainfo });
}

/**
 * Makes the transport file of a broadcast and reads it back as a check; its content id is `contentId(metainfo)`. Throws
 * `bad_transport_file` if it isn't valid.
 */
export async function createLiveTransportFile(
  contents: LiveFileContents,
): Promise<{ bytes: Uint8Array<ArrayBuffer>; metainfo: LiveMetainfo }> {
  const infoBytes = encodeBencode({
    live: {
      alg: "ed25519",
      br: contents.bytesPerS,
      bs: BLOCK_BYTES,
      k: contents.publicKey,
      sub: contents.substreams ?? MAX_SUBSTREAMS,
      t: "mpegts",
      v: VERSION,
      w: contents.windowS ?? 60,
    },
    name: contents.name,
    "piece length": contents.pieceLengthBytes ?? 65536,
    private: contents.isPrivate === true ? 1 : undefined,
  });
  const metainfo = await parseLiveInfo(infoBytes, contents);
  return { bytes: encodeMetainfo({ ...metainfo, webSeeds: [] }), metainfo };
}

/** The magnet link of a torrent or broadcast (BEP 9, BEP 52): infohashes, name and trackers. */
export function magnetLink(
  metainfo:
    & Pick<AnyMetainfo, "infohashHex" | "name" | "trackers">
    & Pick<Metainfo, "infohashV2" | "shortPieces">,
): string {
  const { infohashHex, infohashV2, shortPieces, name } = metainfo;
  const topics = [
    ...(shortPieces === undefined ? [`urn:btih:${infohashHex}`] : []),
    ...(infohashV2 === undefined ? [] : [`urn:btmh:1220${toHex(infohashV2)}`]),
  ];
  const trackers = metainfo.trackers.flat().map((url) => `&tr=${encodeURIComponent(url)}`);
  const xt = topics.map((topic) => `xt=${topic}`).join("&");
  return `magnet:?${xt}&dn=${encodeURIComponent(name)}${trackers.join("")}`;
}
