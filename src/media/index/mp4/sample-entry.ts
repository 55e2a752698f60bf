/** Sample descriptions (`stsd`): which codec, and the data its decoder needs. */
import type { Codec, Track } from "../../model/types.ts";
import { parseAacConfig } from "../../mux/ts/elementary/aac.ts";
import {
  flacHeadFrom,
  matroskaPcmId,
  opusHeadFrom,
  pcmFormOf,
  vorbisChannels,
  vorbisHeadFrom,
} from "./audio-config.ts";
import { codedAudioFrom } from "./coded-audio.ts";
import { readDolbyVision } from "../../codec/dolby-vision.ts";
import { bodyOf, type Box, boxesIn, child, entriesOf, fourCharacters } from "../../../bytes/boxes.ts";

/** A track's properties from its sample entry. */
export type EntryFacts = Pick<
  Track,
  | "codec"
  | "codecId"
  | "codecPrivate"
  | "width"
  | "height"
  | "sampleRate"
  | "channels"
  | "bitDepth"
  | "matroskaId"
  | "soundPacket"
  | "dolbyVision"
  | "colours"
  | "isForced"
>;

/** Sample entry types whose name alone identifies the codec. */
const BY_TYPE: Readonly<Record<string, Codec>> = {
  avc1: "h264",
  avc3: "h264",
  hvc1: "hevc",
  hev1: "hevc",
  dvh1: "hevc",
  dvhe: "hevc",
  m2v1: "mpeg2video",
  mp2v: "mpeg2video",
  mpg2: "mpeg2video",
  mp1v: "mpeg1video",
  mx5p: "mpeg2video",
  mx4p: "mpeg2video",
  mx3p: "mpeg2video",
  mx5n: "mpeg2video",
  mx4n: "mpeg2video",
  mx3n: "mpeg2video",
  vp08: "vp8",
  vp09: "vp9",
  av01: "av1",
  ".mp3": "mp3",
  ".mp2": "mp2",
  "ms\0U": "mp3",
  "ac-3": "ac3",
  sac3: "ac3",
  "ec-3": "eac3",
  Opus: "opus",
  fLaC: "flac",
  dtsc: "dts",
  dtsh: "dts",
  dtsl: "dts",
  dtse: "dts",
  mlpa: "truehd",
  lpcm: "pcm",
  sowt: "pcm",
  twos: "pcm",
  ipcm: "pcm",
  fpcm: "pcm",
  in24: "pcm",
  in32: "pcm",
  fl32: "pcm",
  fl64: "pcm",
  "raw ": "pcm",
};

/** objectTypeIndication of an elementary stream descriptor (mp4ra.org). */
const BY_OBJECT_TYPE: Readonly<Record<number, Codec>> = {
  0x20: "mpeg4",
  0x40: "aac",
  0x60: "mpeg2video",
  0x61: "mpeg2video",
  0x62: "mpeg2video",
  0x63: "mpeg2video",
  0x64: "mpeg2video",
  0x65: "mpeg2video",
  0x66: "aac",
  0x67: "aac",
  0x68: "aac",
  0x69: "mp3",
  0x6a: "mpeg1video",
  0x6b: "mp3",
  0xa5: "ac3",
  0xa6: "eac3",
  0xa9: "dts",
  0xad: "opus",
  0xdd: "vorbis",
};

/** MPEG-2 of cameras and editors in QuickTime: HDV, XDCAM EX, XDCAM HD; the last character is size and rate. */
const CAMERA_TYPES = /^(hdv|xdv|xd5)[0-9a-z]$/;

function codecOfType(type: string): Codec {
  return BY_TYPE[type] ?? (CAMERA_TYPES.test(type) ? "mpeg2video" : "other");
}

const TAG_ES = 3;
const TAG_DECODER_CONFIG = 4;
const TAG_DECODER_SPECIFIC = 5;

