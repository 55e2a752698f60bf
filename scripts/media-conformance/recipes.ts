/** The files of the suite: how each is made, and which deviations its format forces. */

import { withCompactSizes, withMovedCues } from "./edits.ts";

/** How one file is made. */
export interface Recipe {
  /** Unique; its ending is that of the file. */
  readonly name: string;
  /** Commands run one after the other in a folder of their own; the last one writes `name`, unless `write` does. */
  readonly commands: readonly (readonly string[])[];
  /** Writes `file` in that folder, after the commands. */
  readonly write?: (folder: string, file: string) => void | Promise<void>;
  /** What is done to the bytes of `name` afterwards, where no muxer writes it so. */
  readonly edit?: (file: Uint8Array) => Uint8Array;
  /** File in that folder with what the output should hold; default: `name` itself, as ffmpeg reads it. */
  readonly reference?: string;
  /** Its sound is asked for as AAC. Default false. */
  readonly asAac?: boolean;
  /** Kinds of deviation that the format forces, each with its reason. */
  readonly forced?: Readonly<Record<string, string>>;
}

/** Words of a command; lists in it are spread. */
export type Words = readonly (string | number)[];
type Spread = readonly (string | number | Words)[];

/** `words` as a command has them. */
export const strings = (...words: Spread): string[] => words.flat().map(String);

/** A test picture, as an input of ffmpeg that needs no file. */
export const picture = (rate: string | number, seconds: number, size = "320x180"): Words => [
  "-f",
  "lavfi",
  "-i",
  `testsrc2=s=${size}:r=${rate}:d=${seconds}`,
];
/** A tone. */
export const sound = (seconds: number, rate = 48000): Words => ["-f", "lavfi", "-i", `sine=440:d=${seconds}:r=${rate}`];
/** H.264 with two pictures in reverse order, a random access point each 50. */
export const H264: Words = ["-c:v", "libx264", "-preset", "ultrafast", "-g", 50, "-bf", 2, "-threads", 1];
export const AAC: Words = ["-c:a", "aac", "-b:a", "64k"];

/** A call of ffmpeg. */
export const ffmpeg = (...words: Spread): string[] => strings("ffmpeg", "-v", "error", "-y", ...words);
export const mkvmerge = (...words: Spread) => strings("mkvmerge", "-q", ...words);

/** What ffmpeg writes by itself. */
export function direct(name: string, ...words: Spread): Recipe {
  return { name, commands: [ffmpeg(...words, name)] };
}

/** What mkvmerge makes of a file that ffmpeg writes with `words`. */
export function merged(name: string, options: Words, ...words: Spread): Recipe {
  return { name, commands: [ffmpeg(...words, "in.mkv"), mkvmerge("-o", name, options, "in.mkv")] };
}

/** The same with deviations that its format forces. */
export const forced = (recipe: Recipe, reasons: Readonly<Record<string, string>>): Recipe => ({
  ...recipe,
  forced: { ...recipe.forced, ...reasons },
});
export const NO_INDEX = {
  extinf: "without an index only the media itself tells times: walking it would fetch the whole file",
};
const SPARSE = {
  faults: "as for structure",
  structure: "sound stands seconds before the picture of its run: it comes late rather than playing",
};

/** A pipeline of GStreamer. */
function pipeline(name: string, mux: string): Recipe {
  const video = "videotestsrc num-buffers=250 ! video/x-raw,width=320,height=180,framerate=25/1 ! " +
    "x264enc speed-preset=ultrafast key-int-max=50 bframes=2 ! h264parse ! queue ! mux.";
  const audio =
    "audiotestsrc num-buffers=430 samplesperbuffer=1024 ! audio/x-raw,rate=44100 ! voaacenc ! aacparse ! queue ! mux.";
  const words = `gst-launch-1.0 -q ${mux} name=mux ! filesink location=${name} ${video} ${audio}`.split(/\s+/);
  return { name, commands: [words] };
}

