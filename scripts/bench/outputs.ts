/**
 * Compares the outputs of the engine: the plain file, its MPEG TS and its HLS, so that none is tuned at the
 * expense of another. First byte and seek over the far swarm of `stream.ts`; a one-seeder swarm slower than the film;
 * one and many clients on a complete file. All outputs take turns in each round.
 *
 * Alone: `node scripts/bench/outputs.ts [rounds=3] [clip=ts,mkv,mp4] [contestant.mjs]`.
 */
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { commandOf } from "../support/runtimes.ts";
import { median, usage } from "./children.ts";
import { bundle, type Contender, isOnPath } from "./contenders.ts";
import { Swarm, type SwarmOptions } from "./far-swarm.ts";
import { fresh, mediaUrls, read, Serving, within } from "./serving.ts";
import { compare, fanOut, makeClips } from "./stream.ts";

const OUTPUTS = ["file", "ts", "hls"] as const;
/** One seeder at a thirtieth of the film's rate, with the piece size of a small torrent. */
const THIN: SwarmOptions = { seeders: 1, bytesPerS: 40_000, pieceLengthBytes: 64 * 1024 };
/** Links fast enough not to matter. */
const NEAR: SwarmOptions = { bytesPerS: 1e9 };
const SEEK_PARTS = [0.57, 0.25, 0.71];
/** How often one client reads the whole file: 1 GiB of the clips, as the first 300 MB cost twice as much until the code is compiled. */
const PASSES = 18;

/** The contestant `ours` with each output. */
function contenders(ours: string): Contender[] {
  return OUTPUTS.map((output) => ({
    name: output,
    command: (torrent, directory) => [
      ...["env", `OUTPUT=${output}`, ...commandOf("node"), ours, "stream", torrent, directory],
    ],
  }));
}

async function firstByte(who: Contender, swarm: Swarm, work: string): Promise<number> {
  const serving = await Serving.open(who, swarm, work);
  try {
    const [url] = await within("the playlist", mediaUrls(serving.url));
    await within("the first byte", read(url!, 0, fresh(), () => false));
    return (performance.now() - serving.beganMs) / 1000;
  } finally {
    await serving.close();
  }
}

async function seek(who: Contender, swarm: Swarm, work: string): Promise<number> {
  const serving = await Serving.open(who, swarm, work);
  try {
    const urls = await within("the playlist", mediaUrls(serving.url));
    await within("the start", read(urls[0]!, 0, fresh(), () => false));
    const seconds: number[] = [];
    for (const part of SEEK_PARTS) {
      const began = performance.now();
      const url = urls[Math.floor(urls.length * part)]!;
      const offset = urls.length > 1 ? 0 : Math.floor(swarm.sizeBytes * part);
      await within("a seek", read(url, offset, fresh(), () => false));
      seconds.push((performance.now() - began) / 1000);
    }
    return median(seconds);
  } finally {
    await serving.close();
  }
}

/** MB/s, and CPU-seconds per GiB, of one client that reads a complete file repeatedly. */
async function oneClient(who: Contender, swarm: Swarm, work: string): Promise<{ rate: number; cpu: number }> {
  const serving = await Serving.open(who, swarm, work);
  try {
    let bytes = 0;
    const whole = async () => {
      for (const url of await mediaUrls(serving.url)) {
        await within("the whole file", read(url, 0, fresh(), (count) => (bytes += count) > 0));
      }
    };
    await whole();
    bytes = 0;
    const before = usage(serving.pid).cpuSeconds;
    const began = performance.now();
    for (let i = 0; i < PASSES; i++) await whole();
    const seconds = (performance.now() - began) / 1000;
    const cpuSeconds = usage(serving.pid).cpuSeconds - before;
    return { rate: bytes / 1e6 / seconds, cpu: cpuSeconds / (bytes / 2 ** 30) };
  } finally {
    await serving.close();
  }
}

/** All scenarios of the clips as Markdown. `ours` is the bundled contestant; needs ffmpeg and libtorrent's binding. */
export async function outputs(work: string, ours: string, rounds: number, clips: readonly string[]): Promise<string[]> {
  const who = contenders(ours);
  const seconds = (list: readonly number[]) => [median(list).toFixed(2)];
  const lines = ["## Outputs of the engine compared"];
  for (const clip of makeClips(work).filter((name) => clips.includes(path.extname(name).slice(1)))) {
    const kind = path.extname(clip).slice(1).toUpperCase();
    const table = <T>(
      title: string,
      columns: readonly string[],
      options: SwarmOptions,
      measure: (one: Contender, swarm: Swarm, work: string) => Promise<T>,
      row: (list: readonly T[]) => readonly string[],
      among: readonly Contender[] = who,
    ) =>
      compare(
        `${kind}: ${title}`,
        columns,
        among,
        rounds,
        () => Swarm.open(clip, work, options),
        (one, swarm) => measure(one, swarm, work),
        row,
      );
    lines.push(
      ...await table("first byte", ["seconds"], {}, firstByte, seconds),
      ...await table("seek to the first byte", ["seconds"], {}, seek, seconds),
      ...await table("first byte from one seeder of 40 KB/s", ["seconds"], THIN, firstByte, seconds),
      ...await table("one client, file here", ["MB/s", "CPU-s/GiB"], NEAR, oneClient, (list) => [
        median(list.map(({ rate }) => rate)).toFixed(0),
        median(list.map(({ cpu }) => cpu)).toFixed(2),
      ]),
    );
    if (!isOnPath("wrk")) continue;
    // wrk requests a single URL: a playlist's figure would mean nothing.
    const bodies = who.filter(({ name }) => name !== "hls");
    lines.push(
      ...await table("many clients, file here", ["MB/s", "MB a client"], NEAR, fanOut, (list) => [
        median(list.map(({ rate }) => rate)).toFixed(0),
        median(list.map(({ perClientMB }) => perClientMB)).toFixed(2),
      ], bodies),
    );
  }
  return lines;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [rounds = "3", clips = "ts,mkv,mp4", built] = process.argv.slice(2);
  const work = mkdtempSync(path.join(process.env["BENCH_DIR"] ?? os.tmpdir(), "outputs-"));
  try {
    const ours = built ?? await bundle("scripts/bench/contestant.ts", work);
    console.log((await outputs(work, ours, Number(rounds), clips.split(","))).join("\n"));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