/** The first sample entry of `stsd`; null when there is none. */
export function readSampleEntry(stsd: Box, kind: Track["kind"]): EntryFacts | null {
  const { at, count } = entriesOf(stsd, 4, 8);
  if (count === 0) return null;
  for (const entry of boxesIn(stsd.view, at, stsd.end)) {
    if (kind === "video") return videoEntry(entry);
    if (kind === "audio") return audioEntry(entry);
    return { ...NOTHING, codec: "other", codecId: entry.type, ...forcedOf(entry) };
  }
  return null;
}

/** Whether all texts of tx3g are forced, as its display flags say (3GPP TS 26.245, and QuickTime's two bits). */
function forcedOf({ type, view, start, end }: Box): Pick<Track, "isForced"> {
  const isForced = type === "tx3g" && start + 12 <= end && view.getUint32(start + 8) >= ALL_FORCED;
  return isForced ? { isForced } : {};
}

const ALL_FORCED = 0x80000000;

const NOTHING = { codecPrivate: null, width: null, height: null, sampleRate: null, channels: null };

/** Boxes with the data of a decoder, by codec. */
const CONFIG_TYPES: Readonly<Partial<Record<Codec, string>>> = {
  h264: "avcC",
  hevc: "hvcC",
  av1: "av1C",
  vp8: "vpcC",
  vp9: "vpcC",
  ac3: "dac3",
  eac3: "dec3",
};

function videoEntry(entry: Box): EntryFacts {
  // VisualSampleEntry: 78 bytes before the boxes (14496-12, 12.1.3).
  const inner = entry.start + 78;
  const codec = codecOfType(entry.type);
  const facts = { ...NOTHING, codec, codecId: entry.type };
  if (inner > entry.end) return facts;
  const size = { width: entry.view.getUint16(entry.start + 24), height: entry.view.getUint16(entry.start + 26) };
  const boxes: Box = { ...entry, start: inner };
  if (entry.type === "mp4v") return { ...facts, ...size, ...fromDescriptor(child(boxes, "esds")) };
  const configType = CONFIG_TYPES[codec];
  const config = configType === undefined ? null : child(boxes, configType);
  // The box of VP8 and VP9 has a version and flags before what other containers keep.
  const start = (config?.start ?? 0) + (configType === "vpcC" ? 4 : 0);
  const record = child(boxes, "dvcC") ?? child(boxes, "dvvC");
  const dolbyVision = record === null ? null : readDolbyVision(bodyOf(record));
  return {
    ...facts,
    ...size,
    codecPrivate: config === null || start > config.end ? null : bodyOf({ ...config, start }),
    ...coloursOf(child(boxes, "colr")),
    ...(dolbyVision === null ? {} : { dolbyVision }),
  };
}

/** Code points of `colr` (14496-12, 12.1.5); nothing where it has a profile instead. */
function coloursOf(box: Box | null): Pick<Track, "colours"> {
  if (box === null || box.start + 10 > box.end) return {};
  const { view, start } = box;
  const form = fourCharacters(view, start);
  if (form !== "nclx" && form !== "nclc") return {};
  const [primaries, transfer, matrix] = [4, 6, 8].map((at) => view.getUint16(start + at));
  const isFullRange = form === "nclx" && start + 11 <= box.end && view.getUint8(start + 10) >> 7 === 1;
  return { colours: { primaries: primaries!, transfer: transfer!, matrix: matrix!, isFullRange } };
}

