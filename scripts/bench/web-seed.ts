/**
 * A torrent whose only source is a far web server, against libtorrent: the server is behind a relay that delays
 * every packet, and connecting, and carries 10 MB/s (see `wan.ts`).
 *
 *   node scripts/bench/web-seed.ts [MiB=64] [rounds=3] [rtt=20,100,200] [KiB per piece=64,1024] [runtimes=node,deno,bun] [MB/s of the line=10]
 *
 * Linux as root, for a hosts file that names the server, as real torrents do; needs python3-libtorrent. Prints medians of
 * MB/s, and how many times as fast as libtorrent that is.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { createTransportFile, hashPieces } from "../../src/metainfo/create.ts";
import { commandOf } from "../support/runtimes.ts";
import { line, median, start, stop, usage } from "./children.ts";
import { type Contender, contenders } from "./contenders.ts";
import { openLink } from "./wan.ts";

const HOST = "seed.bench";
const START_TIMEOUT_MS = 60_000;
const DOWNLOAD_TIMEOUT_MS = 300_000;
const SCRIPT = fileURLToPath(import.meta.url);

/** The same bytes for the server and the torrent, hardly compressible. */
function content(sizeBytes: number): Uint8Array {
  const words = new Uint32Array(sizeBytes / 4);
  let state = 0x9e3779b9;
  for (let i = 0; i < words.length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[i] = state;
  }
  return new Uint8Array(words.buffer);
}

/** Serves the content with ranges, and keeps connections. */
function serve(mib: number): void {
  const data = content(mib << 20);
  let connections = 0;
  let requests = 0;
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    requests++;
    const [, from = "0", to = ""] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "") ?? [];
    const end = to === "" ? data.length : Number(to) + 1;
    const part = data.subarray(Number(from), end);
    const range = `bytes ${from}-${end - 1}/${data.length}`;
    response.writeHead(206, { "content-range": range, "content-length": part.length }).end(part);
  });
  server.on("connection", () => connections++);
  server.listen(0, "127.0.0.1", () => console.log(`READY ${(server.address() as AddressInfo).port}`));
  process.stdin.on("data", () => {
    console.log(`COUNT ${connections} ${requests}`);
    connections = requests = 0;
  });
}

interface Result {
  readonly seconds: number;
  readonly cpuSeconds: number;
}

async function download(who: Contender, torrent: string, into: string): Promise<Result> {
  rmSync(into, { recursive: true, force: true });
  mkdirSync(into, { recursive: true });
  const child = start(who.command(torrent, into));
  try {
    const done = line(child, "DONE", DOWNLOAD_TIMEOUT_MS);
    await Promise.race([line(child, "READY", START_TIMEOUT_MS), done]);
    const before = usage(child.pid!).cpuSeconds;
    const began = performance.now();
    await done;
    return { seconds: (performance.now() - began) / 1000, cpuSeconds: usage(child.pid!).cpuSeconds - before };
  } finally {
    await stop(child);
  }
}

async function measure(
  work: string,
  mib: number,
  rounds: number,
  rtts: number[],
  kibs: number[],
  runtimes: string[],
  bytesPerS: number,
) {
  const { present } = await contenders(work);
  const who = present.filter(({ name }) => name === "libtorrent" || runtimes.some((one) => name.endsWith(one)));
  const data = content(mib << 20);
  const server = start([...commandOf("node"), SCRIPT, "serve", String(mib)]);
  // Each wait for one of its lines listens for its end.
  server.setMaxListeners(0);
  try {
    const port = Number((await line(server, "READY", START_TIMEOUT_MS)).split(" ")[1]);
    console.log("| round trip, ms | KiB per piece | contender | MB/s | × libtorrent | CPU-s | connections, requests |");
    console.log("| --- | --- | --- | --- | --- | --- | --- |");
    for (const rtt of rtts) {
      const link = await openLink(port, { delayMs: rtt / 2, bytesPerS, hasHandshake: true });
      for (const kib of kibs) {
        const hashes = await hashPieces(
          data.length,
          kib << 10,
          (at, n) => Promise.resolve(data.subarray(at, at + n)),
        );
        const torrent = path.join(work, `${rtt}-${kib}.torrent`);
        const contents = {
          name: "noise.bin",
          sizeBytes: data.length,
          pieceLengthBytes: kib << 10,
          pieceHashes: hashes,
        };
        const webSeeds = [`http://${HOST}:${link.port}/noise.bin`];
        writeFileSync(torrent, (await createTransportFile({ ...contents, webSeeds })).bytes);
        const results = new Map<Contender, Result[]>(who.map((one) => [one, []]));
        const counts = new Map<Contender, string>();
        for (let round = 0; round < rounds; round++) {
          for (const one of who) {
            results.get(one)!.push(await download(one, torrent, path.join(work, "leech")));
            server.stdin!.write("count\n");
            counts.set(one, (await line(server, "COUNT", START_TIMEOUT_MS)).split(" ").slice(1).join(", "));
          }
        }
        const rate = (one: Contender) => data.length / 1e6 / median(results.get(one)!.map(({ seconds }) => seconds));
        const rival = who.find(({ name }) => name === "libtorrent");
        for (const one of who) {
          const cpu = median(results.get(one)!.map(({ cpuSeconds }) => cpuSeconds));
          const ratio = rival === undefined ? "–" : (rate(one) / rate(rival)).toFixed(2);
          console.log(
            `| ${rtt} | ${kib} | ${one.name} | ${rate(one).toFixed(1)} | ${ratio} | ${cpu.toFixed(2)} | ${
              counts.get(one)
            } |`,
          );
        }
      }
      link.close();
    }
  } finally {
    await stop(server);
  }
}

/** Runs this script again with a hosts file that names the server, and with a network of its own. */
function isolated(args: readonly string[]): number {
  const hosts = path.join(mkdtempSync(path.join(os.tmpdir(), "bench-")), "hosts");
  writeFileSync(hosts, `127.0.0.1 localhost ${HOST}\n`);
  const begin = `mount --bind ${hosts} /etc/hosts && ip link set lo up && exec "$@"`;
  const command = ["--net", "--mount", "sh", "-c", begin, "sh", ...commandOf("node"), SCRIPT, "inside", ...args];
  const { status } = spawnSync("unshare", command, { stdio: "inherit" });
  rmSync(path.dirname(hosts), { recursive: true, force: true });
  return status ?? 1;
}

const [mode, ...rest] = process.argv.slice(2);
if (mode === "serve") serve(Number(rest[0]));
else if (mode === "inside") {
  const [mib = "64", rounds = "3", rtts = "20,100,200", kibs = "64,1024", runtimes = "node,deno,bun", lineRate = "10"] =
    rest;
  const work = mkdtempSync(path.join(process.env["BENCH_DIR"] ?? os.tmpdir(), "bench-"));
  const numbers = (list: string) => list.split(",").map(Number);
  try {
    await measure(
      work,
      Number(mib),
      Number(rounds),
      numbers(rtts),
      numbers(kibs),
      runtimes.split(","),
      Number(lineRate) * 1e6,
    );
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  process.exit();
} else process.exitCode = isolated(process.argv.slice(2));
