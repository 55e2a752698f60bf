/**
 * MPEG-4 part 2 (ISO/IEC 14496-2): containers keep the headers of the sequence apart from the pictures, as "decoder specific
 * info". MPEG TS has them in the stream, before each picture at which decoding can start.
 */
import { STREAM_TYPE } from "../../../../bytes/ts/codes.ts";
import type { Track } from "../../../model/types.ts";
import { type ElementaryFormat, passThrough } from "./format.ts";

const VIDEO_STREAM_ID = 0xe0;
/** Most bytes of headers; real ones take 30 to 60 bytes. */
const MAX_HEADER_BYTES = 4096;
/** How far into a picture its own headers are looked for, bytes: they come first. */
const LOOK_BYTES = 256;
/** Start codes of a video object layer (6.2.1). */
const FIRST_LAYER = 0x20;
const LAST_LAYER = 0x2f;

/** How it is carried; null where the headers are not known. */
export function mpeg4Format({ isFramed, codecPrivate }: Track): ElementaryFormat | null {
  const copied = passThrough(STREAM_TYPE.mpeg4Video, VIDEO_STREAM_ID, null);
  if (isFramed) return copied;
  if (codecPrivate === null || codecPrivate.length > MAX_HEADER_BYTES) return null;
  if (!hasLayer(codecPrivate, 0, codecPrivate.length)) return null;
  return {
    ...copied,
    maxBytes: (sizeBytes, keyframe) => sizeBytes + (keyframe ? codecPrivate.length : 0),
    fill(payload, data, from, to, keyframe) {
      if (keyframe && !hasLayer(data, from, Math.min(to, from + LOOK_BYTES))) payload.addHead(codecPrivate);
      payload.setData(data, from, to);
    },
  };
}

/** Whether `bytes[from, to)` contain the header of a video object layer. */
function hasLayer(bytes: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at + 3 < to; at++) {
    if (bytes[at] !== 0 || bytes[at + 1] !== 0 || bytes[at + 2] !== 1) continue;
    if (bytes[at + 3]! >= FIRST_LAYER && bytes[at + 3]! <= LAST_LAYER) return true;
  }
  return false;
}
