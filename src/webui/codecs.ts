/** Names of codecs that people know, from the strings that browsers use (RFC 6381). */

import type { ApiTrack } from "./engine.ts";

const NAMES: readonly (readonly [RegExp, string])[] = [
  [/^(hvc1|hev1|hevc|h265)/i, "HEVC (H.265)"],
  [/^(avc1|avc3|h264)/i, "H.264"],
  [/^(av01|av1)/i, "AV1"],
  [/^(vp09|vp9|vp08|vp8)/i, "VP8/VP9"],
  [/^(mpeg2video|mp4v\.61|mp2v)/i, "MPEG-2"],
  [/^(mpeg1video|mp4v\.6a)/i, "MPEG-1"],
  [/^(ac-3|ac3)/i, "Dolby Digital (AC-3)"],
  [/^(ec-3|eac3)/i, "Dolby Digital Plus (E-AC-3)"],
  [/^(dts|dca)/i, "DTS"],
  [/^(mp4a\.69|mp4a\.6b|mp3)/i, "MP3"],
  [/^mp2$/i, "MP2"],
  [/^(mp4a|aac)/i, "AAC"],
  [/^opus/i, "Opus"],
  [/^flac/i, "FLAC"],
];

/** Codecs of the engine's outputs, with the MIME type by which a browser is asked whether it decodes them. */
const TYPES: Readonly<Record<string, string>> = {
  h264: 'video/mp4; codecs="avc1.64001f"',
  hevc: 'video/mp4; codecs="hvc1.1.6.L93.90"',
  mpeg2video: 'video/mp4; codecs="mp4v.61"',
  mpeg1video: 'video/mp4; codecs="mp4v.6a"',
  av1: 'video/mp4; codecs="av01.0.05M.08"',
  vp9: 'video/mp4; codecs="vp09.00.31.08"',
  vp8: 'video/mp4; codecs="vp08.00.31.08"',
  aac: 'audio/mp4; codecs="mp4a.40.2"',
  opus: 'audio/mp4; codecs="opus"',
  flac: 'audio/mp4; codecs="flac"',
  mp3: "audio/mpeg",
  ac3: 'audio/mp4; codecs="ac-3"',
  eac3: 'audio/mp4; codecs="ec-3"',
};

/** What a browser lacks for `tracks`: names of codecs for the picture and for the sound, empty when it has them. */
export function missingCodecs(
  tracks: readonly Pick<ApiTrack, "kind" | "codec">[],
  canDecode: (type: string) => boolean,
): { readonly picture: string; readonly sound: string } {
  const lacking = (kind: ApiTrack["kind"]) => {
    const own = tracks.filter((track) => track.kind === kind);
    const isServed = own.length === 0 || own.some(({ codec }) => !(codec in TYPES) || canDecode(TYPES[codec]!));
    return isServed ? "" : codecNames(own.map(({ codec }) => codec).join(","));
  };
  return { picture: lacking("video"), sound: lacking("audio") };
}

/**
 * The codecs of a MIME type such as `video/mp4; codecs="hvc1.1.6,mp4a.40.2"`, or of one codec string, by name; what is not
 * known stays as it is.
 */
export function codecNames(type: string): string {
  const listed = /codecs="?([^"]+)"?/i.exec(type)?.[1] ?? type;
  const names = listed.split(",").map((codec) => codec.trim()).filter((codec) => codec !== "")
    .map((codec) => NAMES.find(([pattern]) => pattern.test(codec))?.[1] ?? codec);
  return [...new Set(names)].join(", ");
}

/** Whether this browser decodes a MIME type in HLS. */
export function canDecode(type: string): boolean {
  return "MediaSource" in globalThis
    ? MediaSource.isTypeSupported(type)
    : document.createElement("video").canPlayType(type) !== "";
}
