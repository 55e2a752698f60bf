/**
 * Reads a large programme guide as the engine does: `node scripts/bench/guide.ts [programmes] [channels kept] [gz|xz] [runtime…]`. Runs
 * the built program (`scripts/build.ts`) with its database in a file. The guide has 20,000 channels, as many of them in the
 * library as are kept, and comes by HTTP packed with gzip, then with xz (both programs are needed). Meanwhile another client
 * asks for `get_status` forty times a second. Prints Markdown: seconds, seconds of processor time, how much memory
 * the process had at most above what it had before, MB, the longest answer to the other client, ms, and how many timers, of
 * those that the engine itself looks at, were later than 10 and than 25 ms.
 */
import { spawn } from "node:child_process";
import {
  createReadStream,
  createWriteStream,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { commandOf, DENO_HEAP_FLAGS, isRuntime, type Runtime } from "../support/runtimes.ts";
import { line, start, stop, usage } from "./children.ts";

const TOKEN = "0123456789abcdef".repeat(4);
const PROGRAM = path.join(import.meta.dirname!, "../../dist/millrace.mjs");
const CHANNELS = 20_000;
const STATUS_MS = 25;
/** How it is packed: xz quickly, with the dictionary of its default. */
const PACKERS = {
  gz: ["gzip", "-6", "-c"],
  xz: ["xz", "--lzma2=preset=0,dict=8MiB", "-c"],
} as const;

const numbers = process.argv.slice(2).filter((one) => /^\d+$/.test(one)).map(Number);
const programmes = numbers[0] ?? 2_000_000;
const kept = numbers[1] ?? 2000;
const runtimes = process.argv.slice(2).filter(isRuntime);

/** The guide in pieces of some 100 KB: channel by channel, from a day ago on. */
function* guide(): Generator<string> {
  const perChannel = Math.ceil(programmes / CHANNELS);
  yield '<?xml version="1.0" encoding="UTF-8"?>\n<tv>\n';
  for (let at = 0; at < CHANNELS; at += 1000) {
    let text = "";
    for (let id = at; id < at + 1000; id++) {
      text += `<channel id="c${id}.tv"><display-name>Channel ${id}</display-name></channel>\n`;
    }
    yield text;
  }
  const begunMs = Date.now() - 86_400_000;
  const time = (at: number) =>
    new Date(begunMs + at * 1_800_000).toISOString().replace(/\D/g, "").slice(0, 14) + " +0000";
  const times = Array.from({ length: perChannel + 1 }, (_, at) => time(at));
  for (let id = 0, left = programmes; left > 0; id++) {
    let text = "";
    for (let at = 0; at < perChannel && left > 0; at++, left--) {
      text += `<programme start="${times[at]}" stop="${times[at + 1]}" channel="c${id}.tv"><title>Programme ${at} of ` +
        `${id}</title><desc>What is seen ${(id * 7919 + at * 104_729) % 1_000_003}</desc></programme>\n`;
    }
    yield text;
  }
  yield "</tv>\n";
}

/** Writes the guide, packed; returns its size without that, bytes. */
async function write(file: string, [packer, ...args]: readonly [string, ...string[]]): Promise<number> {
  let bytes = 0;
  const counted = function* () {
    for (const text of guide()) {
      bytes += text.length;
      yield text;
    }
  };
  const child = spawn(packer, args, { stdio: ["pipe", "pipe", "inherit"] });
  await Promise.all([
    pipeline(Readable.from(counted()), child.stdin!),
    pipeline(child.stdout!, createWriteStream(file)),
  ]);
  return bytes;
}

/** Resident memory now, MB. */
function memoryMB(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) * 1024 / 1e6;
}

