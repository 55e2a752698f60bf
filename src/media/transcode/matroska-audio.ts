/** Writes a Matroska file (RFC 9559) of one audio track: it gives the encoder packets of any codec with their times. */
import { concatBytes } from "../../bytes/hex.ts";
import type { Track } from "../model/types.ts";

/** Description of a track in Matroska. */
export interface MatroskaAudio {
  readonly codecId: string;
  readonly codecPrivate: Uint8Array | null;
  readonly sampleRate: number;
  readonly channels: number;
  /** Bits per sample of PCM; null for other codecs. */
  readonly bitDepth: number | null;
  /** Length of the whole track, ms, where the decoder needs it. Default: not written. */
  readonly durationMs?: number;
}

/** A packet with its time, ticks of 90 kHz ≥ 0. */
export interface TimedPacket {
  readonly time90k: number;
  readonly data: Uint8Array;
}

/** TimestampScale: a microsecond, so that rounding stays below a sample. */
const SCALE_NS = 1000;
/** The 8-byte EBML size that means "to the end of the file". */
const UNKNOWN_SIZE = [0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];

const CODEC_IDS: Readonly<Partial<Record<Track["codec"], string>>> = {
  ac3: "A_AC3",
  eac3: "A_EAC3",
  mp3: "A_MPEG/L3",
  mp2: "A_MPEG/L2",
  dts: "A_DTS",
  truehd: "A_TRUEHD",
};

/** Describes `track` of a file of `container` that lasts `fileMs` (null: unknown) in Matroska's terms; null when that is not possible. */
export function matroskaAudio(track: Track, container: string, fileMs: number | null = null): MatroskaAudio | null {
  const { sampleRate, channels, codecPrivate, codecId } = track;
  const numbers = { sampleRate: sampleRate ?? 48000, channels: channels ?? 2, bitDepth: track.bitDepth ?? null };
  // The index reader appends problems of a track to its codec id in parentheses; such tracks are refused.
  if (container === "matroska") {
    if (!/^A_[\w/.-]+$/.test(codecId)) return null;
    // The length says how many samples the last frame of True Audio has: it is not decoded otherwise.
    const length = codecId === "A_TTA1" && fileMs !== null ? { durationMs: fileMs } : {};
    return { codecId, codecPrivate, ...numbers, ...length };
  }
  // The MP4 reader already provides the decoder's data in Matroska's form.
  if (track.codec === "opus" && codecPrivate !== null) return { codecId: "A_OPUS", codecPrivate, ...numbers };
  if (track.codec === "flac" || track.codec === "vorbis") {
    const id = track.codec === "flac" ? "A_FLAC" : "A_VORBIS";
    return codecPrivate === null ? null : { codecId: id, codecPrivate, ...numbers };
  }
  if (track.matroskaId) return { codecId: track.matroskaId, codecPrivate, ...numbers };
  if (track.codec === "pcm") return null;
  if (track.codec === "opus") {
    // Mapping family 0, up to two channels, needs no channel table (RFC 7845, 5.1.1).
    return numbers.channels > 2 ? null : { codecId: "A_OPUS", codecPrivate: opusHead(numbers.channels), ...numbers };
  }
  const id = CODEC_IDS[track.codec];
  return id === undefined ? null : { codecId: id, codecPrivate: null, ...numbers };
}

/** Identification header of Opus (RFC 7845, 5.1) without pre-skip. */
function opusHead(channels: number): Uint8Array {
  const rate = [0x80, 0xbb, 0, 0];
  return new Uint8Array([...new TextEncoder().encode("OpusHead"), 1, channels, 0, 0, ...rate, 0, 0, 0]);
}

/** Pre-skip of an Opus track, samples at 48 kHz: packet times in Matroska include it (RFC 9559, CodecDelay). */
export function opusPreSkip(audio: MatroskaAudio): number {
  const head = audio.codecPrivate;
  return audio.codecId !== "A_OPUS" || head === null || head.length < 12 ? 0 : head[10]! | (head[11]! << 8);
}

function element(id: readonly number[], body: Uint8Array): Uint8Array {
  const out = new Uint8Array(id.length + 4 + body.length);
  out.set(id);
  // A size of 28 bits, written in four bytes.
  new DataView(out.buffer).setUint32(id.length, 0x10000000 | body.length);
  out.set(body, id.length + 4);
  return out;
}

function unsigned(id: readonly number[], value: number): Uint8Array {
  const body = new Uint8Array(8);
  new DataView(body.buffer).setBigUint64(0, BigInt(value));
  return element(id, body);
}

function real(id: readonly number[], value: number): Uint8Array {
  const body = new Uint8Array(8);
  new DataView(body.buffer).setFloat64(0, value);
  return element(id, body);
}

function text(id: readonly number[], value: string): Uint8Array {
  return element(id, new TextEncoder().encode(value));
}

/** Writes the file. Each packet gets a cluster of its own for its time: block times reach only 32 ms at this precision. */
export function writeMatroska(audio: MatroskaAudio, packets: readonly TimedPacket[]): Uint8Array {
  const sound = [real([0xb5], audio.sampleRate), unsigned([0x9f], audio.channels)];
  if (audio.bitDepth !== null) sound.push(unsigned([0x62, 0x64], audio.bitDepth));
  const entry = [
    unsigned([0xd7], 1),
    unsigned([0x73, 0xc5], 1),
    unsigned([0x83], 2),
    text([0x86], audio.codecId),
    element([0xe1], concatBytes(sound)),
  ];
  if (audio.codecPrivate !== null) entry.push(element([0x63, 0xa2], audio.codecPrivate));
  const info = [unsigned([0x2a, 0xd7, 0xb1], SCALE_NS)];
  if (audio.durationMs !== undefined) info.push(real([0x44, 0x89], audio.durationMs * 1e6 / SCALE_NS));
  const parts: Uint8Array[] = [
    element(
      [0x1a, 0x45, 0xdf, 0xa3],
      concatBytes([text([0x42, 0x82], "matroska"), unsigned([0x42, 0x87], 4), unsigned([0x42, 0x85], 2)]),
    ),
    new Uint8Array([0x18, 0x53, 0x80, 0x67, ...UNKNOWN_SIZE]),
    element([0x15, 0x49, 0xa9, 0x66], concatBytes(info)),
    element([0x16, 0x54, 0xae, 0x6b], element([0xae], concatBytes(entry))),
  ];
  for (const { time90k, data } of packets) {
    const block = new Uint8Array(4 + data.length);
    block.set([0x81, 0, 0, 0x80]);
    block.set(data, 4);
    const time = unsigned([0xe7], Math.max(0, Math.round(time90k * 1e9 / 90_000 / SCALE_NS)));
    parts.push(element([0x1f, 0x43, 0xb6, 0x75], concatBytes([time, element([0xa3], block)])));
  }
  return concatBytes(parts);
}
