/**
 * Processor time of making HLS of fragmented MP4 from a Matroska film, against `ffmpeg -c copy -f hls -hls_segment_type fmp4`
 * on the same file in turns. Both write the segments to files in the same folder.
 * Run: `node scripts/bench/fragments.ts [seconds of 10 Mbit/s video, default 900] [rounds, default 7]`; needs ffmpeg on PATH.
 */
import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, rmSync, statSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { runtimeName } from "../../platform/detect.ts";
import { keepHeapSmall } from "../../platform/node/heap.ts";
import { files } from "../../platform/shared/files.ts";
import { ChunkBuffers } from "../../src/bytes/chunk-buffers.ts";
import { openMedia } from "../../src/media/open-media.ts";
import { commandOf } from "../support/runtimes.ts";
import { median } from "./children.ts";
import { bundle } from "./contenders.ts";

/** Target length of a segment, s. */
const SEGMENT_S = 5;

/** The child's part: writes all segments of a film to `folder`, with the release's heap settings on Node. */
async function segment(path: string, folder: string): Promise<void> {
  if (runtimeName() === "node") keepHeapSmall();
  const { signal } = new AbortController();
  const file = await files.open(path, "read");
  const { sizeBytes } = await file.info();
  const buffers = new ChunkBuffers();
  const source = {
    sizeBytes,
    async read(offset: number, length: number): Promise<Uint8Array> {
      const bytes = buffers.acquire(length);
      await file.read(bytes, offset);
      return bytes;
    },
    hold: (bytes: Uint8Array) => buffers.hold(bytes),
    release: (bytes: Uint8Array) => buffers.release(bytes),
  };
  const { planHls } = await openMedia(source, { fileName: path, signal, fragmented: true });
  const { segments, readSegment } = await planHls(source, signal);
  for (const { index } of segments) {
    const out = openSync(join(folder, `${index}.m4s`), "w");
    for await (const chunk of readSegment(index, source, signal, buffers)) {
      // One at a time: Deno joins the parts of a vectored write first, which costs more than all of our work.
      if (writeSync(out, chunk) !== chunk.length) throw new Error("a write was cut short");
      buffers.release(chunk);
    }
    closeSync(out);
  }
  await file.close();
}

/** Processor time that `command` takes until it has ended, s, by the shell that waits for it. */
function cpuSeconds(command: readonly string[]): number {
  const { stdout, status } = spawnSync("sh", ["-c", '"$0" "$@" >/dev/null || exit 1; times', ...command], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (status !== 0) throw new Error(`${command.join(" ")} ended with ${status}`);
  const [user, system] = [...stdout.split("\n")[1]!.matchAll(/(\d+)m([\d.]+)s/g)]
    .map(([, minutes, seconds]) => Number(minutes) * 60 + Number(seconds));
  return user! + system!;
}

function ffmpeg(...args: string[]): void {
  const { status } = spawnSync("ffmpeg", ["-v", "error", "-y", ...args], { stdio: "inherit" });
  if (status !== 0) throw new Error("ffmpeg failed");
}

/** Bytes in the files of `folder`. */
const bytesIn = (folder: string) =>
  readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);

async function main(seconds: number, rounds: number): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), "fragments-"));
  try {
    const [base, film] = [join(work, "base.mp4"), join(work, "film.mkv")];
    ffmpeg(
      ...["-f", "lavfi", "-i", "testsrc2=s=1280x720:r=25", "-f", "lavfi", "-i", "sine=r=48000", "-t", "20"],
      ...["-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-b:v", "10M", "-minrate", "10M", "-maxrate", "10M"],
      ...["-bufsize", "5M", "-x264-params", "nal-hrd=cbr", "-g", "50", "-c:a", "aac", base],
    );
    ffmpeg("-stream_loop", String(Math.ceil(seconds / 20) - 1), "-i", base, "-c", "copy", film);
    const gib = statSync(film).size / 2 ** 30;
    const script = await bundle("scripts/bench/fragments.ts", work);
    const out = join(work, "out");
    const hls = ["-c", "copy", "-f", "hls", "-hls_segment_type", "fmp4", "-hls_time", String(SEGMENT_S)];
    const list = ["-hls_playlist_type", "vod", "list.m3u8"];
    const flags = { node: [], deno: ["run", "-A", "--no-check", "-q"], bun: [] } as const;
    const ours = (["node", "deno", "bun"] as const).map((runtime) => ({
      name: `millrace, ${runtime}`,
      command: [...commandOf(runtime), ...flags[runtime], script, "--child", film, out],
    }));
    const contestants = [
      ...ours,
      { name: "ffmpeg", command: ["env", "-C", out, "ffmpeg", "-v", "error", "-i", film, ...hls, ...list] },
    ];
    const results = contestants.map((): number[] => []);
    for (let round = 0; round < rounds; round++) {
      for (const [i, { name, command }] of contestants.entries()) {
        mkdirSync(out);
        results[i]!.push(cpuSeconds(command) / gib);
        if (bytesIn(out) < 0.99 * gib * 2 ** 30) throw new Error(`${name} wrote too little`);
        rmSync(out, { recursive: true });
      }
    }
    console.log("| | CPU-s/GiB | least to most | ratio |\n| --- | --- | --- | --- |");
    const theirs = median(results.at(-1)!);
    for (const [i, { name }] of contestants.entries()) {
      const [mine, all] = [median(results[i]!), results[i]!];
      const range = `${Math.min(...all).toFixed(2)} to ${Math.max(...all).toFixed(2)}`;
      console.log(`| ${name} | ${mine.toFixed(2)} | ${range} | ${(mine / theirs).toFixed(2)} |`);
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

const [first, ...rest] = process.argv.slice(2);
if (first === "--child") await segment(rest[0]!, rest[1]!);
else await main(Number(first ?? 900), Number(rest[0] ?? 7));
