/**
 * The comparison that anyone can rerun: `deno task bench [MiB=512] [rounds=3]`.
 *
 * Full downloads from one seeder on loopback (libtorrent, else ours), to disk, every piece hashed, all contenders
 * taking turns in each round; seeding to libtorrent (`seeding.ts`); remuxing to a pipe against `ffmpeg -c copy`; then the waits of players (`stream.ts`), and
 * the outputs compared with each other (`outputs.ts`). Prints Markdown with ratios to ourselves on Node; rivals that
 * are not installed are named. Works under $BENCH_DIR (default: the system's temporary directory). CPU and memory come
 * from /proc, so they are empty on systems other than Linux.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { commandOf, run } from "../support/runtimes.ts";
import { deadline, line, median, start, stop, usage } from "./children.ts";
import { bundle, type Contender, contenders, findLibtorrent, has } from "./contenders.ts";
import { Noise } from "./noise.ts";
import { outputs } from "./outputs.ts";
import { seeding } from "./seeding.ts";
import { streaming } from "./stream.ts";
import { track } from "./tracker.ts";

const MIB = 1 << 20;
const START_TIMEOUT_MS = 60_000;
const DOWNLOAD_TIMEOUT_MS = 600_000;

interface Result {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly peakMB: number;
}

async function download(who: Contender, torrent: string, into: string): Promise<Result> {
  rmSync(into, { recursive: true, force: true });
  mkdirSync(into, { recursive: true });
  const child = start(who.command(torrent, into));
  try {
    const done = line(child, "DONE", DOWNLOAD_TIMEOUT_MS);
    await Promise.race([line(child, "READY", START_TIMEOUT_MS), done]);
    const before = usage(child.pid!);
    const began = performance.now();
    await done;
    const seconds = (performance.now() - began) / 1000;
    const after = usage(child.pid!);
    return { seconds, cpuSeconds: after.cpuSeconds - before.cpuSeconds, peakMB: after.peakMB };
  } finally {
    await stop(child);
    rmSync(into, { recursive: true, force: true });
  }
}

async function downloads(work: string, noise: Noise, rounds: number): Promise<string[]> {
  const { present, missing, ours } = await contenders(work);
  let port = 0;
  const tracker = await track(() => [port]);
  const torrent = path.join(work, "noise.torrent");
  await noise.writeTorrent(torrent, tracker.url);
  const libtorrent = findLibtorrent();
  const seeder = start(
    libtorrent !== null
      ? libtorrent("seed", torrent, noise.directory)
      : [...commandOf("node"), ours, "seed", torrent, noise.directory],
  );
  try {
    port = Number((await line(seeder, "READY", START_TIMEOUT_MS)).split(" ")[1]);
    // libtorrent rejects peers until it has announced itself.
    await Promise.race([tracker.announced, deadline(START_TIMEOUT_MS, "the seeder's announce")]);
    const results = new Map<Contender, Result[]>(present.map((who) => [who, []]));
    for (let round = 0; round < rounds; round++) {
      for (const who of present) results.get(who)!.push(await download(who, torrent, path.join(work, "leech")));
    }
    return table(results, noise.sizeBytes / MIB, libtorrent !== null, missing);
  } finally {
    await stop(seeder);
    tracker.close();
  }
}

function table(results: Map<Contender, Result[]>, mib: number, byLibtorrent: boolean, missing: string[]): string[] {
  const rate = (list: Result[]) => mib * MIB / 1e6 / median(list.map((result) => result.seconds));
  const base = rate([...results.values()][0]!);
  const rows = [...results].map(([who, list]) => {
    const cpu = median(list.map((result) => result.cpuSeconds)) / (mib / 1024);
    const peak = Math.max(...list.map((result) => result.peakMB));
    const mbps = rate(list);
    return `| ${who.name} | ${mbps.toFixed(0)} | ${(base / mbps).toFixed(2)} | ${cpu.toFixed(2)} | ${
      peak.toFixed(0)
    } |`;
  });
  return [
    `## Download of ${mib} MiB from one seeder (${byLibtorrent ? "libtorrent" : "millrace"}) on loopback`,
    "",
    "| contender | MB/s | millrace on Node ÷ it | CPU-s/GiB | peak RSS, MB |",
    "| --- | --- | --- | --- | --- |",
    ...rows,
    ...missing.map((name) => `\nNot installed: ${name}.`),
  ];
}

async function main(mib: number, rounds: number): Promise<void> {
  const work = mkdtempSync(path.join(process.env["BENCH_DIR"] ?? os.tmpdir(), "bench-"));
  try {
    const load = () => os.loadavg()[0]!.toFixed(1);
    console.log(`${os.cpus().length} cores, load ${load()}, ${rounds} rounds, medians\n`);
    const noise = await Noise.make(path.join(work, "seed"), mib);
    console.log((await downloads(work, noise, rounds)).join("\n"));
    if (findLibtorrent() !== null) {
      const ours = await bundle("scripts/bench/contestant.ts", work);
      console.log(`\n${(await seeding(work, ours, noise, rounds)).join("\n")}`);
    } else console.log("\nNot measured without libtorrent: seeding.");
    console.log("\n## Remuxing to MPEG TS, to a pipe\n");
    if (has("ffmpeg", "-version")) {
      const remux = await bundle("scripts/bench/remux.ts", work);
      if (!run(commandOf("node"), [remux], work)) process.exitCode = 1;
    } else console.log("Not installed: ffmpeg.");
    console.log();
    if (has("ffmpeg", "-version") && findLibtorrent() !== null) {
      const ours = await bundle("scripts/bench/contestant.ts", work);
      console.log((await streaming(work, ours, rounds)).join("\n"));
      console.log(`\n${(await outputs(work, ours, rounds, ["ts", "mkv", "mp4"])).join("\n")}`);
    } else console.log("Not measured without ffmpeg and libtorrent: streaming.");
    console.log(`\nload at the end ${load()}`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

const [mib = "512", rounds = "3"] = process.argv.slice(2);
await main(Number(mib), Number(rounds));
