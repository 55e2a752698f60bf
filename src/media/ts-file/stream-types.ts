/** The tracks of a program, by what its map says about their streams. */
import type { Track } from "../model/types.ts";
import { DESCRIPTOR, STREAM_TYPE } from "../../bytes/ts/codes.ts";
import { descriptorsOf, type MapStream } from "../../bytes/ts/psi.ts";
import { codecOf, isVideoCodec } from "../../bytes/ts/stream-codec.ts";

const ascii = (bytes: Uint8Array) => String.fromCharCode(...bytes);

/** The track of an elementary stream of a program with these descriptors; the caller sets `isDefault`. */
export function trackOf(stream: MapStream, program: Uint8Array, isDefault: boolean): Track {
  const codec = codecOf(stream, program);
  let language: string | null = null;
  let subtitle = stream.streamType === STREAM_TYPE.pictureSubtitles ||
    stream.streamType === STREAM_TYPE.textSubtitles;
  for (const { tag, body } of descriptorsOf(stream.descriptors)) {
    if (tag === DESCRIPTOR.language && body.length >= 4) language = ascii(body.subarray(0, 3));
    else if (tag === DESCRIPTOR.teletext || tag === DESCRIPTOR.subtitling) subtitle = true;
  }
  const kind = codec === null ? subtitle ? "subtitle" : "other" : isVideoCodec(codec) ? "video" : "audio";
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
