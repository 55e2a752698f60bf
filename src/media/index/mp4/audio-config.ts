/** Converts decoder data of audio from the forms of MP4 and QuickTime to those of Matroska. */
import { bodyOf, type Box, child } from "../../../bytes/boxes.ts";

/**
 * Identification header of Opus (RFC 7845, 5.1) from `dOps` (Opus in ISOBMFF, 4.3.2), whose numbers are big-endian.
 * The result has no pre-skip, since the edit list says what is skipped. Null when damaged.
 */
export function opusHeadFrom(dOps: Box): Uint8Array | null {
  const { view, start, end } = dOps;
  if (start + 11 > end || view.getUint8(start) !== 0) return null;
  const channels = view.getUint8(start + 1);
  const family = view.getUint8(start + 10);
  const tableBytes = family === 0 ? 0 : 2 + channels;
  if (channels === 0 || start + 11 + tableBytes > end) return null;
  const head = new Uint8Array(19 + tableBytes);
  head.set(new TextEncoder().encode("OpusHead"));
  head[8] = 1;
  head[9] = channels;
  const out = new DataView(head.buffer);
  out.setUint32(12, view.getUint32(start + 4), true);
  out.setInt16(16, view.getInt16(start + 8), true);
  head[18] = family;
  for (let i = 0; i < tableBytes; i++) head[19 + i] = view.getUint8(start + 11 + i);
  return head;
}

/** `fLaC` and the metadata blocks of `dfLa` (FLAC in ISOBMFF, 3.3.2); null when there are none. */
export function flacHeadFrom(dfLa: Box): Uint8Array | null {
  const blocks = bodyOf({ ...dfLa, start: Math.min(dfLa.end, dfLa.start + 4) });
  // STREAMINFO comes first and has 34 bytes.
  if (blocks.length < 38 || (blocks[0]! & 0x7f) !== 0) return null;
  const head = new Uint8Array(4 + blocks.length);
  head.set(new TextEncoder().encode("fLaC"));
  head.set(blocks, 4);
  return head;
}

/** Size of Vorbis's identification header (Vorbis I, 4.2.2). */
const VORBIS_ID_BYTES = 30;

/** The three headers of Vorbis with Xiph lacing, from data in that form or with 16-bit lengths; null when damaged. */
export function vorbisHeadFrom(config: Uint8Array): Uint8Array | null {
  if (config[0] === 2) return config;
  const sizes: number[] = [];
  const parts: Uint8Array[] = [];
  for (let at = 0; parts.length < 3; at += 2 + sizes.at(-1)!) {
    if (at + 2 > config.length) return null;
    const size = (config[at]! << 8) | config[at + 1]!;
    if (at + 2 + size > config.length || (parts.length === 0 && size !== VORBIS_ID_BYTES)) return null;
    sizes.push(size);
    parts.push(config.subarray(at + 2, at + 2 + size));
  }
  const lacing = sizes.slice(0, 2).flatMap((size) => [...new Array(Math.floor(size / 255)).fill(255), size % 255]);
  return new Uint8Array([2, ...lacing, ...parts.flatMap((part) => [...part])]);
}

/** Channels in the identification header that `vorbisHeadFrom` put first (Vorbis I, 4.2.2); null if it is none. */
export function vorbisChannels(head: Uint8Array | null): number | null {
  if (head === null) return null;
  let at = 1;
  // Two laced sizes: the first of 30 bytes takes one, the second as many as it needs.
  for (let sizes = 0; sizes < 2 && at < head.length; at++) if (head[at] !== 255) sizes++;
  return head[at] === 1 ? head[at + 11] || null : null;
}

/** How PCM samples are stored. */
export interface PcmForm {
  readonly bitDepth: number;
  readonly bigEndian: boolean;
  readonly isFloat: boolean;
  readonly isSigned: boolean;
}

/** Bits of a sample of the entry types that fix them. */
const FIXED_BITS: Readonly<Record<string, number>> = { in24: 24, in32: 32, fl32: 32, fl64: 64, "raw ": 8 };
const LPCM_FLOAT = 1;
const LPCM_BIG_ENDIAN = 2;
const LPCM_SIGNED = 4;

/** The form of PCM in `entry`, whose boxes begin at `inner` (QuickTime File Format, sound media; ISO/IEC 23003-5). */
export function pcmFormOf(entry: Box, inner: number): PcmForm | null {
  const { view, start, end, type } = entry;
  const bits = FIXED_BITS[type] ?? view.getUint16(start + 18);
  const boxes: Box = { ...entry, start: Math.min(inner, end) };
  if (type === "lpcm") {
    if (start + 56 > end) return null;
    const flags = view.getUint32(start + 52);
    return {
      bitDepth: view.getUint32(start + 48),
      bigEndian: (flags & LPCM_BIG_ENDIAN) !== 0,
      isFloat: (flags & LPCM_FLOAT) !== 0,
      isSigned: (flags & LPCM_SIGNED) !== 0,
    };
  }
  const config = child(boxes, "pcmC");
  if (type === "ipcm" || type === "fpcm") {
    if (config === null || config.start + 6 > config.end) return null;
    return {
      bitDepth: view.getUint8(config.start + 5),
      bigEndian: (view.getUint8(config.start + 4) & 1) === 0,
      isFloat: type === "fpcm",
      isSigned: true,
    };
  }
  const wave = child(boxes, "wave");
  const order = wave === null ? null : child(wave, "enda");
  const isLittle = type === "sowt" ||
    (order !== null && order.start + 2 <= order.end && view.getUint16(order.start) === 1);
  return { bitDepth: bits, bigEndian: !isLittle, isFloat: type.startsWith("fl"), isSigned: type !== "raw " };
}

/** Matroska's name for PCM of this form; null if it has none. */
export function matroskaPcmId({ bitDepth, bigEndian, isFloat, isSigned }: PcmForm): string | null {
  if (bitDepth === 8) return isSigned ? null : "A_PCM/INT/LIT";
  if (isFloat) return bigEndian || (bitDepth !== 32 && bitDepth !== 64) ? null : "A_PCM/FLOAT/IEEE";
  if (!isSigned || ![16, 24, 32].includes(bitDepth)) return null;
  return bigEndian ? "A_PCM/INT/BIG" : "A_PCM/INT/LIT";
}
