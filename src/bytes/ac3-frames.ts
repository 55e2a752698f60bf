/** Headers of AC-3 and E-AC-3 stored as bare frames (ETSI TS 102 366: syncinfo and bsi, 4.3 and E.1.2). */
import { AUDIO_HEADER_BYTES, type AudioFrame, type AudioFrameSyntax, MAX_AUDIO_FRAME_BYTES } from "./audio-frames.ts";

/** Largest version (bsid) that is AC-3, and the versions of E-AC-3. */
const LAST_AC3 = 8;
const FIRST_EAC3 = 11;
const LAST_EAC3 = 16;
const RATES = [48000, 44100, 32000];
/** Sample rates of E-AC-3 with `fscod` 3. */
const HALF_RATES = [24000, 22050, 16000];
const BLOCK_SAMPLES = 256;
const BLOCKS = [1, 2, 3, 6];
/** Bit rates of AC-3 by half its `frmsizecod`, kbit/s (table 4.13). */
const KBITS = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640];
/** Channels by `acmod`, without the low-frequency one. */
const CHANNELS = [2, 1, 2, 3, 3, 4, 4, 5];
/** `strmtyp` of E-AC-3: a substream that adds channels to the one before it. */
const DEPENDENT = 1;
const RESERVED = 3;

/** A frame of one substream. */
interface Substream extends AudioFrame {
  /** The frame is a part of the one before it. */
  readonly isPart: boolean;
}

function ac3(bytes: Uint8Array, at: number, bsid: number): Substream | null {
  const fscod = bytes[at + 4]! >> 6;
  const code = bytes[at + 4]! & 0x3f;
  const sampleRate = RATES[fscod];
  const kbits = KBITS[code >> 1];
  if (sampleRate === undefined || kbits === undefined) return null;
  // At 44.1 kHz the average frame is not a whole number of words, so some frames have one more.
  const words = fscod === 1 ? Math.floor(320 * kbits / 147) + (code & 1) : kbits * 96_000 / sampleRate;
  const acmod = bytes[at + 6]! >> 5;
  // The levels of the centre, the surround channels and Dolby Surround precede the low-frequency channel's bit.
  const levels = ((acmod & 1) !== 0 && acmod !== 1 ? 2 : 0) + ((acmod & 4) !== 0 ? 2 : 0) + (acmod === 2 ? 2 : 0);
  const lfe = (bytes[at + 6]! >> (4 - levels)) & 1;
  return {
    sizeBytes: words * 2,
    samples: 6 * BLOCK_SAMPLES,
    sampleRate,
    channels: CHANNELS[acmod]! + lfe,
    kind: bsid,
    bitRate: kbits * 1000,
    key: fscod + 1,
    isPart: false,
  };
}

function eac3(bytes: Uint8Array, at: number, bsid: number): Substream | null {
  const type = bytes[at + 2]! >> 6;
  const id = (bytes[at + 2]! >> 3) & 7;
  const sizeBytes = ((((bytes[at + 2]! & 7) << 8) | bytes[at + 3]!) + 1) * 2;
  const fscod = bytes[at + 4]! >> 6;
  const blocksCode = (bytes[at + 4]! >> 4) & 3;
  const sampleRate = fscod === 3 ? HALF_RATES[blocksCode] : RATES[fscod];
  if (type === RESERVED || sampleRate === undefined || sizeBytes <= AUDIO_HEADER_BYTES) return null;
  const samples = (fscod === 3 ? 6 : BLOCKS[blocksCode]!) * BLOCK_SAMPLES;
  return {
    sizeBytes,
    samples,
    sampleRate,
    channels: CHANNELS[(bytes[at + 4]! >> 1) & 7]! + (bytes[at + 4]! & 1),
    kind: bsid,
    bitRate: sizeBytes * 8 * sampleRate / samples,
    key: 0x100 + sampleRate,
    // Further programmes have numbers of their own.
    isPart: type === DEPENDENT || id !== 0,
  };
}

function substream(bytes: Uint8Array, at: number): Substream | null {
  if (at + AUDIO_HEADER_BYTES > bytes.length || bytes[at] !== 0x0b || bytes[at + 1] !== 0x77) return null;
  const bsid = bytes[at + 5]! >> 3;
  if (bsid <= LAST_AC3) return ac3(bytes, at, bsid);
  return bsid >= FIRST_EAC3 && bsid <= LAST_EAC3 ? eac3(bytes, at, bsid) : null;
}

/** True when frames of `kind` are E-AC-3. */
export function isEac3(kind: number): boolean {
  return kind >= FIRST_EAC3;
}

/**
 * AC-3 and E-AC-3. Substreams of the same time form one frame: the first, and the E-AC-3 substreams after it that add
 * channels to it (7.1) or are further programmes, as far as `bytes` reaches and the limit of a frame allows.
 */
export const ac3Frame: AudioFrameSyntax = (bytes, at) => {
  const first = substream(bytes, at);
  if (first === null || first.isPart) return null;
  let { sizeBytes } = first;
  for (;;) {
    const next = substream(bytes, at + sizeBytes);
    if (next === null || !next.isPart || sizeBytes + next.sizeBytes > MAX_AUDIO_FRAME_BYTES) break;
    sizeBytes += next.sizeBytes;
  }
  const { samples, sampleRate, channels, kind, key } = first;
  const bitRate = sizeBytes === first.sizeBytes ? first.bitRate : sizeBytes * 8 * sampleRate / samples;
  return { sizeBytes, samples, sampleRate, channels, kind, bitRate, key };
};
