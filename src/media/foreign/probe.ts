/** Asks ffprobe about a file: its streams, when they begin and how long they last. */
import type { ByteSource } from "../../bytes/source.ts";
import { concatBytes } from "../../bytes/hex.ts";
import { MillraceError } from "../../errors.ts";
import type { Codec, Track } from "../model/types.ts";
import { inputArguments } from "./programs.ts";
import type { ForeignReader } from "../model/foreign-reader.ts";

/** Most streams considered; a DVD has 32 subtitles and 8 sound tracks. */
const MAX_STREAMS = 64;
/** Longest answer of ffprobe, bytes: a stream takes 3 KB, and tags can be long. */
const MAX_ANSWER_BYTES = 1024 * 1024;
/** Frames per second when ffprobe does not report it. */
const UNKNOWN_RATE = 25;
/** Highest believable frame rate, frames per second. */
const MOST_RATE = 1000;

/** A stream of the file. */
export interface ForeignStream {
  /** Its number in the file, as ffmpeg counts. */
  readonly index: number;
  readonly track: Track;
  /** By how many pictures the presentation order may differ from the decoding order. */
  readonly reorderFrames: number;
  readonly framesPerSecond: number;
}

/** What ffprobe reports about a file. */
export interface ForeignFile {
  readonly streams: readonly ForeignStream[];
  /** When the first of its streams begins, s. */
  readonly startS: number;
  /** null when unknown. */
  readonly durationS: number | null;
}

/** Codecs by ffmpeg's names. */
const CODECS: Readonly<Record<string, Codec>> = {
  h264: "h264",
  hevc: "hevc",
  mpeg1video: "mpeg1video",
  mpeg2video: "mpeg2video",
  mpeg4: "mpeg4",
  aac: "aac",
  mp2: "mp2",
  mp3: "mp3",
  ac3: "ac3",
  eac3: "eac3",
  vp8: "vp8",
  vp9: "vp9",
  av1: "av1",
  opus: "opus",
  vorbis: "vorbis",
  flac: "flac",
  dts: "dts",
  truehd: "truehd",
};

const SHOWN =
  "stream=index,codec_name,codec_type,width,height,sample_rate,channels,has_b_frames,r_frame_rate,start_time," +
  "duration:stream_disposition=default,attached_pic:stream_tags=language:format=start_time,duration";

/** Runs ffprobe. Rejects with `bad_media`, or as `ForeignReader.open` and its run. */
export async function probeForeign(
  reader: ForeignReader,
  demuxer: string,
  source: ByteSource,
  signal: AbortSignal,
): Promise<ForeignFile> {
  const run = await reader.open(
    {
      program: "ffprobe",
      arguments: (url) => [...inputArguments(demuxer), "-print_format", "json", "-show_entries", SHOWN, url],
      limitBytes: MAX_ANSWER_BYTES,
    },
    source,
    signal,
  );
  try {
    const parts: Uint8Array[] = [];
    for (let part = await run.next(signal); part !== null; part = await run.next(signal)) parts.push(part);
    return readProbe(new TextDecoder().decode(concatBytes(parts)));
  } finally {
    run.close();
  }
}

/** Parses ffprobe's output. Throws `bad_media` when it is malformed. */
export function readProbe(json: string): ForeignFile {
  let answer: unknown;
  try {
    answer = JSON.parse(json);
  } catch (cause) {
    throw new MillraceError("bad_media", "ffprobe cannot read the file", { cause });
  }
  const { streams, format } = fieldsOf(answer);
  const found = (Array.isArray(streams) ? streams.slice(0, MAX_STREAMS) : []).flatMap((stream, i) => {
    const fields = fieldsOf(stream);
    return fieldsOf(fields["disposition"])["attached_pic"] === 1 ? [] : [streamOf(fields, i)];
  });
  const told = fieldsOf(format);
  const durations = (Array.isArray(streams) ? streams : []).map((stream) => seconds(fieldsOf(stream)["duration"]) ?? 0);
  const durationS = seconds(told["duration"]) ?? Math.max(0, ...durations);
  return { streams: found, startS: seconds(told["start_time"]) ?? 0, durationS: durationS > 0 ? durationS : null };
}

function streamOf(fields: Readonly<Record<string, unknown>>, i: number): ForeignStream {
  const name = text(fields["codec_name"]) ?? "unknown";
  const type = text(fields["codec_type"]);
  const kind = type === "video" || type === "audio" || type === "subtitle" ? type : "other";
  const codec = CODECS[name] ?? (name.startsWith("pcm_") ? "pcm" : "other");
  const language = text(fieldsOf(fields["tags"])["language"]);
  const rate = /^(\d+)\/(\d+)$/.exec(text(fields["r_frame_rate"]) ?? "");
  const framesPerSecond = rate === null ? 0 : Number(rate[1]) / Number(rate[2]);
  return {
    index: count(fields["index"]) ?? i,
    track: {
      id: i + 1,
      kind,
      codec,
      codecId: name,
      language: language === null || language === "und" ? null : language,
      isDefault: fieldsOf(fields["disposition"])["default"] === 1,
      codecPrivate: null,
      width: count(fields["width"]) || null,
      height: count(fields["height"]) || null,
      sampleRate: count(Number(fields["sample_rate"])) || null,
      channels: count(fields["channels"]) || null,
      isFramed: true,
    },
    reorderFrames: Math.min(16, count(fields["has_b_frames"]) ?? 0),
    framesPerSecond: framesPerSecond >= 1 && framesPerSecond <= MOST_RATE ? framesPerSecond : UNKNOWN_RATE,
  };
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? value as Record<string, unknown> : {};
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value.slice(0, 64) : null;
}

function count(value: unknown): number | null {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : null;
}

function seconds(value: unknown): number | null {
  const number = typeof value === "string" ? Number(value) : NaN;
  return Number.isFinite(number) ? number : null;
}
