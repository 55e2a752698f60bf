/** Blocks and their lacing (RFC 9559, section 10). */
import { vintLength, vintValue } from "./ebml.ts";

/** The head of a block: track, time relative to the cluster, flags, and where the frames start. */
export interface BlockHead {
  readonly track: number;
  /** Signed, in timestamp units, relative to the cluster. */
  readonly relativeTime: number;
  readonly flags: number;
  /** Index of the first byte after the head. */
  readonly body: number;
}

/** Reads a block's head from `[at, end)`; null when there is none. */
export function readBlockHead(bytes: Uint8Array, at: number, end: number): BlockHead | null {
  const length = at < end ? vintLength(bytes[at]!) : 0;
  if (length === 0 || at + length + 3 > end) return null;
  const track = vintValue(bytes, at, length);
  const time = (bytes[at + length]! << 8) | bytes[at + length + 1]!;
  return {
    track,
    relativeTime: time >= 0x8000 ? time - 0x10000 : time,
    flags: bytes[at + length + 2]!,
    body: at + length + 3,
  };
}

const XIPH = 1;
const FIXED = 2;
const EBML = 3;

/**
 * The frames of a block's payload `[at, end)` by the lacing in `flags`; null when the lacing is damaged. There are at
 * most as many frames as bytes.
 */
export function splitFrames(bytes: Uint8Array, at: number, end: number, flags: number): Uint8Array[] | null {
  const lacing = (flags >> 1) & 3;
  if (lacing === 0) return [bytes.subarray(at, end)];
  if (at >= end) return null;
  const count = bytes[at++]! + 1;
  const sizes: number[] = [];
  if (lacing === FIXED) {
    if (end === at || (end - at) % count !== 0) return null;
    for (let i = 1; i < count; i++) sizes.push((end - at) / count);
  } else if (lacing === XIPH) {
    for (let i = 1; i < count; i++) {
      let size = 0;
      for (let byte = 255; byte === 255;) {
        if (at >= end) return null;
        byte = bytes[at++]!;
        size += byte;
      }
      sizes.push(size);
    }
  } else if (lacing === EBML) {
    for (let i = 1, size = 0; i < count; i++) {
      const length = at < end ? vintLength(bytes[at]!) : 0;
      if (length === 0 || at + length > end) return null;
      const value = vintValue(bytes, at, length);
      if (value < 0) return null;
      // After the first, sizes are differences, stored with half the range added.
      size = i === 1 ? value : size + value - (2 ** (7 * length - 1) - 1);
      if (size < 0) return null;
      sizes.push(size);
      at += length;
    }
  }
  const frames: Uint8Array[] = [];
  for (const size of sizes) {
    if (at + size > end) return null;
    frames.push(bytes.subarray(at, at + size));
    at += size;
  }
  frames.push(bytes.subarray(at, end));
  return frames;
}
