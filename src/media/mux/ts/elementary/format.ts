/** How access units of a codec, as containers store them, are converted to the form that MPEG TS carries. */
import type { Track } from "../../../model/types.ts";
import type { Payload } from "../payload.ts";

/** The way one track is carried. Immutable. */
export interface ElementaryFormat {
  /** Table 2-34 of ISO/IEC 13818-1; for AC-3 and E-AC-3 ATSC A/53. */
  readonly streamType: number;
  /** PES stream_id. */
  readonly streamId: number;
  /** Registration descriptor, or null. */
  readonly registration: string | null;
  /** Registration descriptor that the program needs, so that players know the stream type. Absent: none. */
  readonly programRegistration?: string;
  /** Further descriptors of the stream. Absent: none. */
  readonly descriptors?: readonly number[];
  /**
   * How long each access unit lasts, 90 kHz, if several can share a PES; null if they can't, or their durations differ.
   */
  readonly frame90k: number | null;
  /**
   * Most bytes that `fill` makes from an access unit of `sizeBytes`. Known from the index alone: the layout rests on
   * it.
   */
  maxBytes(sizeBytes: number, keyframe: boolean): number;
  /**
   * Appends the access unit `data[from, to)` to the head in `payload`: at most `maxBytes(to - from, keyframe)`. Damaged
   * access units come out shortened, never with an error: one bad frame must not end a film.
   */
  fill(payload: Payload, data: Uint8Array, from: number, to: number, keyframe: boolean): void;
  /**
   * Subtitles alone: the payloads of the PES that an access unit becomes, which `fill` then has no part in; none if it is
   * damaged.
   */
  partsOf?(data: Uint8Array): readonly Uint8Array[];
  /** Whether the access unit says itself that decoding can start with it. Absent: only the container knows. */
  isAccessPoint?(data: Uint8Array): boolean;
}

/** Makes the format of a track from its codec private data; null when it cannot be carried (with that data). */
export type FormatOf = (track: Track) => ElementaryFormat | null;

/** Codecs that are carried unchanged. */
export function passThrough(
  streamType: number,
  streamId: number,
  registration: string | null,
  frame90k: number | null = null,
): ElementaryFormat {
  return {
    streamType,
    streamId,
    registration,
    frame90k,
    maxBytes: (sizeBytes) => sizeBytes,
    fill: (payload, data, from, to) => payload.setData(data, from, to),
  };
}
