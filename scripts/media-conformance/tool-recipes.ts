/** Files by programs and libraries other than ffmpeg and mkvmerge: HandBrake, x264, Shaka Packager, GStreamer, mediabunny, mux.js, mp4box.js. */
import path from "node:path";
import { MkvOutputFormat, MovOutputFormat, Mp4OutputFormat } from "mediabunny";
import {
  AAC,
  ffmpeg,
  forced,
  H264,
  merged,
  mkvmerge,
  picture,
  type Recipe,
  sound,
  strings,
  type Words,
} from "./recipes.ts";
import { byMediabunny, byMp4box, byMuxJs, type Remux } from "./script-muxers.ts";

const film: Words = [...picture(25, 6), ...sound(6), ...H264, ...AAC];
const ntsc: Words = [...picture("30000/1001", 6), ...sound(6, 44100), ...H264, ...AAC];
const hevc: Words = [
  ...[...picture(24, 6), ...sound(6), "-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hvc1"],
  ...["-x265-params", "log-level=error:keyint=48:bframes=4:pools=1", ...AAC],
];

/** What a library makes of a file that ffmpeg writes. */
function rewritten(name: string, remux: Remux, words: Words, from = "in.mp4"): Recipe {
  return {
    name,
    commands: [ffmpeg(words, from)],
    write: (folder, file) => remux(path.join(folder, from), file),
    // ffmpeg reads shifts below zero in fragments as if the whole track were later.
    ...(from.endsWith(".mp4") ? { reference: from } : {}),
  };
}

const mediabunny: readonly Recipe[] = [
  ...([["film", film], ["ntsc", ntsc], ["hevc", hevc]] as const).flatMap(([what, words]) => [
    rewritten(`mediabunny-${what}.mp4`, byMediabunny(() => new Mp4OutputFormat({ fastStart: false })), words),
    rewritten(
      `mediabunny-${what}-fragments.mp4`,
      byMediabunny(() => new Mp4OutputFormat({ fastStart: "fragmented", minimumFragmentDuration: 2 })),
      words,
    ),
    rewritten(`mediabunny-${what}.mkv`, byMediabunny(() => new MkvOutputFormat()), words, "in.mkv"),
  ]),
  rewritten("mediabunny-in-memory.mp4", byMediabunny(() => new Mp4OutputFormat({ fastStart: "in-memory" })), film),
  rewritten("mediabunny.mov", byMediabunny(() => new MovOutputFormat()), film),
  rewritten(
    "mediabunny-fragments.mov",
    byMediabunny(() => new MovOutputFormat({ fastStart: "fragmented", minimumFragmentDuration: 1 })),
    film,
  ),
  rewritten(
    "mediabunny-clusters-4s.mkv",
    byMediabunny(() => new MkvOutputFormat({ minimumClusterDuration: 4 })),
    film,
    "in.mkv",
  ),
  rewritten(
    "mediabunny-append-only.mkv",
    byMediabunny(() => new MkvOutputFormat({ appendOnly: true })),
    film,
    "in.mkv",
  ),
];

const DRIFTING = {
  faults: "each fragment has as many access units, so sound stands further and further after its pictures",
  structure: "as for faults",
};
const libraries: readonly Recipe[] = [
  ...mediabunny,
  rewritten("muxjs.mp4", (from, to) => byMuxJs([from], to), film, "in.ts"),
  {
    name: "muxjs-fragments.mp4",
    commands: [ffmpeg(film, "-f", "segment", "-segment_time", 2, "in-%d.ts")],
    write: (folder, file) => byMuxJs([0, 1, 2].map((i) => path.join(folder, `in-${i}.ts`)), file),
  },
  rewritten("mp4box-100-aligned.mp4", byMp4box(100, true), film),
  ...([["film", film], ["hevc", hevc], ["ntsc", ntsc]] as const).map(([what, words]) =>
    forced(rewritten(`mp4box-${what}-50.mp4`, byMp4box(50, true), words), DRIFTING)
  ),
];