const film: Words = [...picture(25, 8), ...sound(8), ...H264, ...AAC];
/** A fragmented film joined to itself, which ffmpeg reads as one whose clock runs back: its concatenation says what is meant. */
function joined(name: string, movflags: string): Recipe {
  return {
    name,
    commands: [
      ffmpeg(film, "-movflags", movflags, "one.mp4"),
      ["sh", "-c", `cat one.mp4 one.mp4 >${name} && printf 'file one.mp4\\nfile one.mp4\\n' >list`],
      ffmpeg("-f", "concat", "-i", "list", "-c", "copy", "reference.mp4"),
    ],
    reference: "reference.mp4",
    forced: { times: "0.1 s is between the two films, as the sound of the first one lasts longer than its picture" },
  };
}

const rate = (
  fps: string | number,
  seconds = 10,
): Words => [...picture(fps, seconds), ...sound(seconds), ...H264, ...AAC];

/** Each picture a random access point with parameter sets. */
const intraHevc: Words = [
  ...[...picture(24, 6), ...sound(6), ...AAC, "-c:v", "libx265", "-preset", "ultrafast"],
  ...["-x265-params", "log-level=error:keyint=1:crf=40:pools=1"],
];
/** One picture that stays: all but the first of each group are a few bytes long. */
const still: Words = ["-f", "lavfi", "-i", "color=c=green:s=320x180:r=25:d=12", ...sound(12), ...H264, ...AAC];
/** 15 pictures a second, then 60. */
const rising: Words = [
  ...[...picture(60, 8), ...sound(8), ...H264, ...AAC],
  ...["-vf", "select='gte(t\\,4)+not(mod(n\\,4))'", "-fps_mode", "vfr"],
];
const FRAGMENTS_SIDX: Words = ["-movflags", "frag_keyframe+empty_moov+default_base_moof+global_sidx"];