function audioEntry(entry: Box): EntryFacts {
  const { view, start } = entry;
  const codec = codecOfType(entry.type);
  const facts: EntryFacts = { ...NOTHING, codec, codecId: entry.type };
  if (start + 28 > entry.end) return facts;
  // QuickTime's versions 1 and 2 have more fields before the boxes.
  const version = view.getUint16(start + 8);
  const inner = start + (version === 1 ? 44 : version === 2 ? 64 : 28);
  let sampleRate = view.getUint16(start + 24);
  let channels = view.getUint16(start + 16);
  if (version === 2 && start + 44 <= entry.end) {
    sampleRate = Math.round(view.getFloat64(start + 32));
    channels = view.getUint32(start + 40);
  }
  const base: EntryFacts = { ...facts, sampleRate: sampleRate || null, channels: channels || null };
  const boxes: Box = { ...entry, start: Math.min(inner, entry.end) };
  if (codec === "pcm") {
    const form = pcmFormOf(entry, inner);
    return form === null ? base : { ...base, bitDepth: form.bitDepth, matroskaId: matroskaPcmId(form) };
  }
  const coded = codedAudioFrom(entry, boxes, base.channels ?? 1);
  if (coded !== null) return { ...base, ...coded };
  const dOps = codec === "opus" ? child(boxes, "dOps") : null;
  if (dOps !== null) return { ...base, codecPrivate: opusHeadFrom(dOps) };
  const dfLa = codec === "flac" ? child(boxes, "dfLa") : null;
  if (dfLa !== null) return { ...base, codecPrivate: flacHeadFrom(dfLa) };
  const dolbyType = CONFIG_TYPES[codec];
  const dolby = dolbyType === undefined ? null : child(boxes, dolbyType);
  if (dolby !== null) return { ...base, codecPrivate: bodyOf(dolby) };
  if (entry.type !== "mp4a") return base;
  const wave = child(boxes, "wave");
  const described = fromDescriptor(child(boxes, "esds") ?? (wave === null ? null : child(wave, "esds")));
  if (described.codec === "vorbis" && described.codecPrivate !== null) {
    const codecPrivate = vorbisHeadFrom(described.codecPrivate);
    return { ...base, codec: "vorbis", codecPrivate, channels: vorbisChannels(codecPrivate) ?? base.channels };
  }
  const config = described.codec === "aac" && described.codecPrivate ? parseAacConfig(described.codecPrivate) : null;
  if (config === null) return { ...base, ...described };
  return { ...base, ...described, sampleRate: config.sampleRate, channels: config.channels };
}

/** Codec and decoder data from an elementary stream descriptor (14496-1, 7.2.6.5). */
function fromDescriptor(esds: Box | null): { codec: Codec; codecPrivate: Uint8Array | null } {
  const found: { codec: Codec; codecPrivate: Uint8Array | null } = { codec: "other", codecPrivate: null };
  if (esds === null) return found;
  const { view } = esds;
  let end = esds.end;
  for (let at = esds.start + 4; at + 2 <= end;) {
    const tag = view.getUint8(at++);
    let length = 0;
    for (let i = 0; i < 4 && at < end; i++) {
      const byte = view.getUint8(at++);
      length = length * 128 + (byte & 0x7f);
      if (byte < 0x80) break;
    }
    const body = at;
    if (tag === TAG_ES && at + 3 <= end) {
      const flags = view.getUint8(at + 2);
      at += 3 + (flags & 0x80 ? 2 : 0) + (flags & 0x20 ? 2 : 0);
      if (flags & 0x40 && at < end) at += 1 + view.getUint8(at);
      end = Math.min(end, body + length);
    } else if (tag === TAG_DECODER_CONFIG && at + 13 <= end) {
      found.codec = BY_OBJECT_TYPE[view.getUint8(at)] ?? "other";
      at += 13;
      end = Math.min(end, body + length);
    } else if (tag === TAG_DECODER_SPECIFIC) {
      found.codecPrivate = bodyOf({ type: "", view, start: body, end: Math.min(end, body + length) });
      return found;
    } else {
      at = body + length;
    }
  }
  return found;
}

/** The handler type of a track as a kind. */
export function kindOf(handler: Box | null): Track["kind"] {
  if (handler === null || handler.start + 12 > handler.end) return "other";
  switch (fourCharacters(handler.view, handler.start + 8)) {
    case "vide":
      return "video";
    case "soun":
      return "audio";
    case "subt":
    case "sbtl":
    case "text":
    case "clcp":
      return "subtitle";
    default:
      return "other";
  }
}
