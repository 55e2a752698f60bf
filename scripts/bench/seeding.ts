/**
 * Seeding to one libtorrent leecher on loopback: the engine on each runtime and libtorrent, taking turns in each round.
 * Every seeder has the complete file; CPU and memory are those of the seeder alone, from /proc.
 *
 * Alone: `node scripts/bench/seeding.ts [MiB=1024] [rounds=3] [runtimes=node,deno,bun,libtorrent]`. Needs Debian's
 * python3-libtorrent. Works under $BENCH_DIR (default: the system's temporary directory). $NODE_FLAGS go to Node.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { commandOf, DENO_HEAP_FLAGS } from "../support/runtimes.ts";
import { deadline, line, median, start, stop, usage } from "./children.ts";
import { bundle, type Contender, findLibtorrent } from "./contenders.ts";
import { Noise } from "./noise.ts";
import { track } from "./tracker.ts";

const START_TIMEOUT_MS = 60_000;
const TRANSFER_TIMEOUT_MS = 600_000;

interface Result {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly peakMB: number;
}

/** The engine `ours` on each runtime, and libtorrent, as seeders. */
function seeders(ours: string): Contender[] {
  const nodeFlags = (process.env["NODE_FLAGS"] ?? "").split(" ").filter((flag) => flag !== "");
  const flags = { node: nodeFlags, deno: ["run", "-A", "--no-check", "--quiet", DENO_HEAP_FLAGS], bun: [] };
  const engines = (["node", "deno", "bun"] as const).map((runtime): Contender => ({
    name: `millrace, ${runtime}`,
    command: (torrent, directory) => [...commandOf(runtime), ...flags[runtime], ours, "seed", torrent, directory],
  }));
  const libtorrent = findLibtorrent()!;
  return [...engines, {
    name: "libtorrent",
    command: (torrent, directory) => libtorrent("seed", torrent, directory),
  }];
}

async function seed(who: Contender, noise: Noise, work: string): Promise<Result> {
  const into = path.join(work, "leech");
  const torrent = path.join(work, "seeding.torrent");
  mkdirSync(into);
  let port = 0;
  const tracker = await track(() => [port]);
  await noise.writeTorrent(torrent, tracker.url);
  const children = [start(who.command(torrent, noise.directory))];
  try {
    const [seeder] = children;
    port = Number((await line(seeder!, "READY", START_TIMEOUT_MS)).split(" ")[1]);
    // libtorrent rejects peers until it has announced itself.
    await Promise.race([tracker.announced, deadline(START_TIMEOUT_MS, "the seeder's announce")]);
    const leecher = start(findLibtorrent()!("download", torrent, into));
    children.push(leecher);
    const done = line(leecher, "DONE", TRANSFER_TIMEOUT_MS);
    await Promise.race([line(leecher, "READY", START_TIMEOUT_MS), done]);
    const before = usage(seeder!.pid!);
    const began = performance.now();
    await done;
    const seconds = (performance.now() - began) / 1000;
    const after = usage(seeder!.pid!);
    return { seconds, cpuSeconds: after.cpuSeconds - before.cpuSeconds, peakMB: after.peakMB };
  } finally {
    for (const child of children.reverse()) await stop(child);
    tracker.close();
    rmSync(into, { recursive: true, force: true });
  }
}

/** Markdown lines: medians per seeder. `ours` is the bundled `contestant.ts`; `only` leaves out other names. */
export async function seeding(
  work: string,
  ours: string,
  noise: Noise,
  rounds: number,
  only: readonly string[] | null = null,
): Promise<string[]> {
  const present = seeders(ours).filter(({ name }) => only?.some((part) => name.endsWith(part)) ?? true);
  const results = new Map<Contender, Result[]>(present.map((who) => [who, []]));
  for (let round = 0; round < rounds; round++) {
    for (const who of present) results.get(who)!.push(await seed(who, noise, work));
  }
  const gib = noise.sizeBytes / 2 ** 30;
  return [
    `## Seeding ${(gib * 1024).toFixed(0)} MiB to one libtorrent on loopback`,
    "",
    "| seeder | MB/s | CPU-s/GiB | peak RSS, MB |",
    "| --- | --- | --- | --- |",
    ...[...results].map(([who, list]) => {
      const rate = noise.sizeBytes / 1e6 / median(list.map(({ seconds }) => seconds));
      const cpu = median(list.map(({ cpuSeconds }) => cpuSeconds)) / gib;
      const peak = Math.max(...list.map(({ peakMB }) => peakMB));
      return `| ${who.name} | ${rate.toFixed(0)} | ${cpu.toFixed(2)} | ${peak.toFixed(0)} |`;
    }),
  ];
}

async function main(mib: number, rounds: number, only: readonly string[] | null): Promise<void> {
  if (findLibtorrent() === null) throw new Error("install Debian's python3-libtorrent");
  const work = mkdtempSync(path.join(process.env["BENCH_DIR"] ?? os.tmpdir(), "bench-"));
  try {
    const noise = await Noise.make(path.join(work, "seed"), mib);
    const ours = await bundle("scripts/bench/contestant.ts", work);
    console.log((await seeding(work, ours, noise, rounds, only)).join("\n"));
    console.log(`\nload at the end ${os.loadavg()[0]!.toFixed(1)}`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [mib = "1024", rounds = "3", only] = process.argv.slice(2);
  await main(Number(mib), Number(rounds), only?.split(",") ?? null);
}
