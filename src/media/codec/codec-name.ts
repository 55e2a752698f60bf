/** Names of codecs in segments of MPEG TS, for `CODECS`. Those of fragmented MP4 come with its sample entries. */
import { aacString, avcString, hevcString } from "./codec-strings.ts";
import type { Codec, Track } from "../model/types.ts";

/** Codecs whose name has no parameters, or whose parameters nobody looks at. */
const FIXED: Readonly<Partial<Record<Codec, string>>> = {
  mp3: "mp4a.40.34",
  mp2: "mp4a.40.33",
  ac3: "ac-3",
  eac3: "ec-3",
};

/** The name of the codec of `track`, with its profile; null where it has none or the track does not say which. */
export function codecName({ codec, codecPrivate: config, isFramed }: Track): string | null {
  const known = config !== null && !isFramed;
  switch (codec) {
    case "h264":
      return known ? avcString(config) : null;
    case "hevc":
      return known ? hevcString(config) : null;
    case "aac":
      return known ? aacString(config) : "mp4a.40.2";
    default:
      return FIXED[codec] ?? null;
  }
}
