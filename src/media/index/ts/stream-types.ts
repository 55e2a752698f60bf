/** What stream types and descriptors say about codecs (ISO/IEC 13818-1 table 2-34, ATSC A/53, DVB EN 300 468, BDAV). */
import type { Codec, Track } from "../../types.ts";
import { descriptorsOf, type MapStream } from "../../../bytes/ts/psi.ts";

const TYPES: Readonly<Record<number, Codec>> = {
  0x01: "mpeg1video",
  0x02: "mpeg2video",
  0x03: "mp2",
  0x04: "mp2",
  0x0f: "aac",
  0x11: "aac",
  0x1b: "h264",
  0x24: "hevc",
  0x80: "pcm",
  0x81: "ac3",
  0x82: "dts",
  0x83: "truehd",
  0x84: "eac3",
  0x85: "dts",
  0x86: "dts",
  0x87: "eac3",
  0xa1: "eac3",
};

/** format_identifier of the registration descriptor. */
const REGISTRATIONS: Readonly<Record<string, Codec>> = {
  "AC-3": "ac3",
  "EAC3": "eac3",
  "HEVC": "hevc",
  "DTS1": "dts",
  "DTS2": "dts",
  "DTS3": "dts",
  "Opus": "opus",
  "AV01": "av1",
};

/** DVB descriptors that name the codec of private data. */
const DESCRIPTOR_CODECS: Readonly<Record<number, Codec>> = { 0x6a: "ac3", 0x7a: "eac3", 0x7b: "dts", 0x7c: "aac" };

const TAG_REGISTRATION = 0x05;
const TAG_LANGUAGE = 0x0a;
const TAG_TELETEXT = 0x56;
const TAG_SUBTITLING = 0x59;
const PRIVATE_DATA = 0x06;

const VIDEO: ReadonlySet<Codec> = new Set(["h264", "hevc", "mpeg2video", "mpeg1video", "av1"]);

const ascii = (bytes: Uint8Array) => String.fromCharCode(...bytes);

/** The track of an elementary stream; the caller sets `isDefault`. */
export function trackOf(stream: MapStream, isDefault: boolean): Track {
  let codec: Codec | undefined = stream.streamType === PRIVATE_DATA ? undefined : TYPES[stream.streamType];
  let language: string | null = null;
  let subtitle = stream.streamType === 0x90 || stream.streamType === 0x92;
  for (const { tag, body } of descriptorsOf(stream.descriptors)) {
    if (tag === TAG_LANGUAGE && body.length >= 4) language = ascii(body.subarray(0, 3));
    else if (tag === TAG_TELETEXT || tag === TAG_SUBTITLING) subtitle = true;
    else if (tag === TAG_REGISTRATION && body.length >= 4) codec ??= REGISTRATIONS[ascii(body.subarray(0, 4))];
    else codec ??= DESCRIPTOR_CODECS[tag];
  }
  const kind = codec === undefined ? subtitle ? "subtitle" : "other" : VIDEO.has(codec) ? "video" : "audio";
  return {
    id: stream.pid,
    kind,
    codec: codec ?? "other",
    codecId: `0x${stream.streamType.toString(16).padStart(2, "0")}`,
    language: language === "und" || language === "" ? null : language,
    isDefault,
    codecPrivate: null,
    width: null,
    height: null,
    sampleRate: null,
    channels: null,
  };
}
