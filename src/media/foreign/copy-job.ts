/** How ffmpeg is called to copy streams of a file, or to make their sound into another, into a transport stream. */
import type { AudioTarget, MadeChannels } from "../transcode/types.ts";
import { MADE_RATE, TARGETS } from "../transcode/types.ts";
import { inputArguments } from "./programs.ts";
import type { ForeignJob } from "./types.ts";
import { FIRST_PID } from "./unit-reader.ts";

/**
 * Samples by which an encoder's first packet precedes the sound that it is given. Where that sound begins at a whole number
 * of frames and so many samples, frames begin at whole numbers of frames of the file's clock.
 */
const LEAD_SAMPLES: Readonly<Record<AudioTarget, number>> = { aac: 0, ac3: 256 };

/** A stream of the output. */
export interface CopiedStream {
  /** Its number in the file. */
  readonly index: number;
  readonly codecId: string;
  readonly kind: "video" | "audio";
  /** Pictures are shown in the order in which they are decoded, though the container does not say when. */
  readonly isInOrder?: boolean;
  /** What its sound is made into; null: it is copied. */
  readonly made: { readonly target: AudioTarget; readonly channels: MadeChannels } | null;
}

/** What is wanted of a file. */
export interface CopyWish {
  readonly demuxer: string;
  readonly streams: readonly CopiedStream[];
  /** Where to begin on the file's own clock, s; null: at its beginning. */
  readonly fromS: number | null;
  /** Where made sound begins, s: silence is put before what is later. */
  readonly soundFromS: number;
  readonly limitBytes: number;
}

/** The job: the output has `streams` in their order from `FIRST_PID` on, an access unit in each PES, on the file's clock. */
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
      // Containers without times of presentation (AVI): from the order of decoding.
      ...["-fflags", "+genpts", "-copyts"],
      ...(fromS === null ? [] : ["-ss", fromS.toFixed(6)]),
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
    // Two pictures in one packet are taken apart; the headers go before each random access point.
    if (codecId === "mpeg4") copied.push(`-bsf:${i}`, "mpeg4_unpack_bframes,dump_extra=freq=keyframe");
    return copied;
  }
  const { target, channels } = made;
  const { frameSamples, bitsPerSecond } = TARGETS[target];
  const first = Math.floor(fromS * MADE_RATE / frameSamples) * frameSamples + LEAD_SAMPLES[target];
  return [
    ...[`-c:${i}`, target, `-b:${i}`, String(bitsPerSecond[channels]), `-ac:${i}`, String(channels)],
    // Two steps: one that changes the rate as well takes first_pts for a time at another rate.
    ...[`-filter:${i}`, `aresample=${MADE_RATE},aresample=${MADE_RATE}:async=1:min_hard_comp=0.02:first_pts=${first}`],
    ...[`-threads:${i}`, "1"],
  ];
}