/** What HandBrake encodes; its file is compared with itself, as ffmpeg reads it. */
function handBraked(name: string, options: Words, words: Words = film): Recipe {
  const fast = ["--encoder-preset", "ultrafast", "-q", 30, "--no-optimize"];
  return {
    name,
    commands: [
      ffmpeg(words, "in.mkv"),
      strings("HandBrakeCLI", "-i", "in.mkv", "-o", name, fast, "-e", "x264", options),
    ],
  };
}

const handBrake: readonly Recipe[] = [
  handBraked("handbrake.mp4", []),
  handBraked("handbrake-optimized.mp4", ["--optimize"]),
  handBraked("handbrake.mkv", ["-f", "av_mkv"]),
  handBraked("handbrake-hevc.mp4", ["-e", "x265"]),
  handBraked("handbrake-hevc.mkv", ["-f", "av_mkv", "-e", "x265"]),
  handBraked("handbrake-hevc-10.mp4", ["-e", "x265_10bit"]),
  handBraked("handbrake-ac3.mkv", ["-f", "av_mkv", "-E", "ac3"]),
  handBraked("handbrake-ac3.mp4", ["-E", "ac3"]),
  handBraked("handbrake-eac3.mp4", ["-E", "eac3", "-B", 192]),
  handBraked("handbrake-mp3.mkv", ["-f", "av_mkv", "-E", "mp3"]),
  handBraked("handbrake-cfr-2997.mp4", ["-r", "29.97", "--cfr"]),
  handBraked("handbrake-pfr-15.mp4", ["-r", "15", "--pfr"]),
  handBraked("handbrake-vfr.mkv", ["-f", "av_mkv", "--vfr"], [
    ...film,
    ...["-vf", "select='not(mod(n\\,7))+lt(mod(n\\,50)\\,25)'", "-fps_mode", "vfr"],
  ]),
  handBraked("handbrake-chapters.mp4", ["-m"]),
  handBraked("handbrake-align.mp4", ["--align-av"]),
  handBraked("handbrake-cut.mp4", ["--start-at", "seconds:1", "--stop-at", "seconds:4"]),
  handBraked("handbrake-inline.mp4", ["--inline-parameter-sets"]),
  handBraked("handbrake-ipod.m4v", ["-I"]),
  handBraked("handbrake-two-sounds.mp4", ["-a", "1,1", "-E", "av_aac,ac3"]),
  handBraked("handbrake-mpeg2.mkv", ["-f", "av_mkv", "-e", "mpeg2"]),
];

/** What x264 writes by itself, with a Matroska muxer of its own; pictures alone. */
const x264 = (name: string, options: Words, words: Words = picture(25, 6)): Recipe => ({
  name,
  commands: [
    ffmpeg(words, "in.y4m"),
    strings("x264", "--quiet", "--threads", 1, "--preset", "ultrafast", "-o", name, options, "in.y4m"),
  ],
});

