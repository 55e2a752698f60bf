/** Files as cameras, editors and browsers make them: codecs under other names, and what containers fail to say. */
import { renamed, withoutKeyframes } from "./edits.ts";
import { AAC, direct, H264, picture, type Recipe, sound, type Words } from "./recipes.ts";

const SECONDS = 6;
const test: Words = [...picture(25, SECONDS), ...sound(SECONDS)];
const MPEG4: Words = [...test, "-c:v", "mpeg4", "-bf", 2, "-g", 25, "-b:v", "400k", ...AAC];
const MPEG2: Words = [...test, "-c:v", "mpeg2video", "-bf", 2, "-g", 15, "-b:v", "500k", ...AAC];

/** All of them. */
export const CAMERA_RECIPES: readonly Recipe[] = [
  direct("mpeg4.mp4", MPEG4),
  direct("mpeg4.mkv", MPEG4),
  direct("mpeg4.mov", MPEG4, "-bf", 0),
  { ...direct("hdv.mov", MPEG2), edit: (file) => renamed(file, "m2v1", "hdv2") },
  { ...direct("xdcam.mov", MPEG2), edit: (file) => renamed(file, "m2v1", "xd5b") },
  direct("late-start.mkv", test, H264, AAC, "-output_ts_offset", 3600),
  { ...direct("no-key-list.mp4", test, H264, AAC), edit: withoutKeyframes },
];
