/** Clips whose sound beeps once per second, made by ffmpeg, and a search for the beeps. */
import { assert, assertEquals, assertLess, assertLessOrEqual } from "@std/assert";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** Arguments of every ffmpeg call. */
export const QUIET = ["-nostdin", "-v", "error"];
/** A beep of 50 ms at the start of each second. */
const BEEPS = "aevalsrc='if(lt(mod(t,1),0.05),0.8*sin(2*PI*1000*t),0)':s=RATE:d=13:c=LAYOUT";

/** A clip: its name ends in the container. */
export interface Beeping {
  readonly name: string;
  /** ffmpeg's arguments for the sound. */
  readonly audio: readonly string[];
  readonly rate: number;
  readonly layout?: string;
  /** Empty: no picture. */
  readonly video?: readonly string[];
}

/** Runs a command to its end. */
export function run(command: string, args: string[]): { out: Uint8Array; err: string } {
  const { stdout, stderr, error } = spawnSync(command, args, { maxBuffer: 1 << 28 });
  if (error !== undefined) throw error;
  return { out: stdout, err: stderr.toString() };
}

/** Makes the clip of 13 s at `path` with ffmpeg and answers its bytes. */
export function makeBeeping(path: string, { audio, rate, layout = "stereo", video }: Beeping): Uint8Array {
  const expressions = layout === "5.1" ? 6 : layout === "mono" ? 1 : 2;
  const beep = /'([^']*)'/.exec(BEEPS)![1]!;
  const beeps = BEEPS.replace(/'[^']*'/, `'${Array(expressions).fill(beep).join("|")}'`)
    .replace("RATE", String(rate)).replace("LAYOUT", layout);
  const picture = ["-f", "lavfi", "-i", "testsrc=s=160x120:r=25:d=13"];
  const encode = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "50", "-bf", "2", "-pix_fmt", "yuv420p"];
  const inputs = video === undefined
    ? [...picture, "-f", "lavfi", "-i", beeps, ...encode]
    : ["-f", "lavfi", "-i", beeps];
  const { err } = run("ffmpeg", [...QUIET, "-y", ...inputs, ...audio, path]);
  assertEquals(err, "");
  return new Uint8Array(readFileSync(path));
}

/** Seconds at which beeps begin, by the container's clock. */
export function onsets(path: string): number[] {
  const args = [
    ...QUIET,
    "-copyts",
    "-i",
    path,
    "-map",
    "0:a:0",
    "-af",
    "aresample=48000,aresample=48000:async=1:min_hard_comp=0.02:first_pts=0",
  ];
  const { out } = run("ffmpeg", [...args, "-ac", "1", "-f", "s16le", "-"]);
  const view = new DataView(out.buffer, out.byteOffset, out.byteLength);
  const found: number[] = [];
  let quietFrom = -Infinity;
  for (let i = 0; i < out.length >> 1; i++) {
    if (Math.abs(view.getInt16(2 * i, true)) < 6000) continue;
    if (i - quietFrom > 24000) found.push(i / 48000);
    quietFrom = i;
  }
  return found;
}

/** Presentation times of the packets of a stream, seconds. */
export function times(path: string, stream: string): number[] {
  const args = ["-v", "error", "-select_streams", stream, "-show_entries", "packet=pts_time", "-of", "csv=p=0", path];
  return new TextDecoder().decode(run("ffprobe", args).out).split("\n").map(parseFloat).filter((time) => !isNaN(time));
}

/** First presentation time of a stream, seconds. */
export const startOf = (path: string, stream: string) => Math.min(...times(path, stream));

/**
 * The file at `ours` decodes in silence, its sound (48 kHz, frames of `frameSamples`) has no gap, and its beeps stand where those of `original` do:
 * against the picture where there is one, within 25 ms. At least `fewest` beeps are there.
 */
export function assertInStep(
  original: string,
  ours: string,
  { video }: Beeping,
  fewest: number,
  frameSamples = 1024,
): void {
  assertEquals(run("ffmpeg", [...QUIET, "-i", ours, "-f", "null", "-"]).err, "");
  const pts = times(ours, "a:0");
  for (let i = 1; i < pts.length; i++) {
    assertLess(Math.abs(pts[i]! - pts[i - 1]! - frameSamples / 48000), 0.001, `a gap at ${pts[i]}`);
  }
  const stream = video === undefined ? "v:0" : "a:0";
  const [theirStart, ourStart] = [startOf(original, stream), startOf(ours, stream)];
  const [wanted, got] = [onsets(original), onsets(ours)];
  assertEquals(got.length, wanted.length, `${got} for ${wanted}`);
  assert(got.length >= fewest, String(got.length));
  for (const [i, onset] of got.entries()) {
    const off = onset - ourStart - (wanted[i]! - theirStart);
    assertLessOrEqual(Math.abs(off), 0.025, `beep ${i} is ${off} s off`);
  }
}
