/** Files by muxer, codec of the picture and codec of the sound, each pair with each: what one muxer has wrong with one codec. */
import { direct, H264, merged, picture, type Recipe, sound, type Words } from "./recipes.ts";

const SECONDS = 5;
const RATES = [25, "30000/1001", 50, "24000/1001"] as const;

const PICTURES: Readonly<Record<string, Words>> = {
  h264: H264,
  "h264-no-b": [...H264, "-bf", 0],
  "h264-pyramid": [...H264, "-bf", 8, "-x264-params", "b-pyramid=normal:ref=8:open-gop=1"],
  hevc: [
    ...["-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hvc1"],
    ...["-x265-params", "log-level=error:keyint=48:bframes=4:pools=1"],
  ],
  mpeg2: ["-c:v", "mpeg2video", "-bf", 2, "-b:v", "400k"],
};

const SOUNDS: Readonly<Record<string, { readonly rate: number; readonly words: Words }>> = {
  aac: { rate: 48000, words: ["-c:a", "aac", "-b:a", "64k"] },
  "aac-44": { rate: 44100, words: ["-c:a", "aac", "-b:a", "96k", "-ac", 2] },
  "aac-22": { rate: 22050, words: ["-c:a", "aac", "-b:a", "24k", "-ac", 1] },
  mp3: { rate: 44100, words: ["-c:a", "libmp3lame", "-b:a", "128k"] },
  ac3: { rate: 48000, words: ["-c:a", "ac3", "-b:a", "192k"] },
  mp2: { rate: 48000, words: ["-c:a", "mp2", "-b:a", "128k"] },
};

const fragments = (flags: string): Words => ["-movflags", flags];
const MUXERS: Readonly<Record<string, (name: string, words: Words) => Recipe>> = {
  mkv: (name, words) => direct(`${name}.mkv`, words),
  mkvmerge: (name, words) => merged(`${name}.mkv`, [], words),
  "mkvmerge-no-cues": (name, words) => merged(`${name}.mkv`, ["--cues", "0:none", "--cues", "1:none"], words),
  mp4: (name, words) => direct(`${name}.mp4`, words),
  mov: (name, words) => direct(`${name}.mov`, words),
  sidx: (name, words) =>
    direct(`${name}.mp4`, words, fragments("frag_keyframe+delay_moov+default_base_moof+global_sidx")),
  dash: (name, words) => direct(`${name}.mp4`, words, fragments("dash+delay_moov+frag_keyframe")),
};

/** All pairs. */
export const MATRIX_RECIPES: readonly Recipe[] = Object.entries(MUXERS).flatMap(([muxer, make]) =>
  Object.entries(PICTURES).flatMap(([codec, video], v) =>
    Object.entries(SOUNDS).map(([tone, { rate, words }], a) => {
      const fps = RATES[(v + a) % RATES.length]!;
      return make(`matrix-${muxer}-${codec}-${tone}`, [
        ...picture(fps, SECONDS),
        ...sound(SECONDS, rate),
        ...video,
        ...words,
      ]);
    })
  )
);
