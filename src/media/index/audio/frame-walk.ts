/** Walks the frames of MPEG audio and ADTS: skips tags, finds the next frame after damage. */
import {
  AUDIO_HEADER_BYTES,
  type AudioFrame,
  type AudioFrameSyntax,
  id3TagBytes,
  MAX_AUDIO_FRAME_BYTES,
} from "../../../bytes/audio-frames.ts";
import type { ByteSource } from "../../../bytes/source.ts";
import { ByteWindow } from "../../source/byte-window.ts";

/** A frame in its place. */
export interface WalkedFrame {
  readonly position: number;
  readonly frame: AudioFrame;
  readonly data: Uint8Array;
}

/** Bytes read at a time: about a second. Bytes beyond the end of a run are read again for the next. */
const CHUNK_BYTES = 16 * 1024;
/** A frame and the header after it. */
const LOOK_BYTES = MAX_AUDIO_FRAME_BYTES + 2 * AUDIO_HEADER_BYTES;
/** Longest stretch that is neither sound nor tag, bytes; after it the stream counts as ended. */
const MAX_GARBAGE_BYTES = 1024 * 1024;
/** ID3v1, at the end of a file, or of one of several that were joined. */
const ID3V1_BYTES = 128;
const APE_HEADER_BYTES = 32;
/** Every tag that may follow the last frame. */
const TRAILERS = ["TAG", "APETAGEX", "LYRICSBEGIN", "ID3"];

/** What to walk. */
export interface FrameWalkOptions {
  readonly source: ByteSource;
  readonly syntax: AudioFrameSyntax;
  /** Kind of the frames wanted; null: the first frame followed by two more decides. */
  readonly key: number | null;
  readonly position: number;
  /** A frame is believed to begin at `position`. */
  readonly isSynced: boolean;
  readonly signal: AbortSignal;
  /** Hears where frames do not follow one another: something else is between them, or the walk ends in it. */
  readonly onGap?: (at: number) => void;
}

/** The frames from a position on to the end of the file, in batches as bytes arrive. Rejects as the source does. */
export async function* walkFrames(options: FrameWalkOptions): AsyncGenerator<readonly WalkedFrame[]> {
  const { source, syntax, signal, onGap } = options;
  const window = new ByteWindow(source, options.position, {
    chunkBytes: CHUNK_BYTES,
    joinedBytes: CHUNK_BYTES,
    signal,
  });
  let { key, isSynced } = options;
  let garbageBytes = 0;
  /** Where the last frame ended; null before the first one. */
  let endedAt: number | null = null;
  while (garbageBytes <= MAX_GARBAGE_BYTES) {
    await window.need(LOOK_BYTES);
    if (window.available < AUDIO_HEADER_BYTES) return;
    const batch: WalkedFrame[] = [];
    // Near the end of the bytes read, go on only if the file ends there too.
    while (window.available >= (window.atEnd ? AUDIO_HEADER_BYTES : LOOK_BYTES)) {
      const { bytes, at, position } = window;
      const frame = syntax(bytes, at);
      const fits = frame !== null && at + frame.sizeBytes <= bytes.length && (key === null || frame.key === key);
      if (fits && (isSynced && key !== null || isFollowed(bytes, at, frame, syntax, key === null ? 2 : 1))) {
        key = frame.key;
        if (endedAt !== null && garbageBytes > 0) onGap?.(endedAt);
        batch.push({ position, frame, data: bytes.subarray(at, at + frame.sizeBytes) });
        window.at += frame.sizeBytes;
        isSynced = true;
        garbageBytes = 0;
        endedAt = window.position;
        continue;
      }
      const tagBytes = tagBytesAt(bytes, at, source.sizeBytes - position);
      if (tagBytes > 0) {
        window.seek(position + Math.min(tagBytes, source.sizeBytes - position));
        if (window.available === 0) break;
        continue;
      }
      isSynced = false;
      window.at++;
      if (++garbageBytes > MAX_GARBAGE_BYTES) break;
    }
    if (batch.length > 0) yield batch;
  }
  onGap?.(endedAt ?? options.position);
}

/** Whether `more` frames of the same stream follow, or the end or a tag. */
function isFollowed(bytes: Uint8Array, at: number, frame: AudioFrame, syntax: AudioFrameSyntax, more: number): boolean {
  let end = at + frame.sizeBytes;
  for (let i = 0; i < more; i++) {
    if (end + AUDIO_HEADER_BYTES > bytes.length) return true;
    const next = syntax(bytes, end);
    if (next === null || next.key !== frame.key) return TRAILERS.some((trailer) => startsWith(bytes, end, trailer));
    end += next.sizeBytes;
  }
  return true;
}

function startsWith(bytes: Uint8Array, at: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text.charCodeAt(i)) return false;
  return true;
}

/** Length of the tag at `at`, from where the file has `left` bytes; 0 when there is none. */
function tagBytesAt(bytes: Uint8Array, at: number, left: number): number {
  const id3 = id3TagBytes(bytes, at);
  if (id3 > 0) return id3;
  if (left >= ID3V1_BYTES && startsWith(bytes, at, "TAG")) return ID3V1_BYTES;
  if (at + APE_HEADER_BYTES > bytes.length || !startsWith(bytes, at, "APETAGEX")) return 0;
  // The size counts items and footer, not this header.
  const size = new DataView(bytes.buffer, bytes.byteOffset + at, APE_HEADER_BYTES).getUint32(12, true);
  return APE_HEADER_BYTES + size;
}
