/** Messages of the `live1` extension (BEP 10), big-endian, first byte the type. */
import { MillraceError } from "../errors.ts";
import { MAX_SEQUENCE } from "./header.ts";
import { emptyPaths, PATH_WORDS, type Place } from "./node/neighbour/place.ts";

/** First byte of a message. */
const LiveMessageType = {
  window: 0,
  header: 1,
  subscribe: 2,
  unsubscribe: 3,
  ping: 4,
  place: 5,
  headers: 11,
  fill: 13,
  pong: 14,
} as const;

/** Why a substream is not, or no longer, pushed. */
export const UnsubscribeReason = {
  /** The child has another parent. */
  moved: 0,
  /** The parent's uplink is full. */
  full: 1,
  /** The parent does not receive it. */
  empty: 2,
  /** The parent leaves. */
  leaving: 3,
} as const;

/** The bitmap of a peer that lacks nothing, the usual case. */
const NO_BITS = new Uint8Array();

/** Bit of a PING's nonce: its sender understands PONG, and wants that in the place of an echo. */
export const WANTS_TIME = 1n << 63n;

/** PLACE of a peer that has not measured its uplink. */
const UNKNOWN_UPLINK = 0xffffffff;

/** Longest message, bytes: the largest header (64 hashes) and its type. Checked before anything is read. */
export const MAX_LIVE_MESSAGE_BYTES = 2048;

/** Headers that one HEADERS may ask for. Members ask for one at a time, when a block comes without its header. */
export const MAX_ASKED_HEADERS = 16;

/** Pieces that the bitmap of one WINDOW covers: 255 bytes, at 64 KiB per piece 130 MB of stream. */
export const MAX_WINDOW_PIECES = 255 * 8;

/**
 * The pieces of a peer: all of `[base, solid)`, and from `solid` on those whose bit is set (most significant first).
 * `base` = `solid` and no bits: nothing yet.
 */
export interface WindowMessage {
  readonly type: "window";
  readonly epoch: number;
  readonly base: number;
  readonly solid: number;
  /** At most 255 bytes; ends with a byte that isn't zero. */
  readonly bitmap: Uint8Array;
}

/** A message. `bytes` of a header are still to be read with `decodeHeader`. */
export type LiveMessage =
  | WindowMessage
  | { readonly type: "header"; readonly bytes: Uint8Array }
  | { readonly type: "subscribe"; readonly mask: number; readonly from: number }
  | { readonly type: "unsubscribe"; readonly mask: number; readonly reason: number }
  /** A PING, or the PONG that echoes it: a member that recognises its own nonce has received a PONG. */
  | { readonly type: "ping"; readonly nonce: bigint }
  /**
   * PLACE, an addition that others may leave out: `up u32 | n u8 | n × depth u8 | n × bar u8 | mask u8 | path u128 for each bit
   * of the mask`, n substreams.
   */
  | PlaceMessage
  /**
   * HEADERS: `lean u8 | n u8 | n × seq u32`. Pushes of the substreams in `lean` need no header before them; those of the
   * pieces `seqs` are asked for.
   */
  | { readonly type: "headers"; readonly lean: number; readonly seqs: readonly number[] }
  /** PONG to a PING whose nonce has the bit `WANTS_TIME`: `atMs`, the clock of its sender when the PING came, ms modulo 2^32. */
  | { readonly type: "pong"; readonly nonce: bigint; readonly atMs: number }
  /** FILL: `bytes` in all, of no meaning, 1 to `MAX_LIVE_MESSAGE_BYTES`. Sent, never returned by `decodeLiveMessage`. */
  | { readonly type: "fill"; readonly bytes: number };

/** A peer's place in the trees. */
export interface PlaceMessage extends Place {
  readonly type: "place";
  /** Bit i: the path of substream i is on the wire. The other paths stay as last sent; `paths` is ignored there. */
  readonly pathMask: number;
}

/** Encodes a message. Fields are taken as they are: the caller keeps them in range. */
export function encodeLiveMessage(message: LiveMessage): Uint8Array<ArrayBuffer> {
  switch (message.type) {
    case "window": {
      const bytes = sized(14 + message.bitmap.length, LiveMessageType.window);
      writeU32(bytes, 1, message.epoch);
      writeU32(bytes, 5, message.base);
      writeU32(bytes, 9, message.solid);
      bytes[13] = message.bitmap.length;
      bytes.set(message.bitmap, 14);
      return bytes;
    }
    case "header": {
      const bytes = sized(1 + message.bytes.length, LiveMessageType.header);
      bytes.set(message.bytes, 1);
      return bytes;
    }
    case "subscribe": {
      const bytes = sized(6, LiveMessageType.subscribe);
      bytes[1] = message.mask;
      writeU32(bytes, 2, message.from);
      return bytes;
    }
    case "unsubscribe": {
      const bytes = sized(3, LiveMessageType.unsubscribe);
      bytes[1] = message.mask;
      bytes[2] = message.reason;
      return bytes;
    }
    case "ping": {
      const bytes = sized(9, LiveMessageType.ping);
      new DataView(bytes.buffer).setBigUint64(1, message.nonce);
      return bytes;
    }
    case "place": {
      const count = message.depths.length;
      const { paths, pathMask } = message;
      const words = wordsOf(pathMask, count);
      const bytes = sized(7 + 2 * count + 4 * words.length, LiveMessageType.place);
      writeU32(bytes, 1, message.upBytesPerS ?? UNKNOWN_UPLINK);
      bytes[5] = count;
      bytes.set(message.depths, 6);
      bytes.set(message.bars, 6 + count);
      bytes[6 + 2 * count] = pathMask;
      words.forEach((word, i) => writeU32(bytes, 7 + 2 * count + 4 * i, paths[word]!));
      return bytes;
    }
    case "headers": {
      const bytes = sized(3 + 4 * message.seqs.length, LiveMessageType.headers);
      bytes[1] = message.lean;
      bytes[2] = message.seqs.length;
      message.seqs.forEach((seq, i) => writeU32(bytes, 3 + 4 * i, seq));
      return bytes;
    }
    case "pong": {
      const bytes = sized(13, LiveMessageType.pong);
      new DataView(bytes.buffer).setBigUint64(1, message.nonce);
      writeU32(bytes, 9, message.atMs);
      return bytes;
    }
    case "fill":
      return sized(message.bytes, LiveMessageType.fill);
  }
}

