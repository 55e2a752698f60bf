/** How access units of a codec, as containers store them, become what MPEG TS carries. */
import type { Track } from "../../../types.ts";

/** The way one track is carried. Immutable. */
export interface ElementaryFormat {
  /** Table 2-34 of ISO/IEC 13818-1; for AC-3 and E-AC-3 ATSC A/53. */
  readonly streamType: number;
  /** PES stream_id. */
  readonly streamId: number;
  /** Registration descriptor, or null. */
  readonly registration: string | null;
  /** Most bytes that `write` puts out for an access unit of `sizeBytes`. Known from the index alone: the layout rests on it. */
  maxBytes(sizeBytes: number, keyframe: boolean): number;
  /**
   * Writes the access unit `data[from, to)` at `out[at]`; answers the end, at most `at + maxBytes(to - from, keyframe)`.
   * Damaged access units come out shortened, never with an error: one bad frame must not end a film.
   */
  write(out: Uint8Array, at: number, data: Uint8Array, from: number, to: number, keyframe: boolean): number;
}

/** Makes the format of a track from its codec private data; null when it cannot be carried (with that data). */
export type FormatOf = (track: Track) => ElementaryFormat | null;

/** Codecs that are carried as they are. */
export function passThrough(streamType: number, streamId: number, registration: string | null): ElementaryFormat {
  return {
    streamType,
    streamId,
    registration,
    maxBytes: (sizeBytes) => sizeBytes,
    write(out, at, data, from, to) {
      copyBytes(out, at, data, from, to);
      return at + to - from;
    },
  };
}

/** Below this a loop beats making a view and calling `set`. */
const SMALL_COPY_BYTES = 32;

/** `out.set(data.subarray(from, to), at)`, cheaper for the few bytes that many audio frames and NAL units are. */
export function copyBytes(out: Uint8Array, at: number, data: Uint8Array, from: number, to: number): void {
  if (to - from < SMALL_COPY_BYTES) {
    for (let i = from; i < to; i++) out[at++] = data[i]!;
  } else if (from === 0 && to === data.length) {
    out.set(data, at);
  } else {
    out.set(data.subarray(from, to), at);
  }
}
