/** Which codecs MPEG TS carries, and how. */
import { STREAM_TYPE } from "../../../../bytes/ts/codes.ts";
import type { Codec, Track } from "../../../model/types.ts";
import { aacFormat } from "./aac.ts";
import { type ElementaryFormat, type FormatOf, passThrough } from "./format.ts";
import { mpeg4Format } from "./mpeg4.ts";
import { h264Format, hevcFormat } from "./nal.ts";
import { dvbSubtitleFormat, pgsFormat } from "./subtitles.ts";

const AUDIO_STREAM_ID = 0xc0;
/** private_stream_1: where AC-3 and E-AC-3 live (ATSC A/53 part 3). */
const PRIVATE_STREAM_ID = 0xbd;
/** Below this rate MPEG audio is MPEG-2's low sampling frequencies extension. */
const LOWEST_MPEG1_RATE = 32000;

/** Duration of a frame of that many samples, 90 kHz; null where the rate is unknown. */
function frame90k({ sampleRate }: Track, samples: number): number | null {
  return sampleRate === null || sampleRate <= 0 ? null : samples * 90_000 / sampleRate;
}

function mpegAudio(track: Track): ElementaryFormat {
  const isMpeg2 = track.sampleRate !== null && track.sampleRate < LOWEST_MPEG1_RATE;
  const samples = isMpeg2 && track.codec === "mp3" ? 576 : 1152;
  return passThrough(
    isMpeg2 ? STREAM_TYPE.mpeg2Audio : STREAM_TYPE.mpeg1Audio,
    AUDIO_STREAM_ID,
    null,
    frame90k(track, samples),
  );
}

const FORMATS: Readonly<Partial<Record<Codec, FormatOf>>> = {
  h264: h264Format,
  hevc: hevcFormat,
  mpeg2video: () => passThrough(STREAM_TYPE.mpeg2Video, 0xe0, null),
  mpeg1video: () => passThrough(STREAM_TYPE.mpeg1Video, 0xe0, null),
  mpeg4: mpeg4Format,
  aac: aacFormat,
  mp3: mpegAudio,
  mp2: mpegAudio,
  ac3: (track) => passThrough(STREAM_TYPE.ac3, PRIVATE_STREAM_ID, "AC-3", frame90k(track, 1536)),
  eac3: () => passThrough(STREAM_TYPE.eac3, PRIVATE_STREAM_ID, "EAC3"),
};

const SUBTITLE_FORMATS: Readonly<Partial<Record<Codec, FormatOf>>> = { pgs: pgsFormat, dvbsub: dvbSubtitleFormat };

/** How MPEG TS carries `track`; null when it can't. */
export function elementaryFormat(track: Track): ElementaryFormat | null {
  if (track.kind === "subtitle") return SUBTITLE_FORMATS[track.codec]?.(track) ?? null;
  if (track.kind !== "video" && track.kind !== "audio") return null;
  return FORMATS[track.codec]?.(track) ?? null;
}
