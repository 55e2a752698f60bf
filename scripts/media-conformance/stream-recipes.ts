/** Transport streams as recorders, discs and joiners leave them, and films whose sound becomes AAC. */
import { concatBytes } from "../../src/bytes/hex.ts";
import {
  AAC,
  direct,
  ffmpeg,
  forced,
  H264,
  merged,
  NO_INDEX,
  picture,
  type Recipe,
  sound,
  type Words,
} from "./recipes.ts";

const SECONDS = 8;
const test: Words = [...picture(25, SECONDS), ...sound(SECONDS)];
const film: Words = [...test, ...H264, ...AAC];
const MPEG2: Words = [...test, "-c:v", "mpeg2video", "-bf", 2, "-g", 15, "-b:v", "500k", "-c:a", "mp2"];
const HEVC: Words = [
  ...[...test, "-c:v", "libx265", "-preset", "ultrafast"],
  ...["-x265-params", "log-level=error:keyint=50:pools=1", "-c:a", "eac3"],
];

/** Two streams that ffmpeg writes, joined byte by byte. */
function joined(name: string, ...more: Words): Recipe {
  return {
    name,
    commands: [
      ffmpeg(film, "one.ts"),
      ffmpeg(film, "-output_ts_offset", SECONDS + 1, ...more, "two.ts"),
      ["sh", "-c", `cat one.ts two.ts >${name}`],
    ],
  };
}

const STREAMS: readonly Recipe[] = [
  direct("film.ts", film),
  direct("broadcast.ts", MPEG2),
  direct("hevc-eac3.ts", HEVC),
  direct("disc.m2ts", test, H264, "-c:a", "ac3", "-mpegts_m2ts_mode", 1),
  direct("open-gop.ts", film, "-x264-params", "open-gop=1"),
  direct("clock-wraps.ts", film, "-output_ts_offset", 95_440),
  direct("sound-late.ts", picture(25, SECONDS), "-itsoffset", "1.5", sound(SECONDS - 2), H264, AAC),
  direct("sound-only.ts", sound(20), "-c:a", "mp2"),
  direct("latm.ts", film, "-mpegts_flags", "latm"),
  direct("constant-rate.ts", film, "-muxrate", "2M"),
  direct(
    "two-sounds.ts",
    test,
    sound(SECONDS, 44100),
    ...["-map", 0, "-map", 1, "-map", 2],
    H264,
    "-c:a:0",
    "aac",
    "-c:a:1",
    "mp2",
  ),
  forced(joined("joined.ts"), { extinf: "times of segments of streams over 1 MiB are estimates" }),
  { ...direct("junk-first.ts", film), edit: (file) => concatBytes([new Uint8Array(3000).fill(0x11), file]) },
];

/** With DTS and others, which ffmpeg calls experimental. */
const made = (recipe: Recipe): Recipe => ({ ...recipe, asAac: true });
const SOUNDS: readonly (readonly [name: string, words: Words])[] = [
  ["flac", ["-c:a", "flac"]],
  ["opus", ["-c:a", "libopus"]],
  ["vorbis", ["-c:a", "libvorbis"]],
  ["dts", ["-c:a", "dca", "-strict", -2]],
  ["pcm", ["-c:a", "pcm_s16le"]],
  ["ac3", ["-c:a", "ac3"]],
  ["mp3", ["-c:a", "libmp3lame"]],
  ["tta", ["-c:a", "tta"]],
  ["wavpack", ["-c:a", "wavpack"]],
];
const MADE: readonly Recipe[] = [
  ...SOUNDS.map(([name, words]) => made(direct(`to-aac-${name}.mkv`, test, H264, words))),
  ...SOUNDS.filter(([name]) => name === "ac3" || name === "mp3" || name === "opus")
    .map(([name, words]) => made(direct(`to-aac-${name}.mp4`, test, H264, words))),
  made(direct("to-aac-ac3.ts", test, H264, "-c:a", "ac3")),
  made(direct("to-aac-mp2.ts", MPEG2)),
  made(direct("to-aac-latm.ts", film, "-mpegts_flags", "latm")),
  made(merged("to-aac-flac-mkvmerge.mkv", [], test, H264, "-c:a", "flac")),
  forced(
    made(merged("to-aac-no-cues.mkv", ["--cues", "0:none", "--cues", "1:none"], test, H264, "-c:a", "flac")),
    NO_INDEX,
  ),
];

/** All of them. */
export const STREAM_RECIPES: readonly Recipe[] = [...STREAMS, ...MADE];