const MATROSKA: readonly Recipe[] = [
  direct("plain.mkv", film),
  direct("live.mkv", film, "-f", "matroska", "-live", 1),
  direct("cues-front.mkv", film, "-cues_to_front", 1, "-reserve_index_space", 100_000),
  direct("cluster-100ms.mkv", film, "-cluster_time_limit", 100),
  direct("cluster-20s.mkv", film, "-cluster_time_limit", 20_000, "-cluster_size_limit", 20_000_000),
  merged("mkvmerge.mkv", [], film),
  merged("mkvmerge-no-cues.mkv", ["--cues", "0:none", "--cues", "1:none"], film),
  forced(merged("mkvmerge-all-cues.mkv", ["--cues", "0:all", "--cues", "1:all"], film), {
    times: "its Cues name pictures that are no random access points: runs begin at them as asked",
    structure: "as for times",
    faults: "as for times",
  }),
  merged("mkvmerge-zlib.mkv", ["--compression", "0:zlib", "--compression", "1:zlib"], film),
  forced({ ...direct("cues-into-clusters.mkv", film), edit: withMovedCues }, NO_INDEX),
  merged("mkvmerge-no-lacing.mkv", ["--disable-lacing"], film),
  merged("mkvmerge-chapters.mkv", ["--generate-chapters", "interval:3s"], film),
  merged("mkvmerge-sound-350ms-late.mkv", ["--sync", "1:350"], film),
  merged("mkvmerge-sound-350ms-early.mkv", ["--sync", "1:-350"], film),
  merged("mkvmerge-picture-500ms-late.mkv", ["--sync", "0:500"], film),
  merged("mkvmerge-microseconds.mkv", ["--timestamp-scale", 1000], film),
  merged("mkvmerge-cluster-100ms.mkv", ["--cluster-length", "100ms"], film),
  merged("mkvmerge-cluster-30s.mkv", ["--cluster-length", "30000ms"], film),
  merged("mkvmerge-split.mkv", ["--split", "parts:2s-7s"], film),
  forced(
    merged("mkvmerge-no-cues-uneven.mkv", ["--cues", "0:none", "--cues", "1:none"], [
      ...[
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=640x360:r=30:d=4,noise=alls=30:allf=t[a];color=s=640x360:r=30:d=16[b];[a][b]concat",
      ],
      ...sound(20),
      ...H264,
      ...AAC,
    ]),
    NO_INDEX,
  ),
  ...["24000/1001", 24, 30, "60000/1001", 120].map((fps) =>
    direct(`fps-${String(fps).replace("/", "-")}.mkv`, rate(fps, 5))
  ),
  forced(direct("one-picture-a-second.mkv", rate(1, 30), "-g", 10), {
    structure: "the clock pauses where runs meet: when the next one is first decoded is known when it is read",
  }),
  merged("one-picture-a-second-mkvmerge.mkv", [], rate(1, 30)),
  merged("one-picture-a-second-no-cues.mkv", ["--cues", "0:none", "--cues", "1:none"], rate(1, 30)),
  forced(direct("slides.mkv", rate("1/5", 40), "-g", 2), SPARSE),
  direct("interlaced.mkv", film, "-flags", "+ildct+ilme", "-x264-params", "tff=1"),
  direct("deep-reorder.mkv", film, "-bf", 16, "-x264-params", "b-pyramid=normal:ref=16"),
  direct("open-gop.mkv", film, "-x264-params", "open-gop=1"),
  direct("no-b.mkv", film, "-bf", 0),
  direct("intra.mkv", film, "-g", 1),
  direct("intra-hevc.mkv", intraHevc),
  direct("all-still.mkv", still),
  direct("rate-rises.mkv", rising),
  direct("long-gop.mkv", rate(25, 20), "-g", 400, "-keyint_min", 400),
  direct("vfr.mkv", film, "-vf", "select='not(mod(n\\,7))+lt(mod(n\\,50)\\,25)'", "-fps_mode", "vfr"),
  direct(
    "hevc.mkv",
    ...[picture(24, 8), sound(8)],
    "-c:v",
    "libx265",
    "-preset",
    "ultrafast",
    "-x265-params",
    "log-level=error:keyint=48:bframes=4",
    AAC,
  ),
  direct("mpeg2.mkv", picture(25, 8), sound(8), "-c:v", "mpeg2video", "-bf", 2, "-b:v", "500k", "-c:a", "ac3"),
  direct(
    "two-sounds.mkv",
    picture(25, 8),
    sound(8),
    sound(8, 44100),
    "-map",
    0,
    "-map",
    1,
    "-map",
    2,
    H264,
    "-c:a:0",
    "aac",
    "-c:a:1",
    "mp3",
  ),
  direct("ac3.mkv", picture(25, 8), sound(8), H264, "-c:a", "ac3"),
  forced(direct("eac3.mkv", picture(25, 8), sound(8), H264, "-c:a", "eac3"), {
    size: "frames of E-AC-3 differ in length: each has a PES of its own",
  }),
  direct("mp3.mkv", picture(25, 8), sound(8, 44100), H264, "-c:a", "libmp3lame"),
  direct("silent.mkv", picture(25, 8), H264),
  direct("sound-only.mka", sound(20), AAC),
  merged("sound-only-mkvmerge.mka", [], sound(20), AAC),
  direct(
    "low.mkv",
    picture(25, 30, "160x90"),
    sound(30, 44100),
    H264,
    "-g",
    250,
    "-b:v",
    "6k",
    "-c:a",
    "aac",
    "-b:a",
    "10k",
    "-ac",
    1,
  ),
  direct("low-sound-only.mka", sound(60, 22050), "-c:a", "aac", "-b:a", "8k", "-ac", 1),
  pipeline("gstreamer.mkv", "matroskamux"),
  pipeline("gstreamer-stream.mkv", "matroskamux streamable=true"),
];

