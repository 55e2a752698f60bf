/** How the frames of a track are packed (RFC 9559, section 5.1.4.1.31): by zlib, or without the bytes that all begin with. */
import { inflated } from "../../../bytes/gunzip.ts";
import { children, type ElementBudget, uint } from "./ebml.ts";
import { ID } from "./ids.ts";

/** What undoes the packing of a track's frames. */
export interface FramePacking {
  /** Bytes removed from the start of each frame (ContentCompAlgo 3), to be put back; null: none. */
  readonly strippedHeader: Uint8Array | null;
  /** Each frame is compressed by zlib. */
  readonly isDeflated: boolean;
}

/** What a track says of its packing. */
export interface Encodings extends FramePacking {
  /** Its codec data is compressed by zlib, too. */
  readonly isPrivateDeflated: boolean;
  /** Why the track cannot be unpacked; null: it can. */
  readonly problem: string | null;
}

/** ContentCompAlgo. */
const ZLIB = 0;
const HEADER_STRIPPING = 3;
/** Bits of ContentEncodingScope. */
const FRAMES = 1;
const CODEC_DATA = 2;

/**
 * Longest prefix that header stripping may put back, bytes: real ones are 2–8 (sync words), and it is restored for every
 * frame, however small.
 */
const MAX_STRIPPED_BYTES = 16;
/**
 * Most bytes that zlib may make of a frame: these, and so many times those that it has. Media hardly gets smaller; silence
 * in PCM does, and a stranger's zeros do a thousand times.
 */
const FREE_BYTES = 64 * 1024;
const MAX_GROWTH = 8;

const NOT_PACKED: Encodings = { strippedHeader: null, isDeflated: false, isPrivateDeflated: false, problem: null };

/** Reads a ContentEncodings element, parsing no more elements than `budget` allows. */
export function readEncodings(data: Uint8Array, budget: ElementBudget): Encodings {
  let found = NOT_PACKED;
  const refused = (problem: string): Encodings => ({ ...NOT_PACKED, problem });
  for (const encoding of children(data, budget)) {
    if (encoding.id !== ID.CONTENT_ENCODING) continue;
    let scope = FRAMES;
    let type = 0;
    let algorithm = ZLIB;
    let settings: Uint8Array = new Uint8Array(0);
    for (const field of children(encoding.data, budget)) {
      if (field.id === ID.CONTENT_ENCODING_SCOPE) scope = uint(field.data);
      else if (field.id === ID.CONTENT_ENCODING_TYPE) type = uint(field.data);
      else if (field.id === ID.CONTENT_COMPRESSION) {
        for (const { id, data } of children(field.data, budget)) {
          if (id === ID.CONTENT_COMP_ALGO) algorithm = uint(data);
          else if (id === ID.CONTENT_COMP_SETTINGS) settings = data.slice();
        }
      }
    }
    if (type !== 0) return refused("encrypted");
    if ((scope & (FRAMES | CODEC_DATA)) === 0) continue;
    if (found !== NOT_PACKED || settings.length > MAX_STRIPPED_BYTES) return refused("compressed twice");
    if (algorithm === ZLIB) {
      found = { ...found, isDeflated: (scope & FRAMES) !== 0, isPrivateDeflated: (scope & CODEC_DATA) !== 0 };
    } else if (algorithm !== HEADER_STRIPPING) return refused("compressed");
    else if ((scope & CODEC_DATA) !== 0) return refused("with compressed codec data");
    else found = { ...found, strippedHeader: settings };
  }
  return found;
}

/** What zlib made of a frame or of codec data, as it was before; null if it is damaged, grows too much or has over `mostBytes`. */
export function unpacked(packed: Uint8Array, mostBytes = Infinity): Uint8Array | null {
  return inflated(packed, Math.min(mostBytes, FREE_BYTES + MAX_GROWTH * packed.length));
}

/** `frame` as it was before it was packed; null if it is damaged, or zlib makes more than `mostBytes` of it. */
export function wholeFrame(
  { strippedHeader, isDeflated }: FramePacking,
  frame: Uint8Array,
  mostBytes = Infinity,
): Uint8Array | null {
  if (isDeflated) return unpacked(frame, mostBytes);
  if (strippedHeader === null) return frame;
  const whole = new Uint8Array(strippedHeader.length + frame.length);
  whole.set(strippedHeader);
  whole.set(frame, strippedHeader.length);
  return whole;
}