const encoders: readonly Recipe[] = [
  x264("x264.mkv", ["--keyint", 50, "--bframes", 3]),
  x264("x264-open-gop.mkv", ["--keyint", 50, "--bframes", 3, "--open-gop"]),
  x264("x264-intra-refresh.mkv", ["--keyint", 50, "--intra-refresh"]),
  x264("x264-fake-interlaced.mkv", ["--keyint", 50, "--fake-interlaced"]),
  x264("x264-tff.mkv", ["--keyint", 50, "--tff", "--bframes", 2]),
  x264("x264-pulldown.mkv", ["--keyint", 48, "--pulldown", "32"], picture("24000/1001", 6)),
  x264("x264-annexb-slices.mkv", ["--keyint", 50, "--slices", 4]),
  x264("x264-high10.mkv", ["--keyint", 50, "--output-depth", 10]),
  x264("x264-nal-hrd.mkv", [
    "--keyint",
    50,
    "--nal-hrd",
    "cbr",
    "--bitrate",
    400,
    "--vbv-maxrate",
    400,
    "--vbv-bufsize",
    400,
  ]),
  {
    name: "x264-raw-merged.mkv",
    commands: [
      ffmpeg(picture(25, 6), "in.y4m"),
      strings("x264", "--quiet", "--threads", 1, "--preset", "ultrafast", "--bframes", 3, "-o", "in.264", "in.y4m"),
      mkvmerge("-o", "x264-raw-merged.mkv", "--default-duration", "0:25fps", "in.264"),
    ],
  },
  {
    name: "x265-raw-merged.mkv",
    commands: [
      ffmpeg(picture(24, 6), "in.y4m"),
      strings(
        "x265",
        "--log-level",
        "none",
        "--preset",
        "ultrafast",
        "--pools",
        1,
        "--keyint",
        48,
        "--y4m",
        "in.y4m",
        "-o",
        "in.hevc",
      ),
      mkvmerge("-o", "x265-raw-merged.mkv", "--default-duration", "0:24fps", "in.hevc"),
    ],
  },
  {
    name: "x265-hrd-temporal.mkv",
    commands: [
      ffmpeg(picture(24, 6), "in.y4m"),
      strings(
        "x265",
        "--log-level",
        "none",
        "--preset",
        "ultrafast",
        "--pools",
        1,
        "--keyint",
        48,
        "--hrd",
        "--bitrate",
        300,
        "--vbv-maxrate",
        300,
        "--vbv-bufsize",
        300,
        "--temporal-layers",
        "--repeat-headers",
        "--y4m",
        "in.y4m",
        "-o",
        "in.hevc",
      ),
      mkvmerge("-o", "x265-hrd-temporal.mkv", "--default-duration", "0:24fps", "in.hevc"),
    ],
  },
];

/** What Shaka Packager makes of one track: it writes no two into a file. */
function packaged(name: string, stream: "video" | "audio", options: Words, words: Words = film): Recipe {
  const isSegmented = options.some((word) => String(word).includes("segment_template"));
  const output = isSegmented ? "init_segment=init.mp4" : `output=${name}`;
  const descriptor = [
    `in=in.mp4,stream=${stream},${output}`,
    ...options.filter((word) => String(word).startsWith("segment_template")),
  ];
  return {
    name,
    commands: [
      ffmpeg(words, "in.mp4"),
      strings("packager", "--quiet", descriptor.join(","), options.filter((word) => String(word).startsWith("--"))),
      ...(isSegmented ? [["sh", "-c", `cat init.mp4 $(ls seg-* | sort -t- -k2 -n) >${name}`]] : []),
    ],
  };
}

const SEGMENTS = "segment_template=seg-$Number$.m4s";
const shaka: readonly Recipe[] = [
  packaged("shaka-video.mp4", "video", ["--segment_duration=2"]),
  packaged("shaka-audio.mp4", "audio", ["--segment_duration=2"]),
  packaged("shaka-video-subsegments.mp4", "video", ["--segment_duration=4", "--fragment_duration=1"]),
  packaged("shaka-video-unaligned.mp4", "video", [
    ...["--segment_duration=3", "--nosegment_sap_aligned", "--nofragment_sap_aligned", "--fragment_duration=0.7"],
  ]),
  packaged("shaka-hevc.mp4", "video", ["--segment_duration=2"], hevc),
  packaged("shaka-ntsc.mp4", "video", ["--segment_duration=2"], ntsc),
  packaged("shaka-ntsc-audio.mp4", "audio", ["--segment_duration=2"], ntsc),
  packaged("shaka-segments.mp4", "video", [SEGMENTS, "--segment_duration=2"]),
  packaged("shaka-segments-sidx.mp4", "video", [
    ...[SEGMENTS, "--segment_duration=2", "--generate_sidx_in_media_segments"],
  ]),
  packaged("shaka-segments-audio.mp4", "audio", [SEGMENTS, "--segment_duration=2"]),
  packaged("shaka-no-sidx.mp4", "video", [SEGMENTS, "--segment_duration=1", "--nogenerate_sidx_in_media_segments"]),
];

