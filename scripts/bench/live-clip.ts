/** Makes the clip that the live bench broadcasts. */
import { spawn } from "node:child_process";
import path from "node:path";

/** Has ffmpeg make 30 s of MPEG TS of `megabits` Mb/s, not counting null packets; returns its path. */
export async function makeClip(directory: string, megabits: number): Promise<string> {
  const clip = path.join(directory, "clip.ts");
  const input = ["-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25", "-f", "lavfi", "-i", "sine=frequency=440"];
  // What sound, tables and the headers of packets leave of the bitrate.
  const videoRate = `${975 * megabits - 130}k`;
  const video = [
    ...["-c:v", "libx264", "-preset", "veryfast", "-g", "25"],
    ...["-b:v", videoRate, "-minrate", videoRate, "-maxrate", videoRate, "-bufsize", `${400 * megabits}k`],
    // Fills what the picture doesn't need: a broadcast drops null packets, so these bytes have to be pictures.
    ...["-x264-params", "nal-hrd=cbr"],
  ];
  const sound = ["-c:a", "aac", "-b:a", "64k"];
  // Null packets fill the rest of this rate.
  const output = ["-muxrate", `${1.1 * megabits}M`, "-pcr_period", "40", "-t", "30", "-f", "mpegts", clip];
  const child = spawn("ffmpeg", ["-v", "error", "-y", ...input, ...video, ...sound, ...output], { stdio: "inherit" });
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  if (code !== 0) throw new Error("ffmpeg could not make the clip");
  return clip;
}
