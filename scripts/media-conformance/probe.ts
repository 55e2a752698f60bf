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

/**
 * For each of `streams` a hash per decoded picture, or per frame of sound as the stream has it, in order. `isFramed`: its
 * AAC has ADTS headers, which do not count.
 */
export function contents(file: string, streams: readonly Stream[], isFramed: boolean): string[][] {
  const words = streams.flatMap(({ index }) => ["-map", `0:${index}`]);
  const sounds = streams.filter(({ kind }) => kind === "audio");
  const stripped = sounds.flatMap(({ codec }, n) =>
    isFramed && codec === "aac" ? [`-bsf:a:${n}`, "aac_adtstoasc"] : []
  );
  const text = call(
    "ffmpeg",
    ...["-v", "error", "-threads", "1", "-i", file, ...words, "-c:a", "copy", ...stripped],
    ...["-fps_mode", "passthrough", "-f", "framemd5", "-"],
  );
  const hashes: string[][] = streams.map(() => []);
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const fields = line.split(",");
    // Stream, two times, duration, size, hash, and side data that the TS has elsewhere.
    hashes[Number(fields[0])]!.push(fields[5]!.trim());
  }
  return hashes;
}
