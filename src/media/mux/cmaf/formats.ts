/** Which codecs fragmented MP4 carries, and their sample entries (ISO/IEC 14496-12, 12). */
import { parseAacConfig } from "../ts/elementary/aac.ts";
import type { Codec, Track } from "../../model/types.ts";
import { ascii, box, type BoxPart, fullBox, u16, u32, zeros } from "../../../bytes/box-writer.ts";
import { aacString, av1String, avcString, hevcString, vpxString } from "../../codec/codec-strings.ts";
import { toldSetsTrimmer } from "./told-sets.ts";
import { vp8Config } from "../../codec/vpx-config.ts";

/** How fragmented MP4 carries a track. */
export interface CmafFormat {
  /** The sample entry, a whole box. */
  readonly entry: Uint8Array;
  /** Its name in `CODECS`. */
  readonly codecs: string;
  /** Duration of an access unit, 90 kHz; null where it varies. */
  readonly frame90k: number | null;
  /** Its access units are presented this much before the times that the index gives, 90 kHz. */
  readonly early90k: number;
  /** Makes an access unit as it stands in the output of that in the source, of which the result may be a view. Absent: it is the same. */
  readonly trim?: (unit: Uint8Array) => Uint8Array;
}

type FormatOf = (track: Track) => CmafFormat | null;

/** Boxes that say how pictures are shown: `colr`, and Dolby Vision's record if other decoders show something right as well. */
function pictureBoxes({ colours, dolbyVision }: Track): Uint8Array[] {
  const boxes: Uint8Array[] = [];
  if (colours !== undefined) {
    const { primaries, transfer, matrix, isFullRange } = colours;
    const points = [primaries, transfer, matrix].flatMap(u16);
    boxes.push(box("colr", ascii("nclx"), points, [isFullRange ? 0x80 : 0]));
  }
  if (dolbyVision !== undefined && dolbyVision.compatibility > 0) {
    const record = new Uint8Array(DOLBY_VISION_BYTES);
    record.set(dolbyVision.config);
    boxes.push(box(dolbyVision.profile > LAST_OF_DVCC ? "dvvC" : "dvcC", record));
  }
  return boxes;
}

/** Size of Dolby Vision's record, and the last profile that its first box carries. */
const DOLBY_VISION_BYTES = 24;
const LAST_OF_DVCC = 7;

function videoEntry(type: string, track: Track, config: Uint8Array): Uint8Array {
  const { width, height } = track;
  const size = [...u16(width ?? 0), ...u16(height ?? 0)];
  // 72 dots per inch, one frame, no name, 24 bits, no colour table.
  const rest = [...u32(0x480000), ...u32(0x480000), ...u32(0), ...u16(1), ...zeros(32), ...u16(24), ...u16(0xffff)];
  return box(type, zeros(6), u16(1), zeros(16), size, rest, config, ...pictureBoxes(track));
}

function audioEntry(type: string, { channels, sampleRate }: Track, config: Uint8Array): Uint8Array {
  const rate = (sampleRate ?? 0) < 0x10000 ? sampleRate ?? 0 : 0;
  return box(type, zeros(6), u16(1), zeros(8), u16(channels ?? 2), u16(16), zeros(4), u16(rate), u16(0), config);
}

/** A video track whose codec data is the body of a box. */
function video(type: string, configType: string, name: (config: Uint8Array) => string | null): FormatOf {
  return (track) => {
    const { codec, codecPrivate: config, width, height } = track;
    const codecs = config === null || track.isFramed || !width || !height ? null : name(config);
    if (codecs === null) return null;
    const trim = codec === "h264" || codec === "hevc" ? { trim: toldSetsTrimmer(codec, config!) } : {};
    return { entry: videoEntry(type, track, box(configType, config!)), codecs, frame90k: null, early90k: 0, ...trim };
  };
}

/** VP8 and VP9; `config` is the body of vpcC after version and flags. */
function vpx(track: Track, type: "vp08" | "vp09", config: Uint8Array | null): CmafFormat | null {
  const codecs = config === null || !track.width || !track.height ? null : vpxString(type, config);
  if (codecs === null) return null;
  const entry = videoEntry(type, track, fullBox("vpcC", 1, 0, config!));
  return { entry, codecs, frame90k: null, early90k: 0 };
}

/** A descriptor (ISO/IEC 14496-1, 8.3.3) of fewer than 128 bytes, or with a size of two bytes. */
function descriptor(tag: number, ...parts: BoxPart[]): number[] {
  const body = parts.flatMap((part) => [...part]);
  const size = body.length < 128 ? [body.length] : [0x80 | (body.length >> 7), body.length & 127];
  return [tag, ...size, ...body];
}