async function measure(runtime: Runtime, form: keyof typeof PACKERS, file: string): Promise<void> {
  const directory = mkdtempSync(path.join(process.env["BENCH_DIR"] ?? os.tmpdir(), "millrace-bench-"));
  const flags = runtime === "deno" ? ["run", "-A", "--no-check", "-q", DENO_HEAP_FLAGS] : [];
  const places = ["--state-dir", directory, "--cache-dir", path.join(directory, "cache")];
  const options = ["--http-port", "0", "--peer-port", "0", "--no-dht", "--no-lsd", ...places];
  const child = start([...commandOf(runtime), ...flags, PROGRAM, ...options, "--access-token", TOKEN]);
  const source = createServer((_request, response) => createReadStream(file).pipe(response));
  await new Promise<void>((resolve) => source.listen(0, "127.0.0.1", resolve));
  try {
    const base = (await line(child, "ready ", 30_000)).split(" ")[1]!;
    const call = async (method: string, params: Record<string, string> = {}, init: RequestInit = {}) => {
      const query = new URLSearchParams({ method, token: TOKEN, ...params });
      const { result, error } = await (await fetch(`${base}/server/api?${query}`, init)).json();
      if (error !== null) throw new Error(`${method}: ${error.message}`);
      return result;
    };
    const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
    const list = Array.from({ length: kept }, (_, at) => {
      const id = at * Math.floor(CHANNELS / kept);
      return `#EXTINF:-1 tvg-id="c${id}.tv",Channel ${id}\nhttp://h/live/${id}\n`;
    });
    const task = await call("playlist_import", {}, { method: "POST", body: `#EXTM3U\n${list.join("")}` });
    while ((await call("get_task", { task_id: String(task.task_id) })).state !== "done") await sleep(100);
    await sleep(2000);
    /** Timers that were later than this many seconds. */
    const late = async (bound: string) => {
      const text = await (await fetch(`${base}/metrics`)).text();
      const count = (label: string) =>
        Number(new RegExp(`millrace_event_loop_delay_seconds_${label} (\\d+)`).exec(text)?.[1] ?? NaN);
      return count("count") - count(`bucket\\{le="${bound}"\\}`);
    };
    const before = {
      cpu: usage(child.pid!).cpuSeconds,
      memory: memoryMB(child.pid!),
      a: await late("0.01"),
      b: await late("0.025"),
    };
    writeFileSync(`/proc/${child.pid}/clear_refs`, "5");
    const begun = performance.now();
    const url = `http://127.0.0.1:${(source.address() as AddressInfo).port}/guide.xml`;
    await call("epg_source_add", { url, update_interval: "0", update_now: "1" });
    let longest = 0;
    let looked = begun;
    for (;;) {
      const asked = performance.now();
      await call("get_status");
      longest = Math.max(longest, performance.now() - asked);
      if (asked - looked > 1000) {
        looked = asked;
        const [row] = (await call("epg_sources")).sources;
        if (row.last_error) throw new Error(row.last_error);
        if (row.last_update > 0) {
          const { cpuSeconds, peakMB } = usage(child.pid!);
          const cells = [
            `${runtime}, ${form}`,
            row.programmes,
            ((performance.now() - begun) / 1000).toFixed(0),
            (cpuSeconds - before.cpu).toFixed(1),
            (peakMB - before.memory).toFixed(0),
            longest.toFixed(0),
            `${await late("0.01") - before.a}, ${await late("0.025") - before.b}`,
          ];
          return console.log(`| ${cells.join(" | ")} |`);
        }
      }
      await sleep(STATUS_MS);
    }
  } finally {
    await stop(child);
    source.close();
    source.closeAllConnections();
    rmSync(directory, { recursive: true, force: true });
  }
}

const files = mkdtempSync(path.join(process.env["BENCH_DIR"] ?? os.tmpdir(), "millrace-guide-"));
try {
  const forms = (["gz", "xz"] as const).filter((form) => process.argv.includes(form));
  for (const form of forms.length > 0 ? forms : ["gz", "xz"] as const) {
    const file = path.join(files, `guide.xml.${form}`);
    const bytes = await write(file, PACKERS[form]);
    console.log(
      `\n${programmes} programmes, ${(bytes / 1e6).toFixed(0)} MB, ${form}: ${
        (statSync(file).size / 1e6).toFixed(1)
      } MB\n`,
    );
    console.log("| | kept | s | CPU-s | more memory, MB | get_status, ms | timers over 10, 25 ms |");
    console.log("| --- | --- | --- | --- | --- | --- | --- |");
    for (const runtime of runtimes.length > 0 ? runtimes : ["node", "deno", "bun"] as const) {
      await measure(runtime, form, file);
    }
  }
} finally {
  rmSync(files, { recursive: true, force: true });
}
