/**
 * The comparison that anyone can rerun: `deno task bench [MiB=512] [rounds=3]`.
 *
 * Full downloads from one seeder on loopback (libtorrent, else ours), to disk, every piece hashed, all contenders
 * taking turns in each round; remuxing to a pipe against `ffmpeg -c copy`; then the waits of players (`stream.ts`), and
 * the outputs compared with each other (`outputs.ts`). Prints Markdown with ratios to ourselves on Node; rivals that
 * are not installed are named. Works under $BENCH_DIR (default: the system's temporary directory). CPU and memory come
 * from /proc, so they are empty on systems other than Linux.
 */
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { randomBytes } from "node:crypto";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { createTransportFile, hashPieces } from "../../src/transport/create.ts";
import { commandOf, run } from "../support/runtimes.ts";
import { deadline, line, median, start, stop, usage } from "./children.ts";
import { bundle, type Contender, contenders, findLibtorrent, has } from "./contenders.ts";
import { outputs } from "./outputs.ts";
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

async function downloads(work: string, mib: number, rounds: number): Promise<string[]> {
  const { present, missing, ours } = await contenders(work);
  const seed = path.join(work, "seed");
  mkdirSync(seed);
  const out = openSync(path.join(seed, "noise.bin"), "w");
  for (let i = 0; i < mib; i++) writeSync(out, randomBytes(MIB));
  closeSync(out);
  let port = 0;
  const tracker = await track(() => [port]);
  const data = readFileSync(path.join(seed, "noise.bin"));
  const pieceHashes = await hashPieces(
    data.length,
    MIB,
    (at, length) => Promise.resolve(data.subarray(at, at + length)),
  );
  const contents = { name: "noise.bin", sizeBytes: data.length, pieceLengthBytes: MIB, pieceHashes };
  const torrent = path.join(work, "noise.torrent");
  writeFileSync(torrent, (await createTransportFile({ ...contents, trackers: [[tracker.url]] })).bytes);
  const libtorrent = findLibtorrent();
  const seeder = start(
    libtorrent !== null ? libtorrent("seed", torrent, seed) : [...commandOf("node"), ours, "seed", torrent, seed],
  );
  try {
    port = Number((await line(seeder, "READY", START_TIMEOUT_MS)).split(" ")[1]);
    // libtorrent rejects peers until it has announced itself.
    await Promise.race([tracker.announced, deadline(START_TIMEOUT_MS, "the seeder's announce")]);
    const results = new Map<Contender, Result[]>(present.map((who) => [who, []]));
    for (let round = 0; round < rounds; round++) {
      for (const who of present) results.get(who)!.push(await download(who, torrent, path.join(work, "leech")));
    }
    return table(results, mib, libtorrent !== null, missing);
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
    console.log((await downloads(work, mib, rounds)).join("\n"));
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
