/**
 * Remuxing speed: MP4→TS and MKV→TS to a pipe, against `ffmpeg -c copy` on the same files in the same run.
 * Run: `node scripts/bench/remux.ts [seconds of 10 Mbit/s video, default 600]`; needs ffmpeg on PATH.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, openSync, rmSync, statSync, writev } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { runtimeName } from "../../platform/detect.ts";
import { keepHeapSmall } from "../../platform/node/heap.ts";
import { files } from "../../platform/shared/files.ts";
import { ChunkBuffers } from "../../src/bytes/chunk-buffers.ts";
import { openMedia } from "../../src/media/open-media.ts";

/** Single runs differ by a third on shared machines. */
const ROUNDS = 7;

/** Output that may wait for the pipe, bytes. */
const QUEUE_BYTES = 1024 * 1024;
/** Bytes per write: each write wakes a thread. */
const BATCH_BYTES = 512 * 1024;
const signal = new AbortController().signal;

/**
 * Standard output as a file that the runtime's threads write to, as ffmpeg's do: the pipe fills while muxing continues,
 * and a slow far end blocks a thread, not the muxer. Opened again because the runtime makes its own non-blocking.
 */
class PipeWriter {
  readonly #fd = openSync("/dev/stdout", "w");
  readonly #buffers: ChunkBuffers;
  #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  #writing = false;
  #wake: (() => void) | null = null;

  /** Written chunks are released to `buffers`. */
  constructor(buffers: ChunkBuffers) {
    this.#buffers = buffers;
  }

  /** Takes a chunk; false when `roomFor` should be awaited before the next. */
  write(chunk: Uint8Array): boolean {
    this.#queue.push(chunk);
    this.#queuedBytes += chunk.length;
    if (!this.#writing && this.#queuedBytes >= BATCH_BYTES) this.#writeBatch();
    return this.#queuedBytes < QUEUE_BYTES;
  }

  /** Resolves when at most `bytes` wait. One caller at a time. */
  async roomFor(bytes: number): Promise<void> {
    while (this.#queuedBytes > bytes) {
      if (!this.#writing) this.#writeBatch();
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
  }

  #writeBatch(): void {
    this.#writing = true;
    const batch = this.#queue;
    this.#queue = [];
    writev(this.#fd, batch, (error, written) => {
      // The far end is gone: there is nothing left to measure.
      if (error) throw error;
      this.#queuedBytes -= written;
      while (batch.length > 0 && written >= batch[0]!.length) {
        written -= batch[0]!.length;
        this.#buffers.release(batch.shift()!);
      }
      if (batch.length > 0) this.#queue.unshift(batch[0]!.subarray(written), ...batch.slice(1));
      this.#writing = false;
      // A writer that waits for room calls again, which writes the rest.
      if (this.#queuedBytes >= BATCH_BYTES) this.#writeBatch();
      this.#wake?.();
    });
  }
}

/** The child's part: writes the whole TS of a file to stdout, with the release's heap settings on Node. */
async function remux(path: string): Promise<void> {
  if (runtimeName() === "node") keepHeapSmall();
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
    release: (bytes: Uint8Array) => buffers.release(bytes),
  };
  const { ts } = await openMedia(source, { fileName: path, signal });
  const out = new PipeWriter(buffers);
  for await (const chunk of ts.read(0, null, source, signal, buffers)) {
    if (!out.write(chunk)) await out.roomFor(QUEUE_BYTES / 2);
  }
  await out.roomFor(0);
  await file.close();
}

/** Seconds until `command` has ended; `wc` at the far end of a pipe counts its output. */
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