/**
 * Reads a message; arrays in it are views of `bytes`. null for a type of a later version. Throws `protocol_violation`
 * when it is malformed or too long.
 */
export function decodeLiveMessage(bytes: Uint8Array): LiveMessage | null {
  if (bytes.length === 0) throw violation("is empty");
  if (bytes.length > MAX_LIVE_MESSAGE_BYTES) throw violation("is too long");
  const need = (length: number) => {
    if (bytes.length !== length) throw violation("has a wrong length");
  };
  switch (bytes[0]) {
    case LiveMessageType.window: {
      if (bytes.length < 14) throw violation("has a wrong length");
      need(14 + bytes[13]!);
      const base = readU32(bytes, 5);
      const solid = readU32(bytes, 9);
      if (base > solid || solid > MAX_SEQUENCE + 1) throw violation("reports an impossible window");
      return {
        type: "window",
        epoch: readU32(bytes, 1),
        base,
        solid,
        bitmap: bytes.length === 14 ? NO_BITS : bytes.subarray(14),
      };
    }
    case LiveMessageType.header:
      return { type: "header", bytes: bytes.subarray(1) };
    case LiveMessageType.subscribe: {
      need(6);
      const from = readU32(bytes, 2);
      if (from > MAX_SEQUENCE + 1) throw violation("names an impossible piece");
      return { type: "subscribe", mask: bytes[1]!, from };
    }
    case LiveMessageType.unsubscribe:
      need(3);
      return { type: "unsubscribe", mask: bytes[1]!, reason: bytes[2]! };
    case LiveMessageType.ping:
      need(9);
      return { type: "ping", nonce: new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(1) };
    case LiveMessageType.place: {
      if (bytes.length < 7) throw violation("has a wrong length");
      const count = bytes[5]!;
      const [barsAt, maskAt] = [6 + count, 6 + 2 * count];
      const pathMask = bytes[maskAt] ?? 0;
      const words = wordsOf(pathMask, count);
      need(maskAt + 1 + 4 * words.length);
      const up = readU32(bytes, 1);
      const upBytesPerS = up === UNKNOWN_UPLINK ? null : up;
      const paths = emptyPaths(count);
      words.forEach((word, i) => (paths[word] = readU32(bytes, maskAt + 1 + 4 * i)));
      const [depths, bars] = [bytes.slice(6, barsAt), bytes.slice(barsAt, maskAt)];
      return { type: "place", upBytesPerS, depths, bars, paths, pathMask };
    }
    case LiveMessageType.headers: {
      const count = bytes[2] ?? 0;
      need(3 + 4 * count);
      if (count > MAX_ASKED_HEADERS) throw violation("asks for too many headers");
      return {
        type: "headers",
        lean: bytes[1]!,
        seqs: Array.from({ length: count }, (_, i) => readU32(bytes, 3 + 4 * i)),
      };
    }
    case LiveMessageType.pong:
      need(13);
      return {
        type: "pong",
        nonce: new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(1),
        atMs: readU32(bytes, 9),
      };
    default:
      return null;
  }
}

/** True when `window` reports that its sender has piece `seq`. */
export function windowHas(window: WindowMessage, seq: number): boolean {
  if (seq < window.solid) return seq >= window.base;
  const bit = seq - window.solid;
  return ((window.bitmap[bit >> 3] ?? 0) & (0x80 >> (bit & 7))) !== 0;
}

/** Newest piece that `window` reports; `base` − 1 when it has none. */
export function windowNewest(window: WindowMessage): number {
  for (let i = window.bitmap.length - 1; i >= 0; i--) {
    const byte = window.bitmap[i]!;
    if (byte !== 0) return window.solid + 8 * i + 7 - Math.log2(byte & -byte);
  }
  return window.solid - 1;
}

/** Places in `Place.paths` of what a PLACE with `pathMask` carries. */
function wordsOf(pathMask: number, substreams: number): number[] {
  const words: number[] = [];
  for (let i = 0; i < PATH_WORDS * substreams; i++) {
    if (((pathMask >> Math.floor(i / PATH_WORDS)) & 1) === 1) words.push(i);
  }
  return words;
}

function sized(length: number, type: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  bytes[0] = type;
  return bytes;
}

// A DataView for each of dozens of messages per second and neighbour costs more than reading the values does.
function readU32(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
}

function writeU32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}

function violation(reason: string): MillraceError {
  return new MillraceError("protocol_violation", `a live1 message ${reason}`);
}
