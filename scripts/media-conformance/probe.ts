/** What ffmpeg reads in a file. */
import { execFileSync } from "node:child_process";

/** Answers of ffprobe and ffmpeg are no longer, bytes. */
const MAX_OUTPUT_BYTES = 1 << 28;
/** A call that takes longer hangs, ms. */
const CALL_TIMEOUT_MS = 60_000;

/** One packet of a stream; times in seconds. */
export interface Packet {
  readonly pts: number;
  readonly dts: number;
  readonly sizeBytes: number;
}

/** One stream of a file, in the file's order. */
export interface Stream {
  readonly index: number;
  readonly kind: "video" | "audio";
  readonly codec: string;
  readonly packets: Packet[];
}

function call(program: string, ...words: readonly string[]): string {
  return execFileSync(program, words, {
    encoding: "utf8",
    maxBuffer: MAX_OUTPUT_BYTES,
    timeout: CALL_TIMEOUT_MS,
    stdio: ["ignore", "pipe", "ignore"],
  });
}

/** Video and audio streams of `file` with their packets; cover pictures are none. */
export function probe(file: string): Stream[] {
  const text = call(
    "ffprobe",
    ...["-v", "error", "-show_entries"],
    "stream=index,codec_type,codec_name:stream_disposition=attached_pic:packet=stream_index,pts_time,dts_time,size",
    ...["-of", "json", file],
  );
  const told = JSON.parse(text) as {
    streams: { index: number; codec_type: string; codec_name: string; disposition?: { attached_pic: number } }[];
    packets: { stream_index: number; pts_time?: string; dts_time?: string; size: string }[];
  };
  const streams = told.streams
    .filter(({ codec_type, disposition }) =>
      (codec_type === "video" && disposition?.attached_pic !== 1) || codec_type === "audio"
    )
    .map(({ index, codec_type, codec_name }): Stream => ({
      index,
      kind: codec_type as Stream["kind"],
      codec: codec_name,
      packets: [],
    }));
  const byIndex = new Map(streams.map((stream) => [stream.index, stream]));
  for (const { stream_index, pts_time, dts_time, size } of told.packets) {
    byIndex.get(stream_index)?.packets.push({
      pts: Number(pts_time ?? dts_time),
      dts: Number(dts_time ?? pts_time),
      sizeBytes: Number(size),
    });
  }
  return streams;
}

/** A hash per decoded picture of the first video stream, in order; empty when there is none. */
export function pictures(file: string): string[] {
  const words = ["-v", "error", "-i", file, "-map", "0:v:0", "-fps_mode", "passthrough", "-f", "framemd5", "-"];
  return call("ffmpeg", ...words).split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => line.split(",").at(-1)!.trim());
}
