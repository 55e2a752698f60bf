/** Names of codecs that people know, from the strings that browsers use (RFC 6381). */

/** A track, by its codec's usual name. */
export interface ApiTrack {
  readonly kind: "video" | "audio" | "subtitle" | "other";
  readonly codec: string;
  /** RFC 6381; null when unknown. */
  readonly codecs: string | null;
  /** BCP 47 or ISO 639-2; null when unknown. */
  readonly language: string | null;
  readonly width: number | null;
  readonly height: number | null;
}

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

/** Names of codecs for the picture and for the sound that a browser lacks; empty when it has them. */
export interface Lacks {
  readonly picture: string;
  readonly sound: string;
}

/** A browser that has everything. */
export const LACKS_NOTHING: Lacks = { picture: "", sound: "" };

/** What a browser lacks for `tracks`; `decodes` says whether it decodes a MIME type of a track. */
export async function missingCodecs(
  tracks: readonly ApiTrack[],
  decodes: (type: string, track: ApiTrack) => Promise<boolean>,
): Promise<Lacks> {
  const lacking = async (kind: ApiTrack["kind"]) => {
    const own = tracks.filter((track) => track.kind === kind);
    for (const track of own) {
      const type = typeOf(track);
      if (type === undefined || await decodes(type, track)) return "";
    }
    return codecNames(own.map(({ codec }) => codec).join(","));
  };
  return { picture: await lacking("video"), sound: await lacking("audio") };
}

/** The MIME type by which a browser is asked for `track`; absent: nobody knows one. */
function typeOf({ kind, codec, codecs }: ApiTrack): string | undefined {
  return codecs === null ? TYPES[codec] : `${kind}/mp4; codecs="${codecs}"`;
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

/** What is asked with a film's pictures: whether a browser decodes them at all does not depend on it. */
const USUAL = { width: 1280, height: 720, bitrate: 4_000_000, framerate: 25 };

/** Whether this browser decodes a MIME type in HLS. */
export async function canDecode(type: string, { kind, width, height }: ApiTrack): Promise<boolean> {
  const hasSource = "MediaSource" in globalThis;
  // Pages that came without TLS from another machine have none.
  const capabilities = navigator.mediaCapabilities as MediaCapabilities | undefined;
  if (capabilities !== undefined) {
    const from = hasSource ? "media-source" : "file";
    const video = { ...USUAL, ...width && height ? { width, height } : {}, contentType: type };
    const wish = kind === "video" ? { type: from, video } : { type: from, audio: { contentType: type } };
    const answer = await capabilities.decodingInfo(wish as MediaDecodingConfiguration).catch(() => null);
    if (answer !== null) return answer.supported;
  }
  return hasSource ? MediaSource.isTypeSupported(type) : document.createElement("video").canPlayType(type) !== "";
}