/** A pipeline of GStreamer whose elements behind the sources are given. */
function pipeline(name: string, mux: string, video: string, audio: string | null): Recipe {
  const pictures = "videotestsrc num-buffers=150 ! video/x-raw,width=320,height=180,framerate=25/1 ! ";
  const tone = "audiotestsrc num-buffers=260 samplesperbuffer=1024 ! audio/x-raw,rate=44100 ! ";
  const words = `gst-launch-1.0 -q ${mux} name=mux ! filesink location=${name} ${pictures}${video} ! queue ! mux. ${
    audio === null ? "" : `${tone}${audio} ! queue ! mux.`
  }`;
  return { name, commands: [words.trim().split(/\s+/)] };
}

const AVC = "x264enc speed-preset=ultrafast key-int-max=50 bframes=2 ! h264parse";
const HEVC = "x265enc speed-preset=ultrafast key-int-max=50 log-level=none ! h265parse";
const LC = "voaacenc ! aacparse";
const gstreamer: readonly Recipe[] = [
  pipeline("gstreamer-qtmux.mov", "qtmux", AVC, LC),
  pipeline("gstreamer-faststart.mp4", "mp4mux faststart=true", AVC, LC),
  pipeline("gstreamer-3gpp.mp4", "3gppmux", AVC, LC),
  pipeline("gstreamer-fragments-500ms.mp4", "mp4mux fragment-duration=500", AVC, LC),
  pipeline(
    "gstreamer-fragments-last-moov.mp4",
    "mp4mux fragment-duration=1000 fragment-mode=first-moov-then-finalise",
    AVC,
    LC,
  ),
  pipeline("gstreamer-fragments-streamable.mp4", "mp4mux fragment-duration=1000 streamable=true", AVC, LC),
  pipeline(
    "gstreamer-reserved.mov",
    "qtmux reserved-max-duration=20000000000 reserved-moov-update-period=1000000000",
    AVC,
    LC,
  ),
  pipeline("gstreamer-hevc.mp4", "mp4mux", HEVC, LC),
  pipeline("gstreamer-hevc.mkv", "matroskamux", HEVC, LC),
  pipeline("gstreamer-mp3.mkv", "matroskamux", AVC, "lamemp3enc ! mpegaudioparse"),
  pipeline("gstreamer-ac3.mkv", "matroskamux", AVC, "avenc_ac3 ! ac3parse"),
  pipeline(
    "gstreamer-clusters.mkv",
    "matroskamux min-cluster-duration=100000000 max-cluster-duration=500000000",
    AVC,
    LC,
  ),
  pipeline("gstreamer-picture.mkv", "matroskamux", AVC, null),
];

const variants: readonly Recipe[] = [
  merged("mkvmerge-webm-like-clusters.mkv", ["--clusters-in-meta-seek"], film),
  merged("mkvmerge-no-dates-no-statistics.mkv", ["--no-date", "--disable-track-statistics-tags"], film),
  merged("mkvmerge-cues-iframes.mkv", ["--cues", "0:iframes", "--cues", "1:none"], film),
  merged("mkvmerge-stretched.mkv", ["--sync", "0:0,25/24"], film),
  merged("mkvmerge-compressed.mkv", ["--compression", "0:none", "--compression", "1:none"], film),
  merged("mkvmerge-engage-lacing.mkv", ["--engage", "keep_last_chapter_in_mpls"], ntsc),
  {
    name: "mkvmerge-appended.mkv",
    commands: [
      ffmpeg(film, "one.mkv"),
      mkvmerge("-o", "mkvmerge-appended.mkv", "one.mkv", "+one.mkv"),
    ],
  },
  {
    name: "mkvmerge-from-mp4.mkv",
    commands: [ffmpeg(film, "in.mp4"), mkvmerge("-o", "mkvmerge-from-mp4.mkv", "in.mp4")],
  },
  {
    name: "mkvmerge-from-ts.mkv",
    commands: [ffmpeg(film, "in.ts"), mkvmerge("-o", "mkvmerge-from-ts.mkv", "in.ts")],
  },
];

/** All of them. */
export const TOOL_RECIPES: readonly Recipe[] = [
  ...libraries,
  ...handBrake,
  ...encoders,
  ...shaka,
  ...gstreamer,
  ...variants,
];
