/**
 * The comparison that anyone can rerun: `deno task bench [MiB=512] [rounds=3]`.
 *
 * Full downloads from one seeder on loopback (libtorrent, else ourselves), to disk, every piece hashed, all contenders in
 * turn round by round; then remuxing to a pipe against `ffmpeg -c copy`. Prints Markdown with ratios to ourselves on Node;
 * rivals that are not installed are named. Works under $BENCH_DIR (default: the system's temporary directory). CPU and
 * memory come from /proc, so they are empty on other systems than Linux.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { createServer } from "node:http";
import { randomBytes } from "node:crypto";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { createTransportFile, hashPieces } from "../../src/transport/create.ts";
import { commandOf, run } from "../support/runtimes.ts";
import { bundle, type Contender, contenders, findLibtorrent, has } from "./contenders.ts";

const MIB = 1 << 20;
/** Linux counts CPU time in hundredths of a second. */
const TICKS_PER_SECOND = 100;
const START_TIMEOUT_MS = 60_000;
const DOWNLOAD_TIMEOUT_MS = 600_000;

interface Result {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly peakMB: number;
}

/** The line of a child's output that begins with `word`. */
function line(child: ChildProcess, word: string, timeoutMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const timer = setTimeout(() => reject(new Error(`no ${word} in ${timeoutMs} ms`)), timeoutMs);
    const settle = (step: () => void) => {
      clearTimeout(timer);
      child.stdout!.off("data", look);
      step();
    };
    const look = (chunk: Uint8Array) => {
      text += new TextDecoder().decode(chunk);
      const found = text.split("\n").slice(0, -1).find((candidate) => candidate.startsWith(word));
      if (found !== undefined) settle(() => resolve(found));
    };
    child.stdout!.on("data", look);
    child.once("exit", (code) => settle(() => reject(new Error(`${child.spawnargs.join(" ")} ended with ${code}`))));
  });
}

function start(command: readonly string[]): ChildProcess {
  return spawn(command[0]!, command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await gone;
}

/** CPU seconds so far and peak resident megabytes of a process. */
function usage(pid: number): { cpuSeconds: number; peakMB: number } {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const peak = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
    const ticks = Number(fields[11]) + Number(fields[12]);
    return { cpuSeconds: ticks / TICKS_PER_SECOND, peakMB: Number(peak?.[1] ?? NaN) * 1024 / 1e6 };
  } catch {
    return { cpuSeconds: NaN, peakMB: NaN };
  }
}

function deadline(timeoutMs: number, what: string): Promise<never> {
  return new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`not within ${timeoutMs} ms: ${what}`)), timeoutMs).unref();
  });
}

/** A tracker that tells everybody of the seeder; `announced` resolves when the first peer, the seeder itself, has come. */
async function track(peerPort: () => number): Promise<{ url: string; announced: Promise<void>; close: () => void }> {
  let first = () => {};
  const announced = new Promise<void>((resolve) => first = resolve);
  const server = createServer((_request, response) => {
    first();
    const peer = Buffer.from([127, 0, 0, 1, peerPort() >> 8, peerPort() & 255]);
    response.end(Buffer.concat([Buffer.from("d8:intervali1800e5:peers6:"), peer, Buffer.from("e")]));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/announce`, announced, close: () => server.close() };
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

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!;
}

async function downloads(work: string, mib: number, rounds: number): Promise<string[]> {
  const { present, missing, ours } = await contenders(work);
  const seed = path.join(work, "seed");
  mkdirSync(seed);
  const out = openSync(path.join(seed, "noise.bin"), "w");
  for (let i = 0; i < mib; i++) writeSync(out, randomBytes(MIB));
  closeSync(out);
  let port = 0;
  const tracker = await track(() => port);
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
    // libtorrent turns peers away until it has announced itself.
    await Promise.race([tracker.announced, deadline(START_TIMEOUT_MS, "the seeder announced itself")]);
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
    console.log(`\nload at the end ${load()}`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

const [mib = "512", rounds = "3"] = process.argv.slice(2);
await main(Number(mib), Number(rounds));
