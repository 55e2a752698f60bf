/** The codec of an elementary stream, by its type and descriptors (ISO/IEC 13818-1 table 2-34, ATSC A/53, DVB EN 300 468, BDAV). */
import { DESCRIPTOR, STREAM_TYPE } from "./codes.ts";
import { descriptorsOf, type MapStream } from "./psi.ts";

/** Codecs that are recognised. */
export type TsCodec =
  | "mpeg1video"
  | "mpeg2video"
  | "mpeg4"
  | "h264"
  | "hevc"
  | "av1"
  | "mp2"
  | "aac"
  | "pcm"
  | "ac3"
  | "eac3"
  | "dts"
  | "truehd"
  | "opus";

const TYPES: Readonly<Record<number, TsCodec>> = {
  [STREAM_TYPE.mpeg1Video]: "mpeg1video",
  [STREAM_TYPE.mpeg2Video]: "mpeg2video",
  [STREAM_TYPE.mpeg1Audio]: "mp2",
  [STREAM_TYPE.mpeg2Audio]: "mp2",
  [STREAM_TYPE.aac]: "aac",
  [STREAM_TYPE.aacLatm]: "aac",
  [STREAM_TYPE.mpeg4Video]: "mpeg4",
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
const REGISTRATIONS: Readonly<Record<string, TsCodec>> = {
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
const DESCRIPTOR_CODECS: Readonly<Record<number, TsCodec>> = {
  [DESCRIPTOR.ac3]: "ac3",
  [DESCRIPTOR.eac3]: "eac3",
  [DESCRIPTOR.dts]: "dts",
  [DESCRIPTOR.aac]: "aac",
};

const VIDEO: ReadonlySet<TsCodec> = new Set(["h264", "hevc", "mpeg2video", "mpeg1video", "mpeg4", "av1"]);

/**
 * The codec of `stream`, a stream of the program with these descriptors; null for data, subtitles and whatever is not
 * recognised.
 */
export function codecOf(stream: MapStream, program: Uint8Array): TsCodec | null {
  // Discs have DTS-HD under the type that broadcasts give to SCTE-35.
  if (stream.streamType === STREAM_TYPE.dtsHdMaster && registrationOf(program) !== "HDMV") return null;
  let codec: TsCodec | undefined = stream.streamType === STREAM_TYPE.privateData ? undefined : TYPES[stream.streamType];
  for (const { tag, body } of descriptorsOf(stream.descriptors)) {
    if (tag === DESCRIPTOR.registration && body.length >= 4) {
      codec ??= REGISTRATIONS[identifier(body)];
    } else codec ??= DESCRIPTOR_CODECS[tag];
  }
  return codec ?? null;
}

function registrationOf(descriptors: Uint8Array): string | null {
  for (const { tag, body } of descriptorsOf(descriptors)) {
    if (tag === DESCRIPTOR.registration && body.length >= 4) return identifier(body);
  }
  return null;
}

function identifier(body: Uint8Array): string {
  return String.fromCharCode(...body.subarray(0, 4));
}

/** True for a codec of pictures; the others are sound. */
export function isVideoCodec(codec: TsCodec): boolean {
  return VIDEO.has(codec);
}
