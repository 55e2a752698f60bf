/**
 * Full downloads on loopback: one libtorrent seeder in its own process, our swarm as leecher, to disk, every piece
 * hashed.
 *
 *   node scripts/bench/download.ts [MiB=1024] [rounds=3] [runtimes=node,deno,bun] [cache=disk|ram]
 *
 * Needs Debian's python3-libtorrent. Works under $BENCH_DIR (default: /dev/shm, a tmpfs). Prints, per runtime, medians of
 * MB/s, CPU-seconds per GiB of the leecher and its peak resident memory. NODE names Node's binary.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { randomBytes } from "node:crypto";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** The far end: libtorrent, TCP only, with this torrent alone. Arguments: torrent, directory, address. */
const SEEDER = `
import sys, time, libtorrent as lt
torrent, data, at = sys.argv[1:4]
s = lt.session({"listen_interfaces": at, "enable_dht": False, "enable_lsd": False, "enable_upnp": False,
  "enable_natpmp": False, "enable_incoming_utp": False, "enable_outgoing_utp": False,
  "allow_multiple_connections_per_ip": True, "unchoke_slots_limit": 100, "alert_mask": 0,
  "send_buffer_watermark": 3 << 20, "send_buffer_watermark_factor": 150, "aio_threads": 2, "hashing_threads": 1})
p = lt.add_torrent_params(); p.ti = lt.torrent_info(torrent); p.save_path = data; p.trackers = []
p.flags = lt.torrent_flags.seed_mode | lt.torrent_flags.override_trackers
h = s.add_torrent(p)
while not h.status().is_seeding: time.sleep(0.02)
print("READY", s.listen_port(), flush=True)
sys.stdin.read()
`;

const MAKE_TORRENT = `
import sys, os, libtorrent as lt
path, out = sys.argv[1:3]
fs = lt.file_storage(); lt.add_files(fs, path)
t = lt.create_torrent(fs, piece_size=1 << 20, flags=lt.create_torrent.v1_only)
lt.set_piece_hashes(t, os.path.dirname(path)); open(out, "wb").write(lt.bencode(t.generate()))
`;

const PYTHON = "/usr/bin/python3";
const MIB = 1 << 20;
const here = fileURLToPath(new URL("./download-leecher.ts", import.meta.url));
const [mib = "1024", rounds = "3", runtimes = "node,deno,bun", cache = "disk"] = process.argv.slice(2);
const directory = `${process.env["BENCH_DIR"] ?? "/dev/shm"}/millrace-bench`;

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    child.stdout!.on("data", (chunk) => {
      text += chunk;
      if (text.includes("\n")) resolve(text.slice(0, text.indexOf("\n")));
    });
    child.on("exit", (code) => reject(new Error(`${child.spawnfile} ended early with ${code}`)));
  });
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => child.on("exit", () => resolve()));
}

async function makeAssets(): Promise<{ torrent: string; data: string }> {
  const data = `${directory}/seed-${mib}`;
  const file = `${data}/noise.bin`;
  const torrent = `${directory}/noise-${mib}.torrent`;
  if (!existsSync(torrent)) {
    mkdirSync(data, { recursive: true });
    const out = openSync(file, "w");
    for (let i = 0; i < Number(mib); i++) writeSync(out, randomBytes(MIB));
    closeSync(out);
    await ended(spawn(PYTHON, ["-c", MAKE_TORRENT, file, torrent], { stdio: "inherit" }));
  }
  return { torrent, data };
}

interface Result {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly peakMB: number;
}

function commandOf(runtime: string): string[] {
  const node = process.env["NODE"] ?? "node";
  const extra = (process.env["LEECHER_FLAGS"] ?? "").split(" ").filter((flag) => flag !== "");
  switch (runtime) {
    case "deno":
      return ["deno", "run", "-A", "--no-check", ...extra];
    case "bun":
      return ["bun", "run", ...extra];
    default:
      return [node, ...extra];
  }
}

async function download(runtime: string, torrent: string, address: string): Promise<Result> {
  const into = `${directory}/leech`;
  rmSync(into, { recursive: true, force: true });
  const [command, ...args] = commandOf(runtime);
  const child = spawn(command!, [...args, here, torrent, into, address, cache], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const line = await firstLine(child);
  await ended(child);
  rmSync(into, { recursive: true, force: true });
  return JSON.parse(line) as Result;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!;
}

const { torrent, data } = await makeAssets();
const seeder = spawn(PYTHON, ["-c", SEEDER, torrent, data, "127.0.0.1:0"], { stdio: ["pipe", "pipe", "inherit"] });
try {
  const port = (await firstLine(seeder)).split(" ")[1]!;
  const results = new Map<string, Result[]>();
  for (let round = 0; round < Number(rounds); round++) {
    for (const runtime of runtimes.split(",")) {
      const result = await download(runtime, torrent, `127.0.0.1:${port}`);
      results.set(runtime, [...results.get(runtime) ?? [], result]);
    }
  }
  const gib = Number(mib) / 1024;
  for (const [runtime, list] of results) {
    const rate = (Number(mib) * MIB) / 1e6 / median(list.map((r) => r.seconds));
    const cpu = median(list.map((r) => r.cpuSeconds)) / gib;
    const peak = Math.max(...list.map((r) => r.peakMB));
    console.log(`${runtime}: ${rate.toFixed(0)} MB/s, ${cpu.toFixed(2)} CPU-s/GiB, peak ${peak.toFixed(0)} MB`);
  }
} finally {
  seeder.kill();
}
