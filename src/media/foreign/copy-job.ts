/** Makes the ffmpeg call that copies streams of a file, or converts their sound, into a transport stream. */
import { LOG_ARGUMENTS } from "../transcode/ffmpeg-log.ts";
import type { AudioTarget, MadeChannels } from "../model/audio-target.ts";
import { MADE_RATE, TARGETS } from "../model/audio-target.ts";
import { inputArguments } from "./programs.ts";
import type { ForeignJob } from "../model/foreign-reader.ts";
import { FIRST_PID } from "./unit-reader.ts";

/**
 * Samples by which an encoder's first packet precedes its input. If the input begins this many samples after a frame boundary
 * of the file's clock, the encoder's frames lie on frame boundaries.
 */
const LEAD_SAMPLES: Readonly<Record<AudioTarget, number>> = { aac: 0, ac3: 256 };

/** A stream of the output. */
export interface CopiedStream {
  /** Its number in the file. */
  readonly index: number;
  readonly codecId: string;
  readonly kind: "video" | "audio";
  /** Whether pictures are shown in decoding order; set when the container has no presentation times. */
  readonly isInOrder?: boolean;
  /** Format that its sound is converted to; null: the stream is copied. */
  readonly made: { readonly target: AudioTarget; readonly channels: MadeChannels } | null;
}

/** What to copy from a file. */
export interface CopyWish {
  readonly demuxer: string;
  readonly streams: readonly CopiedStream[];
  /** Where to begin on the file's own clock, s; null: at its beginning. */
  readonly fromS: number | null;
  /** Where converted sound begins, s: sound that begins later is preceded by silence. */
  readonly soundFromS: number;
  readonly limitBytes: number;
}

/** The job: its output has `streams` in order, with PIDs from `FIRST_PID` on, one access unit per PES, on the file's clock. */
export function copyJob({ demuxer, streams, fromS, soundFromS, limitBytes }: CopyWish): ForeignJob {
  const outputs = streams.flatMap((
    stream,
    i,
  ) => ["-map", `0:${stream.index}`, ...codecArguments(stream, i, soundFromS)]);
  return {
    program: "ffmpeg",
    limitBytes,
    arguments: (url) => [
      ...["-nostdin", "-threads", "1"],
      ...inputArguments(demuxer),
      ...(streams.some(({ made }) => made !== null) ? LOG_ARGUMENTS : []),
      // For containers without presentation times (AVI), make them from the decoding order.
      ...["-fflags", "+genpts", "-copyts"],
      // Without the first option ffmpeg counts from the beginning of the file.
      ...(fromS === null ? [] : ["-seek_timestamp", "1", "-ss", fromS.toFixed(6)]),
      ...["-i", url, ...outputs],
      ...["-dn", "-sn", "-flags", "+bitexact", "-muxdelay", "0", "-muxpreload", "0", "-avoid_negative_ts", "disabled"],
      ...["-mpegts_copyts", "1", "-mpegts_start_pid", String(FIRST_PID), "-pes_payload_size", "0"],
      ...["-flush_packets", "1", "-f", "mpegts", "pipe:1"],
    ],
  };
}

function codecArguments({ codecId, made }: CopiedStream, i: number, fromS: number): string[] {
  if (made === null) {
    const copied = [`-c:${i}`, "copy"];
    // Split packets that hold two pictures, and repeat the headers before each random access point.
    if (codecId === "mpeg4") copied.push(`-bsf:${i}`, "mpeg4_unpack_bframes,dump_extra=freq=keyframe");
    return copied;
  }
  const { target, channels } = made;
  const { frameSamples, bitsPerSecond } = TARGETS[target];
  const first = Math.floor(fromS * MADE_RATE / frameSamples) * frameSamples + LEAD_SAMPLES[target];
  return [
    ...[`-c:${i}`, target, `-b:${i}`, String(bitsPerSecond[channels]), `-ac:${i}`, String(channels)],
    // Two steps: a single aresample that also changes the rate reads first_pts at the other rate.
    ...[`-filter:${i}`, `aresample=${MADE_RATE},aresample=${MADE_RATE}:async=1:min_hard_comp=0.02:first_pts=${first}`],
    ...[`-threads:${i}`, "1"],
  ];
}
