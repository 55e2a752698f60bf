/** Splits FLAC into frames, which end where the next one begins. */
import type { ByteSource } from "../../../bytes/source.ts";
import { turnWhenDue } from "../../../bytes/turn.ts";
import { ByteWindow } from "../../source/byte-window.ts";
import {
  FLAC_FOOTER_BYTES,
  type FlacFrame,
  type FlacInfo,
  MAX_FLAC_HEADER_BYTES,
  maxFlacFrameBytes,
  readFlacFrame,
} from "./flac-frame.ts";

/** Where a frame begins. */
export interface FlacPlace {
  readonly position: number;
  /** Number of its first sample. */
  readonly sample: number;
}

/** A whole frame. */
export interface WalkedFlac extends FlacPlace {
  readonly samples: number;
  readonly data: Uint8Array;
}

/** Bytes read at a time: about a second. */
const CHUNK_BYTES = 128 * 1024;
/** Longest stretch without a frame, bytes; after it the stream counts as ended. */
const MAX_GARBAGE_BYTES = 1024 * 1024;
/** Most false headers in one walk: searching for what follows each is the costly part. */
const MAX_FALSE_HEADERS = 24;
/** ID3v1, which some programs append to the last frame. */
const ID3V1_BYTES = 128;

/** A header in `bytes` at or after `from`, before `until`, that `fits`; null when there is none. */
function search(
  bytes: Uint8Array,
  from: number,
  until: number,
  info: FlacInfo,
  fits: (frame: FlacFrame) => boolean,
): { readonly at: number; readonly frame: FlacFrame } | null {
  for (let at = from; at < until; at++) {
    // Check the sync code before anything costly: hostile files may hold it, or its first byte, everywhere.
    if (bytes[at] !== 0xff || (bytes[at + 1]! & 0xfe) !== 0xf8) continue;
    const frame = readFlacFrame(bytes, at, info);
    if (frame !== null && fits(frame)) return { at, frame };
  }
  return null;
}

/**
 * The frames from `start` on to the end of the file, in batches as bytes arrive. Damaged ones are left out: `onGap` hears
 * where frames are missing between two others, or from where on nothing is found. Rejects as the source does.
 */
export async function* walkFlac(
  source: ByteSource,
  start: FlacPlace,
  info: FlacInfo,
  signal: AbortSignal,
  onGap: (at: number) => void = () => {},
): AsyncGenerator<readonly WalkedFlac[]> {
  const window = new ByteWindow(source, start.position, { chunkBytes: CHUNK_BYTES, joinedBytes: CHUNK_BYTES, signal });
  const lookBytes = maxFlacFrameBytes(info) + MAX_FLAC_HEADER_BYTES;
  let least = start.sample;
  let falseHeaders = 0;
  let hasFrame = false;
  for (;;) {
    await window.need(lookBytes);
    const batch: WalkedFlac[] = [];
    while (window.available >= (window.atEnd ? MAX_FLAC_HEADER_BYTES : lookBytes)) {
      const { bytes, at, position } = window;
      const frame = readFlacFrame(bytes, at, info);
      const isNext = frame !== null && frame.sample >= least;
      const next = isNext
        ? search(
          bytes,
          at + frame.headerBytes + FLAC_FOOTER_BYTES,
          Math.min(bytes.length, at + lookBytes),
          info,
          (one) => one.sample === frame.sample + frame.samples,
        )
        : null;
      if (isNext && (next !== null || window.atEnd && bytes.length - at <= lookBytes)) {
        const end = next?.at ?? endOfSound(bytes, at);
        if (hasFrame && frame.sample > least) onGap(position);
        hasFrame = true;
        batch.push({ position, sample: frame.sample, samples: frame.samples, data: bytes.subarray(at, end) });
        least = frame.sample + frame.samples;
        window.at = next?.at ?? bytes.length;
        continue;
      }
      await turnWhenDue(signal);
      if (++falseHeaders > MAX_FALSE_HEADERS || !await resume(window, least, info)) {
        if (source.sizeBytes - position > lookBytes) onGap(position);
        if (batch.length > 0) yield batch;
        return;
      }
    }
    if (batch.length > 0) yield batch;
    if (window.atEnd && window.available < MAX_FLAC_HEADER_BYTES) return;
  }
}

/** Moves past the present position to the next frame whose sample is at least `least`; false when none is near. */
async function resume(window: ByteWindow, least: number, info: FlacInfo): Promise<boolean> {
  window.at++;
  for (let skipped = 0; skipped <= MAX_GARBAGE_BYTES;) {
    await window.need(CHUNK_BYTES);
    const { bytes, at } = window;
    if (bytes.length - at < MAX_FLAC_HEADER_BYTES) return false;
    const until = window.atEnd ? bytes.length : bytes.length - MAX_FLAC_HEADER_BYTES;
    // A header that claims to be far ahead is chance, not a frame.
    const farthest = least + 60 * info.sampleRate;
    const found = search(bytes, at, until, info, ({ sample }) => sample >= least && sample <= farthest);
    if (found !== null) {
      window.at = found.at;
      return true;
    }
    if (window.atEnd) return false;
    skipped += until - at;
    window.at = until;
  }
  return false;
}

function endOfSound(bytes: Uint8Array, at: number): number {
  const tag = bytes.length - ID3V1_BYTES;
  const isTag = tag > at && bytes[tag] === 0x54 && bytes[tag + 1] === 0x41 && bytes[tag + 2] === 0x47;
  return isTag ? tag : bytes.length;
}

/** The first frame that begins in `[from, until)` and is followed by the next one or the end; null when there is none. */
export async function findFrame(
  source: ByteSource,
  from: number,
  until: number,
  info: FlacInfo,
  signal: AbortSignal,
): Promise<FlacPlace | null> {
  const window = new ByteWindow(source, from, { chunkBytes: CHUNK_BYTES, joinedBytes: CHUNK_BYTES, signal });
  const lookBytes = maxFlacFrameBytes(info) + MAX_FLAC_HEADER_BYTES;
  let falseHeaders = 0;
  for (let skipped = 0; skipped <= MAX_GARBAGE_BYTES && window.position < until;) {
    await window.need(2 * lookBytes);
    const { bytes, at, position } = window;
    const stop = window.atEnd ? bytes.length : bytes.length - lookBytes;
    const found = search(bytes, at, Math.min(stop, at + until - position), info, () => true);
    if (found === null) {
      if (window.atEnd) return null;
      skipped += stop - at;
      window.at = stop;
      continue;
    }
    const { frame } = found;
    const isNext = (next: FlacFrame) => next.sample === frame.sample + frame.samples;
    const behind = found.at + frame.headerBytes + FLAC_FOOTER_BYTES;
    const next = search(bytes, behind, Math.min(bytes.length, found.at + lookBytes), info, isNext);
    const isLast = window.atEnd && bytes.length - found.at <= lookBytes;
    if (next !== null || isLast) return { position: position + found.at - at, sample: frame.sample };
    if (++falseHeaders > MAX_FALSE_HEADERS) return null;
    await turnWhenDue(signal);
    skipped += found.at + 1 - at;
    window.at = found.at + 1;
  }
  return null;
}
