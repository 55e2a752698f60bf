/** Maps Matroska's codec IDs to ours (RFC 9559 and the codec mapping document). */
import { AAC_SAMPLE_RATES } from "../../../bytes/audio-frames.ts";
import type { Codec } from "../../model/types.ts";

const EXACT: Readonly<Record<string, Codec>> = {
  "V_MPEG4/ISO/AVC": "h264",
  "V_MPEGH/ISO/HEVC": "hevc",
  "V_MPEG2": "mpeg2video",
  "V_MPEG1": "mpeg1video",
  "V_MPEG4/ISO/SP": "mpeg4",
  "V_MPEG4/ISO/ASP": "mpeg4",
  "V_MPEG4/ISO/AP": "mpeg4",
  "V_VP8": "vp8",
  "V_VP9": "vp9",
  "V_AV1": "av1",
  "A_MPEG/L3": "mp3",
  "A_MPEG/L2": "mp2",
  "A_MPEG/L1": "mp2",
  "A_EAC3": "eac3",
  "A_OPUS": "opus",
  "A_VORBIS": "vorbis",
  "A_FLAC": "flac",
  "A_TRUEHD": "truehd",
  "A_MLP": "truehd",
  "S_HDMV/PGS": "pgs",
  "S_DVBSUB": "dvbsub",
};

/** Families whose IDs carry a suffix, such as `A_AAC/MPEG4/LC` or `A_AC3/BSID9`. */
const FAMILIES: readonly (readonly [string, Codec])[] = [
  ["A_AAC", "aac"],
  ["A_AC3", "ac3"],
  ["A_DTS", "dts"],
  ["A_PCM", "pcm"],
];

/** Codec of a CodecID; `other` for V_MS/VFW/FOURCC, A_MS/ACM and unknown IDs. */
export function codecOf(codecId: string): Codec {
  const exact = EXACT[codecId];
  if (exact !== undefined) return exact;
  for (const [prefix, codec] of FAMILIES) if (codecId === prefix || codecId.startsWith(`${prefix}/`)) return codec;
  return "other";
}

const OBJECT_TYPES: Readonly<Record<string, number>> = { MAIN: 1, LC: 2, SSR: 3, LTP: 4 };

/** AudioSpecificConfig (ISO/IEC 14496-3, 1.6.2.1) for tracks that name their profile in the codec ID instead. */
export function aacConfig(codecId: string, sampleRate: number, channels: number): Uint8Array | null {
  const rate = AAC_SAMPLE_RATES.indexOf(sampleRate);
  if (rate < 0 || channels < 1 || channels > 8 || channels === 7) return null;
  const type = OBJECT_TYPES[codecId.split("/")[2] ?? "LC"] ?? 2;
  const layout = channels === 8 ? 7 : channels;
  return new Uint8Array([(type << 3) | (rate >> 1), ((rate & 1) << 7) | (layout << 3)]);
}

/**
 * Samples in an access unit: AAC 1024, MPEG audio 1152 or 576 at half rates and 384 in layer I, AC-3 and E-AC-3 1536
 * (six blocks; E-AC-3 may have fewer).
 */
export function usualSamples(codec: Codec, codecId: string, sampleRate: number): number {
  if (codecId === "A_MPEG/L1") return 384;
  if (codec === "mp3") return sampleRate < 32000 ? 576 : 1152;
  if (codec === "mp2") return 1152;
  if (codec === "ac3" || codec === "eac3") return 1536;
  return 1024;
}
