/** AAC: raw access units to ADTS frames (ISO/IEC 14496-3, 1.A.3.2), the header made from AudioSpecificConfig. */
import { STREAM_TYPE } from "../../../../bytes/ts/codes.ts";
import type { Track } from "../../../model/types.ts";
import { BitReader, BitWriter } from "../../../codec/bits.ts";
import { type ElementaryFormat, passThrough } from "./format.ts";

const SAMPLE_RATES = [96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350];
const HEADER_BYTES = 7;
/** aac_frame_length has 13 bits. */
const MAX_FRAME_BYTES = 0x1fff;
const OBJECT_SBR = 5;
const OBJECT_PS = 29;

/** The content of AudioSpecificConfig (14496-3, 1.6.2.1). */
export interface AacConfig {
  /** Audio object type of the core coder: 2 = AAC LC. */
  readonly objectType: number;
  /** Rate of the core coder, Hz (SBR doubles it on output). */
  readonly sampleRate: number;
  readonly frequencyIndex: number;
  /** channel_configuration; 0 = given by a program config element. */
  readonly channelConfiguration: number;
  readonly channels: number;
  /** An element id and program config element to put before the first element of each frame; empty when not needed. */
  readonly programConfig: Uint8Array;
  /** Samples in a frame of the core coder. */
  readonly frameSamples: number;
}

/** Reads AudioSpecificConfig; null when damaged. */
export function parseAacConfig(config: Uint8Array): AacConfig | null {
  const bits = new BitReader(config);
  let objectType = readObjectType(bits);
  let frequencyIndex = bits.read(4);
  let sampleRate = frequencyIndex === 15 ? bits.read(24) : SAMPLE_RATES[frequencyIndex] ?? 0;
  const channelConfiguration = bits.read(4);
  if (objectType === OBJECT_SBR || objectType === OBJECT_PS) {
    // Explicit signalling: the extension rate, then the type of the core. ADTS signals SBR implicitly.
    if (bits.read(4) === 15) bits.read(24);
    objectType = readObjectType(bits);
  }
  if (frequencyIndex === 15) frequencyIndex = SAMPLE_RATES.indexOf(sampleRate);
  const shortFrame = bits.read(1) === 1;
  if (bits.read(1) === 1) bits.read(14);
  bits.read(1);
  let programConfig = new Uint8Array(0);
  let channels = channelConfiguration === 7 ? 8 : channelConfiguration === 0 ? 0 : channelConfiguration;
  if (channelConfiguration === 0) {
    const element = copyProgramConfig(bits);
    if (element === null) return null;
    programConfig = element.bytes;
    channels = element.channels;
  }
  if (bits.exhausted || sampleRate === 0) return null;
  sampleRate = Math.min(sampleRate, 0xffffff);
  return {
    objectType,
    sampleRate,
    frequencyIndex,
    channelConfiguration,
    channels,
    programConfig,
    frameSamples: shortFrame ? 960 : 1024,
  };
}

function readObjectType(bits: BitReader): number {
  const type = bits.read(5);
  return type === 31 ? 32 + bits.read(6) : type;
}

/** Copies a program config element (14496-3, 4.4.1.1) after its element id, aligned to the start of a frame. */
function copyProgramConfig(bits: BitReader): { bytes: Uint8Array<ArrayBuffer>; channels: number } | null {
  const out = new BitWriter(600);
  out.write(5, 3);
  const copy = (count: number): number => {
    const value = bits.read(count);
    out.write(value, count);
    return value;
  };
  copy(4 + 2 + 4);
  const groups = [copy(4), copy(4), copy(4)];
  const lfe = copy(2);
  const associated = copy(3);
  const coupling = copy(4);
  if (copy(1) === 1) copy(4);
  if (copy(1) === 1) copy(4);
  if (copy(1) === 1) copy(3);
  let channels = lfe;
  for (const count of groups) {
    for (let i = 0; i < count; i++) {
      channels += copy(1) === 1 ? 2 : 1;
      copy(4);
    }
  }
  for (let i = 0; i < lfe + associated; i++) copy(4);
  for (let i = 0; i < coupling; i++) copy(5);
  bits.align();
  out.align();
  const comment = copy(8);
  for (let i = 0; i < comment; i++) copy(8);
  return bits.exhausted ? null : { bytes: out.bytes(), channels };
}

/** ADTS can signal only object types 1 to 4 and the listed rates; it cannot carry others (USAC, ELD). */
export function aacFormat(track: Track): ElementaryFormat | null {
  if (track.isFramed) return passThrough(0x0f, 0xc0, null, track.sampleRate ? 1024 * 90_000 / track.sampleRate : null);
  const config = track.codecPrivate === null ? null : parseAacConfig(track.codecPrivate);
  if (config === null || config.objectType < 1 || config.objectType > 4 || config.frequencyIndex < 0) return null;
  // ADTS cannot signal 960-sample frames.
  if (config.frameSamples !== 1024) return null;
  const prefix = new Uint8Array(HEADER_BYTES + config.programConfig.length);
  // Sync word, MPEG-4, no CRC; variable rate in the buffer fullness (0x7ff).
  prefix.set([
    0xff,
    0xf1,
    ((config.objectType - 1) << 6) | (config.frequencyIndex << 2) | (config.channelConfiguration >> 2),
    (config.channelConfiguration & 3) << 6,
    0,
    0x1f,
    0xfc,
  ]);
  prefix.set(config.programConfig, HEADER_BYTES);
  return {
    streamType: STREAM_TYPE.aac,
    streamId: 0xc0,
    registration: null,
    frame90k: config.frameSamples * 90_000 / config.sampleRate,
    maxBytes: (sizeBytes) => Math.min(prefix.length + sizeBytes, MAX_FRAME_BYTES),
    fill(payload, data, from, to) {
      const length = Math.min(prefix.length + to - from, MAX_FRAME_BYTES);
      const at = payload.headBytes;
      payload.addHead(prefix);
      payload.head[at + 3] = prefix[3]! | (length >> 11);
      payload.head[at + 4] = (length >> 3) & 0xff;
      payload.head[at + 5] = prefix[5]! | ((length & 7) << 5);
      payload.setData(data, from, from + length - prefix.length);
    },
  };
}
