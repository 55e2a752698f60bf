/** Headers of FLAC: the stream's and those of its frames (RFC 9639). */

/** The content of STREAMINFO (section 8.2). */
export interface FlacInfo {
  /** Longest block, samples; with a fixed block size, all but the last are this long. */
  readonly maxBlockSamples: number;
  readonly sampleRate: number;
  readonly channels: number;
  readonly bitDepth: number;
  /** 0: unknown. */
  readonly totalSamples: number;
}

/** A frame's header. */
export interface FlacFrame {
  /** Number of its first sample in the stream. */
  readonly sample: number;
  readonly samples: number;
  readonly headerBytes: number;
}

/** Length of STREAMINFO. */
export const STREAMINFO_BYTES = 34;
/** Longest header of a frame. */
export const MAX_FLAC_HEADER_BYTES = 16;
/** Checksum after the subframes. */
export const FLAC_FOOTER_BYTES = 2;

/** Reads STREAMINFO; null when it is damaged. */
export function readStreamInfo(data: Uint8Array): FlacInfo | null {
  if (data.length < STREAMINFO_BYTES) return null;
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const packed = view.getUint32(10);
  const info = {
    maxBlockSamples: view.getUint16(2),
    sampleRate: packed >>> 12,
    channels: ((packed >>> 9) & 7) + 1,
    bitDepth: ((packed >>> 4) & 31) + 1,
    totalSamples: (packed & 15) * 2 ** 32 + view.getUint32(14),
  };
  return info.sampleRate === 0 || info.maxBlockSamples < 16 ? null : info;
}

/** Longest frame of the stream: all subframes verbatim, one channel a bit wider (section 4.2). */
export function maxFlacFrameBytes({ maxBlockSamples, channels, bitDepth }: FlacInfo): number {
  return MAX_FLAC_HEADER_BYTES + FLAC_FOOTER_BYTES + channels * (8 + Math.ceil(maxBlockSamples * (bitDepth + 1) / 8));
}

/** Sample rates that the header names, by its four bits; 0: as STREAMINFO says, or given at the end of the header. */
const RATES = [0, 88200, 176400, 192000, 8000, 16000, 22050, 24000, 32000, 44100, 48000, 96000];
const BIT_DEPTHS = [0, 8, 12, -1, 16, 20, 24, 32];

/** Reads the header of a frame of the stream `info` at `bytes[at]` (section 9.1); null when there is none. */
export function readFlacFrame(bytes: Uint8Array, at: number, info: FlacInfo): FlacFrame | null {
  if (at + 6 > bytes.length || bytes[at] !== 0xff || (bytes[at + 1]! & 0xfe) !== 0xf8) return null;
  const isVariable = (bytes[at + 1]! & 1) === 1;
  const [sizeCode, rateCode] = [bytes[at + 2]! >> 4, bytes[at + 2]! & 15];
  const [channelCode, depthCode] = [bytes[at + 3]! >> 4, (bytes[at + 3]! >> 1) & 7];
  if (sizeCode === 0 || rateCode === 15 || channelCode > 10 || (bytes[at + 3]! & 1) === 1) return null;
  if (channelCode < 8 ? channelCode + 1 !== info.channels : info.channels !== 2) return null;
  if (depthCode !== 0 && BIT_DEPTHS[depthCode] !== info.bitDepth) return null;
  const number = codedNumber(bytes, at + 4);
  if (number === null) return null;
  let end = number.end;
  let samples = sizeCode === 1 ? 192 : sizeCode < 6 ? 144 << sizeCode : 1 << sizeCode;
  if (sizeCode === 6) samples = (bytes[end++] ?? 0) + 1;
  else if (sizeCode === 7) {
    samples = (((bytes[end] ?? 0) << 8) | (bytes[end + 1] ?? 0)) + 1;
    end += 2;
  }
  let rate = RATES[rateCode] ?? 0;
  if (rateCode === 12) rate = (bytes[end++] ?? 0) * 1000;
  else if (rateCode > 12) {
    rate = (((bytes[end] ?? 0) << 8) | (bytes[end + 1] ?? 0)) * (rateCode === 14 ? 10 : 1);
    end += 2;
  }
  if ((rateCode !== 0 && rate !== info.sampleRate) || samples > info.maxBlockSamples) return null;
  if (end >= bytes.length || crc8(bytes, at, end) !== bytes[end]) return null;
  const sample = isVariable ? number.value : number.value * info.maxBlockSamples;
  return { sample, samples, headerBytes: end + 1 - at };
}

/** The number in the form of UTF-8 at `at` (section 9.1.5), up to 36 bits. */
function codedNumber(bytes: Uint8Array, at: number): { value: number; end: number } | null {
  const first = bytes[at]!;
  if (first < 0x80) return { value: first, end: at + 1 };
  const length = Math.clz32(~(first << 24));
  if (length < 2 || length > 7 || at + length > bytes.length) return null;
  let value = first & (0x7f >> length);
  for (let i = 1; i < length; i++) {
    const byte = bytes[at + i]!;
    if ((byte & 0xc0) !== 0x80) return null;
    value = value * 64 + (byte & 0x3f);
  }
  return { value, end: at + length };
}

/** Polynomial x^8 + x^2 + x + 1 (section 9.1.8). */
const CRC8 = Uint8Array.from({ length: 256 }, (_, n) => {
  let crc = n;
  for (let bit = 0; bit < 8; bit++) crc = (crc & 0x80) !== 0 ? (crc << 1) ^ 0x07 : crc << 1;
  return crc;
});

function crc8(bytes: Uint8Array, from: number, to: number): number {
  let crc = 0;
  for (let i = from; i < to; i++) crc = CRC8[crc ^ bytes[i]!]!;
  return crc;
}
