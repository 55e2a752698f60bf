/**
 * Remuxing speed: MP4→TS and MKV→TS to a pipe, against `ffmpeg -c copy` on the same files in the same run.
 * Run: `node scripts/bench/remux.ts [seconds of 10 Mbit/s video, default 600]`; needs ffmpeg on PATH.
 */
import { spawnSync } from "node:child_process";
import { closeSync, fstatSync, mkdtempSync, openSync, readSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { openMedia } from "../../src/media/open.ts";

const ROUNDS = 3;

/** Output that may wait for the pipe. */
const QUEUE_BYTES = 512 * 1024;
const signal = new AbortController().signal;

/** The child's part: the whole TS of a file to stdout. */
async function remux(path: string): Promise<void> {
  const file = openSync(path, "r");
  const source = {
    sizeBytes: fstatSync(file).size,
    read(offset: number, length: number): Promise<Uint8Array> {
      const bytes = new Uint8Array(length);
      readSync(file, bytes, 0, length, offset);
      return Promise.resolve(bytes);
    },
  };
  const { ts } = await openMedia(source, { fileName: path, signal });
  for await (const chunk of ts.read(0, null, source, signal)) {
    // Some chunks may wait, so that muxing goes on while the far end reads.
    if (!process.stdout.write(chunk) && process.stdout.writableLength > QUEUE_BYTES) {
      await new Promise((resolve) => process.stdout.once("drain", resolve));
    }
  }
  closeSync(file);
}

/** Seconds until `command` has ended, its output counted by `wc` at the far end of a pipe. */
function time(command: string, args: readonly string[]): { seconds: number; bytes: number } {
  const start = performance.now();
  const { stdout, status } = spawnSync("sh", ["-c", '"$0" "$@" | wc -c', command, ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (status !== 0) throw new Error(`${command} ended with ${status}`);
  return { seconds: (performance.now() - start) / 1000, bytes: Number(stdout) };
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1]!;
}

function ffmpeg(...args: string[]): void {
  const { status } = spawnSync("ffmpeg", ["-v", "error", "-y", ...args], { stdio: "inherit" });
  if (status !== 0) throw new Error("ffmpeg failed");
}

function main(seconds: number): void {
  const folder = mkdtempSync(join(tmpdir(), "remux-"));
  try {
    const base = join(folder, "base.mp4");
    ffmpeg(
      ...["-f", "lavfi", "-i", "testsrc2=s=1280x720:r=25", "-f", "lavfi", "-i", "sine=r=48000", "-t", "20"],
      ...["-c:v", "libx264", "-preset", "ultrafast", "-b:v", "10M", "-minrate", "10M", "-maxrate", "10M"],
      ...["-bufsize", "5M", "-x264-params", "nal-hrd=cbr", "-g", "50", "-c:a", "aac", base],
    );
    console.log("| input | ours, MB/s of source | ffmpeg -c copy | ratio |\n| --- | --- | --- | --- |");
    for (const name of ["mp4", "mkv"]) {
      const input = join(folder, `long.${name}`);
      ffmpeg("-stream_loop", String(Math.max(0, Math.ceil(seconds / 20) - 1)), "-i", base, "-c", "copy", input);
      const megabytes = statSync(input).size / 1e6;
      const ours: number[] = [];
      const theirs: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const mine = time(process.execPath, [
          ...process.execArgv,
          fileURLToPath(import.meta.url),
          "--child",
          input,
        ]);
        const other = time("ffmpeg", ["-v", "error", "-i", input, "-c", "copy", "-f", "mpegts", "pipe:1"]);
        if (mine.bytes < megabytes * 1e6) throw new Error("the remuxed stream is short");
        ours.push(megabytes / mine.seconds);
        theirs.push(megabytes / other.seconds);
      }
      const [a, b] = [median(ours), median(theirs)];
      console.log(`| ${name} | ${a.toFixed(0)} | ${b.toFixed(0)} | ${(a / b).toFixed(2)} |`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (process.argv[2] === "--child") await remux(process.argv[3]!);
else main(Number(process.argv[2] ?? 600));
