/**
 * Headers of audio stored as bare frames: MPEG audio (ISO/IEC 11172-3, 13818-3), ADTS (ISO/IEC 14496-3, 1.A.3), AC-3 and
 * E-AC-3 (`ac3-frames.ts`).
 */

/** The contents of a frame's header. */
export interface AudioFrame {
  /** The whole frame including its header. */
  readonly sizeBytes: number;
  /** Samples per channel that it decodes to. */
  readonly samples: number;
  readonly sampleRate: number;
  /** 0: given inside the frame. */
  readonly channels: number;
  /** MPEG audio: II or III; ADTS: the audio object type; AC-3 and E-AC-3: the version of the syntax (bsid). */
  readonly kind: number;
  /** Bits/s; null for ADTS, whose headers do not contain it. */
  readonly bitRate: number | null;
  /** Equal for all frames of one stream. */
  readonly key: number;
}

/** Reads the header of a frame at `bytes[at]`; null when there is none, or only part of one. */
export type AudioFrameSyntax = (bytes: Uint8Array, at: number) => AudioFrame | null;

/** Longest frame of any syntax, bytes: three substreams of E-AC-3, each of up to 2^11 words of two bytes. */
export const MAX_AUDIO_FRAME_BYTES = 3 * 4096;
/** Most bytes of a header that any syntax reads. */
export const AUDIO_HEADER_BYTES = 7;

const LAYER_2 = 2;
const MPEG_1 = 3;
/** Sample rates by the header's two version bits: 2.5, reserved, 2, 1. */
const MPEG_RATES: readonly (readonly number[])[] = [
  [11025, 12000, 8000],
  [],
  [22050, 24000, 16000],
  [44100, 48000, 32000],
];
const KBITS_MPEG1_LAYER2 = [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384];
const KBITS_MPEG1_LAYER3 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const KBITS_MPEG2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];

/** MPEG audio, layers II and III, with a bit rate in the header. */
export const mpegAudioFrame: AudioFrameSyntax = (bytes, at) => {
  if (at + 4 > bytes.length || bytes[at] !== 0xff || (bytes[at + 1]! & 0xe0) !== 0xe0) return null;
  const version = (bytes[at + 1]! >> 3) & 3;
  const layer = 4 - ((bytes[at + 1]! >> 1) & 3);
  if (layer !== LAYER_2 && layer !== 3) return null;
  const sampleRate = MPEG_RATES[version]![(bytes[at + 2]! >> 2) & 3];
  const rates = version !== MPEG_1 ? KBITS_MPEG2 : layer === LAYER_2 ? KBITS_MPEG1_LAYER2 : KBITS_MPEG1_LAYER3;
  const bitRate = (rates[bytes[at + 2]! >> 4] ?? 0) * 1000;
  // Emphasis 2 is reserved.
  if (sampleRate === undefined || bitRate === 0 || (bytes[at + 3]! & 3) === 2) return null;
  const samples = layer === LAYER_2 || version === MPEG_1 ? 1152 : 576;
  const channels = bytes[at + 3]! >> 6 === 3 ? 1 : 2;
  const sizeBytes = Math.floor(samples / 8 * bitRate / sampleRate) + ((bytes[at + 2]! >> 1) & 1);
  // Version, layer, rate, mono or not.
  const key = ((bytes[at + 1]! & 0x1e) << 8) | (bytes[at + 2]! & 0x0c) | channels;
  return { sizeBytes, samples, sampleRate, channels, kind: layer, bitRate, key };
};

/** Sample rates of AAC by index (ISO/IEC 14496-3, table 1.18), Hz. */
export const AAC_SAMPLE_RATES: readonly number[] = [
  96000,
  88200,
  64000,
  48000,
  44100,
  32000,
  24000,
  22050,
  16000,
  12000,
  11025,
  8000,
  7350,
];

/** AAC in ADTS. */
export const adtsFrame: AudioFrameSyntax = (bytes, at) => {
  if (at + AUDIO_HEADER_BYTES > bytes.length || bytes[at] !== 0xff || (bytes[at + 1]! & 0xf6) !== 0xf0) return null;
  const sampleRate = AAC_SAMPLE_RATES[(bytes[at + 2]! >> 2) & 15];
  const sizeBytes = ((bytes[at + 3]! & 3) << 11) | (bytes[at + 4]! << 3) | (bytes[at + 5]! >> 5);
  const headerBytes = (bytes[at + 1]! & 1) === 1 ? 7 : 9;
  if (sampleRate === undefined || sizeBytes <= headerBytes) return null;
  const configuration = ((bytes[at + 2]! & 1) << 2) | (bytes[at + 3]! >> 6);
  return {
    sizeBytes,
    samples: 1024 * ((bytes[at + 6]! & 3) + 1),
    sampleRate,
    channels: configuration === 7 ? 8 : configuration,
    kind: (bytes[at + 2]! >> 6) + 1,
    bitRate: null,
    // MPEG-2 or 4, object type and rate, channels.
    key: ((bytes[at + 1]! & 8) << 12) | ((bytes[at + 2]! & 0xfd) << 4) | configuration,
  };
};

/** Counts the frames of one stream that follow each other from `at` (at most `limit`), and finds where the last one ends. */
export function frameChain(
  bytes: Uint8Array,
  at: number,
  syntax: AudioFrameSyntax,
  limit: number,
): { readonly frames: number; readonly end: number } {
  let frames = 0;
  let key = 0;
  let end = at;
  while (frames < limit) {
    const frame = syntax(bytes, end);
    if (frame === null || (frames > 0 && frame.key !== key)) break;
    key = frame.key;
    end += frame.sizeBytes;
    frames++;
  }
  return { frames, end };
}

/** Bytes of the ID3v2 tag at `bytes[at]` (id3.org, 2.4.0-structure, 3.1) including its footer; 0 when there is none. */
export function id3TagBytes(bytes: Uint8Array, at: number): number {
  if (at + 10 > bytes.length || bytes[at] !== 0x49 || bytes[at + 1] !== 0x44 || bytes[at + 2] !== 0x33) return 0;
  if (bytes[at + 3]! < 2 || bytes[at + 3]! > 4 || bytes[at + 4] === 0xff) return 0;
  let size = 0;
  for (let i = 6; i < 10; i++) {
    if (bytes[at + i]! > 0x7f) return 0;
    size = size * 128 + bytes[at + i]!;
  }
  const hasFooter = (bytes[at + 5]! & 0x10) !== 0;
  return 10 + size + (hasFooter ? 10 : 0);
}
