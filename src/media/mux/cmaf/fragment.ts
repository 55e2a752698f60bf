/** Writes one fragment: `moof`, and `mdat` with the access units track by track (ISO/IEC 14496-12, 8.8). */
import type { PacketSink } from "../chunks.ts";
import type { CmafStream } from "./init-segment.ts";

/** An access unit with its place in time, 90 kHz from the output's zero. */
export interface FragmentUnit {
  readonly dts90k: number;
  /** At least `dts90k`: composition offsets have no sign, which players read differently. */
  readonly pts90k: number;
  /** Time until the next one of its track is decoded. */
  readonly duration90k: number;
  readonly keyframe: boolean;
  readonly data: Uint8Array;
}

/** The access units of one track in a fragment, in decoding order. */
export interface FragmentTrack {
  readonly stream: CmafStream;
  readonly units: readonly FragmentUnit[];
}

/** `moof` with its `mfhd`, and the header of `mdat`. */
const FIXED_BYTES = 8 + 16 + 8;
/** `traf`, `tfhd` with default flags, `tfdt` of 64 bits, and `trun` without its entries. */
const TRACK_BYTES = 8 + 20 + 20 + 20;
/** Duration, size, flags and composition offset. */
const VIDEO_UNIT_BYTES = 16;
/** Duration and size. */
const AUDIO_UNIT_BYTES = 8;
/** Most bytes copied in one step: the sink's buffers are of this order. */
const STEP_BYTES = 64 * 1024;

const BASE_IS_MOOF = 0x020000;
const HAS_DEFAULT_FLAGS = 0x20;
const RUN_OF_AUDIO = 0x1 | 0x100 | 0x200;
const RUN_OF_VIDEO = RUN_OF_AUDIO | 0x400 | 0x800;
/** Depends on no other; depends on others and is no random access point (8.8.3.1). */
const SYNC = 0x02000000;
const NO_SYNC = 0x01010000;

/** Bytes that describe an access unit of `stream`. */
export function unitBytes({ track }: CmafStream): number {
  return track.kind === "video" ? VIDEO_UNIT_BYTES : AUDIO_UNIT_BYTES;
}

/** Bytes of a fragment with so many tracks, besides what each access unit takes. */
export function fragmentBytes(tracks: number): number {
  return FIXED_BYTES + tracks * TRACK_BYTES;
}

/** Writes a fragment of `tracks`, each with at least one access unit. `number` is its place in the output. */
export function writeFragment(sink: PacketSink, number: number, tracks: readonly FragmentTrack[]): void {
  const described = tracks.reduce((sum, { stream, units }) => sum + units.length * unitBytes(stream), 0);
  const headBytes = fragmentBytes(tracks.length) + described;
  const buffer = sink.reserve(headBytes);
  const view = new DataView(buffer.buffer, buffer.byteOffset + sink.at, headBytes);
  const payloadBytes = tracks.reduce(
    (sum, { units }) => sum + units.reduce((all, { data }) => all + data.length, 0),
    0,
  );
  let at = 0;
  const put = (value: number) => {
    view.setUint32(at, value);
    at += 4;
  };
  const header = (sizeBytes: number, type: string) => {
    put(sizeBytes);
    for (let i = 0; i < 4; i++) view.setUint8(at++, type.charCodeAt(i));
  };
  header(headBytes - 8, "moof");
  header(16, "mfhd");
  put(0);
  put(number);
  let mediaAt = headBytes;
  for (const { stream, units } of tracks) {
    const isVideo = stream.track.kind === "video";
    const runBytes = 20 + units.length * unitBytes(stream);
    header(8 + 20 + 20 + runBytes, "traf");
    header(20, "tfhd");
    put(BASE_IS_MOOF | HAS_DEFAULT_FLAGS);
    put(stream.id);
    put(SYNC);
    header(20, "tfdt");
    put(0x01000000);
    put(Math.floor(units[0]!.dts90k / 2 ** 32));
    put(units[0]!.dts90k % 2 ** 32);
    header(runBytes, "trun");
    put(isVideo ? RUN_OF_VIDEO : RUN_OF_AUDIO);
    put(units.length);
    put(mediaAt);
    for (const { dts90k, pts90k, duration90k, keyframe, data } of units) {
      put(duration90k);
      put(data.length);
      mediaAt += data.length;
      if (!isVideo) continue;
      put(keyframe ? SYNC : NO_SYNC);
      put(pts90k - dts90k);
    }
  }
  header(8 + payloadBytes, "mdat");
  sink.advance(headBytes);
  for (const { units } of tracks) for (const { data } of units) writeBytes(sink, data);
}

function writeBytes(sink: PacketSink, data: Uint8Array): void {
  for (let from = 0; from < data.length; from += STEP_BYTES) {
    const part = data.subarray(from, from + STEP_BYTES);
    sink.reserve(part.length).set(part, sink.at);
    sink.advance(part.length);
  }
}

/** Size of an empty `free` box. */
export const FREE_BYTES = 8;

/** Writes the header of a `free` box of `sizeBytes`; zeros follow. */
export function writeFree(sink: PacketSink, sizeBytes: number): void {
  const buffer = sink.reserve(FREE_BYTES);
  const view = new DataView(buffer.buffer, buffer.byteOffset + sink.at, FREE_BYTES);
  view.setUint32(0, sizeBytes);
  view.setUint32(4, 0x66726565);
  sink.advance(FREE_BYTES);
}
