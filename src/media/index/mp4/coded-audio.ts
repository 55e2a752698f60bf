/** Describes sound of MP4 and QuickTime that only ffmpeg decodes (ALAC, A-law, µ-law, ADPCM) in Matroska's terms. */
import type { Track } from "../../model/types.ts";
import { bodyOf, type Box, child } from "../../../bytes/boxes.ts";

/** What a sample entry says about such a track. */
export type CodedAudio = Pick<Track, "codec" | "codecId" | "codecPrivate" | "matroskaId" | "bitDepth" | "soundPacket">;

/** ALACSpecificConfig, after four bytes of version and flags (Apple Lossless Format Description, 2). */
const ALAC_CONFIG_BYTES = 24;
const VERSION_BYTES = 4;
/** Matroska's A_QUICKTIME has the sample entry as its private data: its box header and the fields of version 0. */
const BOX_HEADER_BYTES = 8;
const ENTRY_BYTES = 28;
/** A packet of IMA 4:1 for each channel (QuickTime File Format, sound media). */
const IMA_SAMPLES = 64;
const IMA_BYTES = 34;
/** WAVEFORMATEX with the samples in a block, as ADPCM has it. */
const BLOCK_FORMAT_BYTES = 20;
const IMA_WAV = "ms\0\x11";
const MS_ADPCM = "ms\0\x02";

/** Reads the track of `entry` with its child boxes `boxes`; null when it is of another kind or damaged. */
export function codedAudioFrom(entry: Box, boxes: Box, channels: number): CodedAudio | null {
  const wave = child(boxes, "wave");
  switch (entry.type) {
    case "alac": {
      const config = child(boxes, "alac") ?? (wave === null ? null : child(wave, "alac"));
      if (config === null || config.start + VERSION_BYTES + ALAC_CONFIG_BYTES > config.end) return null;
      const start = config.start + VERSION_BYTES;
      const codecPrivate = bodyOf({ ...config, start, end: start + ALAC_CONFIG_BYTES });
      return { codec: "other", codecId: "ALAC", matroskaId: "A_ALAC", codecPrivate };
    }
    case "alaw":
    case "ulaw":
      // A byte is a sample, so that its tables are those of PCM.
      return { codec: "pcm", codecId: entry.type, bitDepth: 8, ...quickTime(entry) };
    case "ima4": {
      const soundPacket = { samples: IMA_SAMPLES, bytes: IMA_BYTES * channels };
      return { codec: "other", codecId: "IMA ADPCM", soundPacket, ...quickTime(entry) };
    }
    case IMA_WAV:
    case MS_ADPCM: {
      const format = wave === null ? null : child(wave, entry.type);
      if (format === null || format.start + BLOCK_FORMAT_BYTES > format.end) return null;
      const soundPacket = {
        samples: format.view.getUint16(format.start + 18, true),
        bytes: format.view.getUint16(format.start + 12, true),
      };
      const codecId = entry.type === IMA_WAV ? "IMA ADPCM" : "ADPCM";
      return { codec: "other", codecId, matroskaId: "A_MS/ACM", codecPrivate: bodyOf(format), soundPacket };
    }
    default:
      return null;
  }
}

function quickTime({ view, start, end }: Box): Pick<Track, "codecPrivate" | "matroskaId"> {
  const from = Math.max(0, start - BOX_HEADER_BYTES);
  const codecPrivate = bodyOf({ type: "", view, start: from, end: Math.min(end, start + ENTRY_BYTES) });
  return { matroskaId: "A_QUICKTIME", codecPrivate };
}
