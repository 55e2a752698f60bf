/** What stream types and descriptors say about codecs (ISO/IEC 13818-1 table 2-34, ATSC A/53, DVB EN 300 468, BDAV). */
import type { Codec, Track } from "../../types.ts";
import { DESCRIPTOR, STREAM_TYPE } from "../../../bytes/ts/codes.ts";
import { descriptorsOf, type MapStream } from "../../../bytes/ts/psi.ts";

const TYPES: Readonly<Record<number, Codec>> = {
  [STREAM_TYPE.mpeg1Video]: "mpeg1video",
  [STREAM_TYPE.mpeg2Video]: "mpeg2video",
  [STREAM_TYPE.mpeg1Audio]: "mp2",
  [STREAM_TYPE.mpeg2Audio]: "mp2",
  [STREAM_TYPE.aac]: "aac",
  [STREAM_TYPE.aacLatm]: "aac",
  [STREAM_TYPE.h264]: "h264",
  [STREAM_TYPE.hevc]: "hevc",
  [STREAM_TYPE.pcm]: "pcm",
  [STREAM_TYPE.ac3]: "ac3",
  [STREAM_TYPE.dts]: "dts",
  [STREAM_TYPE.trueHd]: "truehd",
  [STREAM_TYPE.eac3Disc]: "eac3",
  [STREAM_TYPE.dtsHd]: "dts",
  [STREAM_TYPE.dtsHdMaster]: "dts",
  [STREAM_TYPE.eac3]: "eac3",
  [STREAM_TYPE.eac3Secondary]: "eac3",
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
const DESCRIPTOR_CODECS: Readonly<Record<number, Codec>> = {
  [DESCRIPTOR.ac3]: "ac3",
  [DESCRIPTOR.eac3]: "eac3",
  [DESCRIPTOR.dts]: "dts",
  [DESCRIPTOR.aac]: "aac",
};

const VIDEO: ReadonlySet<Codec> = new Set(["h264", "hevc", "mpeg2video", "mpeg1video", "av1"]);

const ascii = (bytes: Uint8Array) => String.fromCharCode(...bytes);

/** The track of an elementary stream; the caller sets `isDefault`. */
export function trackOf(stream: MapStream, isDefault: boolean): Track {
  let codec: Codec | undefined = stream.streamType === STREAM_TYPE.privateData ? undefined : TYPES[stream.streamType];
  let language: string | null = null;
  let subtitle = stream.streamType === STREAM_TYPE.pictureSubtitles ||
    stream.streamType === STREAM_TYPE.textSubtitles;
  for (const { tag, body } of descriptorsOf(stream.descriptors)) {
    if (tag === DESCRIPTOR.language && body.length >= 4) language = ascii(body.subarray(0, 3));
    else if (tag === DESCRIPTOR.teletext || tag === DESCRIPTOR.subtitling) subtitle = true;
    else if (tag === DESCRIPTOR.registration && body.length >= 4) codec ??= REGISTRATIONS[ascii(body.subarray(0, 4))];
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