function aac(track: Track): CmafFormat | null {
  const { codecPrivate, isFramed } = track;
  const config = codecPrivate === null || isFramed ? null : parseAacConfig(codecPrivate);
  const codecs = config === null ? null : aacString(codecPrivate!);
  if (config === null || codecs === null) return null;
  // MPEG-4 audio, an audio stream, bit rates that are not known.
  const decoder = descriptor(4, [0x40, 0x15], zeros(3), zeros(8), descriptor(5, codecPrivate!));
  const esds = fullBox("esds", 0, 0, descriptor(3, [0, 0, 0], decoder, descriptor(6, [2])));
  const entry = audioEntry("mp4a", { ...track, channels: config.channels, sampleRate: config.sampleRate }, esds);
  return { entry, codecs, frame90k: config.frameSamples * 90_000 / config.sampleRate, early90k: 0 };
}

const OPUS_RATE = 48_000;
const OPUS_HEAD_BYTES = 19;

/**
 * Opus, whose `codecPrivate` is its identification header (RFC 7845, 5.1). What decoders skip of the beginning stands in
 * the times: players differ in what they make of a number of samples to skip.
 */
function opus(track: Track): CmafFormat | null {
  const head = track.codecPrivate;
  if (head === null || head.length < OPUS_HEAD_BYTES) return null;
  const view = new DataView(head.buffer, head.byteOffset, head.length);
  const channels = head[9]!;
  const family = head[18]!;
  const table = head.subarray(OPUS_HEAD_BYTES, OPUS_HEAD_BYTES + 2 + channels);
  if (channels === 0 || (family !== 0 && table.length < 2 + channels) || (family === 0 && channels > 2)) return null;
  const gain = view.getInt16(16, true) & 0xffff;
  const fields = [0, channels, ...u16(0), ...u32(view.getUint32(12, true)), ...u16(gain), family];
  const dOps = box("dOps", fields, family === 0 ? [] : table);
  return {
    entry: audioEntry("Opus", { ...track, channels, sampleRate: OPUS_RATE }, dOps),
    codecs: "Opus",
    frame90k: null,
    early90k: Math.round(view.getUint16(10, true) * 90_000 / OPUS_RATE),
  };
}

const STREAMINFO_BYTES = 34;
const LAST_BLOCK = 0x80;

/** FLAC, whose `codecPrivate` is its beginning: `fLaC` and the metadata blocks, STREAMINFO first. */
function flac(track: Track): CmafFormat | null {
  const head = track.codecPrivate;
  const info = head?.subarray(8, 8 + STREAMINFO_BYTES);
  if (!head || !info || info.length < STREAMINFO_BYTES || (head[4]! & 127) !== 0) return null;
  if (!ascii("fLaC").every((byte, i) => head[i] === byte)) return null;
  const dfLa = fullBox("dfLa", 0, 0, [LAST_BLOCK, 0, ...u16(STREAMINFO_BYTES)], info);
  const [least, most] = [(info[0]! << 8) | info[1]!, (info[2]! << 8) | info[3]!];
  const rate = track.sampleRate ?? 0;
  return {
    entry: audioEntry("fLaC", track, dfLa),
    codecs: "fLaC",
    frame90k: least === most && rate > 0 ? most * 90_000 / rate : null,
    early90k: 0,
  };
}

/** Least bytes of dac3 and dec3, and more than any has. */
const MIN_DOLBY_BYTES = 3;
const MAX_DOLBY_BYTES = 64;

/** AC-3 and E-AC-3, whose `codecPrivate` is the body of a box; `samples`: of a frame, null where that varies. */
function dolby(type: "ac-3" | "ec-3", configType: string, samples: number | null): FormatOf {
  return (track) => {
    const { codecPrivate: config, sampleRate, isFramed } = track;
    if (config === null || config.length < MIN_DOLBY_BYTES || config.length > MAX_DOLBY_BYTES || isFramed) return null;
    return {
      entry: audioEntry(type, track, box(configType, config)),
      codecs: type,
      frame90k: samples === null || !sampleRate ? null : samples * 90_000 / sampleRate,
      early90k: 0,
    };
  };
}

const FORMATS: Readonly<Partial<Record<Codec, FormatOf>>> = {
  h264: video("avc1", "avcC", avcString),
  hevc: video("hvc1", "hvcC", hevcString),
  av1: video("av01", "av1C", av1String),
  vp8: (track) => vpx(track, "vp08", track.codecPrivate ?? vp8Config(track.width ?? 0, track.height ?? 0)),
  vp9: (track) => vpx(track, "vp09", track.codecPrivate),
  aac,
  opus,
  flac,
  ac3: dolby("ac-3", "dac3", 1536),
  eac3: dolby("ec-3", "dec3", null),
};

/** How fragmented MP4 carries `track`; null when it can't. */
export function cmafFormat(track: Track): CmafFormat | null {
  if (track.kind !== "video" && track.kind !== "audio") return null;
  return FORMATS[track.codec]?.(track) ?? null;
}