const MP4: readonly Recipe[] = [
  direct("plain.mp4", film),
  direct("faststart.mp4", film, "-movflags", "+faststart"),
  direct("fps-60000-1001.mp4", rate("60000/1001", 5)),
  direct(
    "low.mp4",
    picture(25, 30, "160x90"),
    sound(30, 44100),
    H264,
    "-g",
    250,
    "-b:v",
    "6k",
    "-c:a",
    "aac",
    "-b:a",
    "10k",
    "-ac",
    1,
  ),
  direct("one-picture-a-second.mp4", rate(1, 30), "-g", 10),
  direct("fragments.mp4", film, "-movflags", "frag_keyframe+empty_moov+default_base_moof"),
  direct("intra-sidx.mp4", film, "-g", 1, FRAGMENTS_SIDX),
  direct("intra-hevc-sidx.mp4", intraHevc, "-tag:v", "hvc1", FRAGMENTS_SIDX),
  direct("all-still-sidx.mp4", still, FRAGMENTS_SIDX),
  direct("rate-rises-sidx.mp4", rising, FRAGMENTS_SIDX),
  direct("fragments-sidx.mp4", film, FRAGMENTS_SIDX),
  pipeline("gstreamer.mp4", "mp4mux"),
  pipeline("gstreamer-fragments.mp4", "mp4mux fragment-duration=1000"),
  direct("fragments-turns.mp4", film, "-movflags", "frag_every_frame+empty_moov+separate_moof"),
  direct("dash.mp4", film, "-movflags", "dash+delay_moov+frag_keyframe"),
  direct("opening-in-moov.mp4", film, "-movflags", "frag_keyframe"),
  {
    // ffmpeg does not read the times of Smooth Streaming: it has both tracks begin at 0.
    name: "smooth.ismv",
    commands: [ffmpeg(film, "film.mp4"), ffmpeg("-i", "film.mp4", "-c", "copy", "smooth.ismv")],
    reference: "film.mp4",
  },
  direct("quicktime.mov", film),
  direct("timecode.mov", film, "-timecode", "01:02:03:04"),
  direct("chapters-text.mp4", film, "-metadata:s:v", "title=x", "-write_tmcd", 1, "-timecode", "00:00:00:00"),
  direct("late-sound.mp4", picture(25, 10), "-itsoffset", "0.35", sound(10), H264, AAC),
  direct("late-picture.mp4", "-itsoffset", "0.5", picture(25, 10), sound(10), H264, AAC),
  direct("late-picture-no-edits.mp4", "-itsoffset", "0.5", picture(25, 10), sound(10), H264, AAC, "-use_editlist", 0),
  direct("negative-shifts.mp4", film, "-movflags", "negative_cts_offsets"),
  direct("deep-reorder.mp4", film, "-bf", 16, "-x264-params", "b-pyramid=normal:ref=16"),
  direct("vfr.mp4", film, "-vf", "select='not(mod(n\\,7))+lt(mod(n\\,50)\\,25)'", "-fps_mode", "vfr"),
  direct("ac3.mp4", picture(25, 8), sound(8), H264, "-c:a", "ac3"),
  direct("mp3.mp4", picture(25, 8), sound(8, 44100), H264, "-c:a", "libmp3lame"),
  direct("sound-only.m4a", sound(20), AAC),
  direct("low-sound-only.m4a", sound(60, 22050), "-c:a", "aac", "-b:a", "8k", "-ac", 1),
  direct("rate-200k.mp4", picture(25, 30), sound(30, 44100), H264, "-b:v", "150k", "-c:a", "aac", "-b:a", "48k"),
  direct("rate-400k.mp4", picture(25, 30), sound(30, 44100), H264, "-b:v", "340k", "-c:a", "aac", "-b:a", "64k"),
  { ...direct("stz2.mp4", film), edit: withCompactSizes },
  joined("joined-sidx.mp4", "frag_keyframe+empty_moov+default_base_moof+global_sidx"),
  joined("joined-mfra.mp4", "frag_keyframe+empty_moov+default_base_moof"),
  forced(joined("joined-bare.mp4", "frag_keyframe+empty_moov+default_base_moof+skip_trailer"), NO_INDEX),
];

/** All files that are made one by one. */
export const SINGLE_RECIPES: readonly Recipe[] = [...MATROSKA, ...MP4];
