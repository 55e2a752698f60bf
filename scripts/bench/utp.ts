/**
 * uTP alone (BEP 29): libtorrent sends to libtorrent, to the engine, and the engine to libtorrent, taking turns in each round.
 *
 *   node scripts/bench/utp.ts [MiB=256] [rounds=3] [loopback|far] [runtime=node]
 *
 * `far`: lines of 20 Mbit/s with a queue of 100 ms, a round trip of 50 ms, one packet of a hundred lost; needs root. Needs Debian's
 * python3-libtorrent. Works under $BENCH_DIR (default: the system's temporary directory). CPU is that of the receiver and of the
 * sender, from /proc.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { WideArea } from "../live-wan/wide-area.ts";
import { commandOf, DENO_HEAP_FLAGS } from "../support/runtimes.ts";
import { deadline, line, median, start, stop, usage } from "./children.ts";
import { bundle, findLibtorrent } from "./contenders.ts";
import { Noise } from "./noise.ts";
import { track } from "./tracker.ts";

const START_TIMEOUT_MS = 60_000;
const TRANSFER_TIMEOUT_MS = 900_000;
const HERE = fileURLToPath(import.meta.url);
const FAR = { uplinkMbit: 20, queueMs: 100, delayMs: 12.5, loss: 0.01, lossBurst: 1, isClosed: false };
const [NEAR_HOST, FAR_HOST] = ["52.0.1.1", "52.0.1.2"];

type Runtime = "node" | "deno" | "bun";

/** Where the sender runs: what its command begins with, and addresses of the receiver's machine and of its own. */
interface Place {
  readonly prefix: readonly string[];
  readonly receiverHost: string;
  readonly senderHost: string;
}

interface Result {
  readonly seconds: number;
  readonly receiverCpuS: number;
  readonly senderCpuS: number;
}

class Contest {
  readonly #work: string;
  readonly #noise: Noise;
  readonly #place: Place;
  readonly #engine: readonly string[];

  constructor(work: string, noise: Noise, place: Place, engine: readonly string[]) {
    this.#work = work;
    this.#noise = noise;
    this.#place = place;
    this.#engine = engine;
  }

  async run(sender: "libtorrent" | "engine", receiver: "libtorrent" | "engine"): Promise<Result> {
    const { prefix, receiverHost, senderHost } = this.#place;
    const into = path.join(this.#work, "leech");
    const torrent = path.join(this.#work, "utp.torrent");
    mkdirSync(into);
    let port = 0;
    const tracker = await track(() => [port], { host: receiverHost, peerHost: senderHost });
    await this.#noise.writeTorrent(torrent, tracker.url);
    const seedCommand = this.#command(sender, "seed", torrent, this.#noise.directory);
    const children = [started([...prefix, ...seedCommand], senderHost)];
    try {
      port = Number((await line(children[0]!, "READY", START_TIMEOUT_MS)).split(" ")[1]);
      await Promise.race([tracker.announced, deadline(START_TIMEOUT_MS, "the sender's announce")]);
      const child = started(this.#command(receiver, "download", torrent, into), receiverHost);
      children.push(child);
      const done = line(child, "DONE", TRANSFER_TIMEOUT_MS);
      await Promise.race([line(child, "READY", START_TIMEOUT_MS), done]);
      // `env` and `ip` become what they start.
      const pids = [child.pid!, children[0]!.pid!];
      const before = pids.map(usage);
      const began = performance.now();
      await done;
      const seconds = (performance.now() - began) / 1000;
      const [receiverCpuS, senderCpuS] = pids.map((pid, i) => usage(pid).cpuSeconds - before[i]!.cpuSeconds);
      return { seconds, receiverCpuS: receiverCpuS!, senderCpuS: senderCpuS! };
    } finally {
      for (const each of children.reverse()) await stop(each);
      tracker.close();
      rmSync(into, { recursive: true, force: true });
    }
  }

  #command(who: "libtorrent" | "engine", mode: "seed" | "download", torrent: string, directory: string) {
    return who === "engine" ? [...this.#engine, mode, torrent, directory] : findLibtorrent()!(mode, torrent, directory);
  }
}

/** Starts a command whose libtorrent, if it is that, listens at `host` for uTP alone. */
function started(command: readonly string[], host: string): ChildProcess {
  return start(["env", `LT_UTP=${host}`, ...command]);
}

async function contest(mib: number, rounds: number, runtime: Runtime, place: Place): Promise<void> {
  const work = mkdtempSync(path.join(process.env["BENCH_DIR"] ?? os.tmpdir(), "bench-"));
  try {
    const noise = await Noise.make(path.join(work, "seed"), mib);
    const ours = await bundle("scripts/bench/contestant.ts", work);
    const flags = runtime === "deno" ? ["run", "-A", "--no-check", "--quiet", DENO_HEAP_FLAGS] : [];
    const arena = new Contest(work, noise, place, [...commandOf(runtime), ...flags, ours]);
    const pairs = [["libtorrent", "libtorrent"], ["libtorrent", "engine"], ["engine", "libtorrent"]] as const;
    const results = pairs.map((): Result[] => []);
    for (let round = 0; round < rounds; round++) {
      for (const [i, [sender, receiver]] of pairs.entries()) results[i]!.push(await arena.run(sender, receiver));
    }
    const gib = mib / 1024;
    console.log("| from | to | MB/s | of libtorrent's | receiver, CPU-s/GiB | sender, CPU-s/GiB |");
    console.log("| --- | --- | --- | --- | --- | --- |");
    const rates = results.map((list) => noise.sizeBytes / 1e6 / median(list.map(({ seconds }) => seconds)));
    for (const [i, list] of results.entries()) {
      const cpu = (of: (result: Result) => number) => (median(list.map(of)) / gib).toFixed(2);
      console.log(
        [
          ...["", ...pairs[i]!.map((who) => who === "engine" ? `millrace, ${runtime}` : who)],
          ...[rates[i]!.toFixed(2), (rates[i]! / rates[0]!).toFixed(2)],
          ...[cpu(({ receiverCpuS }) => receiverCpuS), cpu(({ senderCpuS }) => senderCpuS), ""],
        ].join(" | ").trim(),
      );
    }
    console.log(`\nload at the end ${os.loadavg()[0]!.toFixed(1)}`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Runs this script again at one end of a far line, whose other end the sender gets. */
async function far(args: readonly string[]): Promise<void> {
  const network = await WideArea.open([NEAR_HOST, FAR_HOST].map((address) => ({ ...FAR, address })), 1);
  try {
    const [program, ...rest] = network.at(0, [process.execPath, HERE, ...args, JSON.stringify(network.at(1, []))]);
    const child = spawn(program!, rest, { stdio: ["ignore", "inherit", "inherit"] });
    await new Promise((resolve) => child.once("exit", resolve));
  } finally {
    console.log(JSON.stringify(await network.close()));
  }
}

const [mib = "256", rounds = "3", where = "loopback", runtime = "node", prefix] = process.argv.slice(2);
if (findLibtorrent() === null) throw new Error("install Debian's python3-libtorrent");
if (where === "far" && prefix === undefined) await far([mib, rounds, where, runtime]);
else {
  const local = { prefix: [], receiverHost: "127.0.0.1", senderHost: "127.0.0.1" };
  const place = prefix === undefined
    ? local
    : { prefix: JSON.parse(prefix) as string[], receiverHost: NEAR_HOST, senderHost: FAR_HOST };
  await contest(Number(mib), Number(rounds), runtime as Runtime, place);
}
