/**
 * A broadcast among real processes: `deno run -A scripts/bench/live.ts [viewers=30] [seconds=60] [processes=3] [Mb/s=1]
 * [factor=1]`. $BENCH_RUNTIME: `deno`, `node` or `bun`.
 *
 * One broadcaster of a clip of that bitrate (made with ffmpeg, unless $BENCH_CLIP names one), its upload limited to
 * twice that, and viewers who join one after another knowing only its magnet link; each reads MPEG TS as a player does.
 * Prints Markdown: time from the request to a second of media, delay behind the source, continuity, who sent the bytes,
 * CPU. A `factor` above 1 stretches the time of all members, for more viewers than the machine's cores can feed: see
 * `slow-motion.ts`. Choose it so that all of it keeps clearly fewer cores busy than there are; the last row says how
 * many. As many processes as viewers are the truest: viewers that share a process share its caches and its compiled code.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { commandOf, DENO_HEAP_FLAGS, type Runtime } from "../support/runtimes.ts";
import { makeClip } from "./live-clip.ts";
import { busySeconds, liveTable, type ViewerLine } from "./live-report.ts";

/** Time between the arrivals of two viewers, ms. */
const ARRIVAL_MS = 500;
/** How long the broadcast runs before the first viewer arrives, ms. */
const ALONE_MS = 9000;
/** Members have this long to end in order, ms. */
const LEAVE_MS = 10_000;
const [count, seconds, processes, megabits, factor] = [30, 60, 3, 1, 1].map((initial, i) =>
  Number(process.argv[2 + i] ?? initial)
) as [number, number, number, number, number];
const bytesPerS = megabits * 125_000;
const runtime = (process.env.BENCH_RUNTIME ?? "deno") as Runtime;
const isTraced = process.env.BENCH_TRACE === "1";

const directory = mkdtempSync(path.join(process.env.BENCH_DIR ?? os.tmpdir(), "millrace-live-"));
const originMs = Date.now();
const children: ChildProcess[] = [];
const viewers = new Map<string, ViewerLine[]>();
const viewerCpus = new Map<number, number[]>();
const broadcasterCpu: number[] = [];
let broadcaster: Record<string, number> = {};

/** Waits for `ms` of the members' clock. */
const pass = (ms: number) => new Promise((resolve) => setTimeout(resolve, factor * ms));

/** Starts a member; resolves with its first message. */
function member(
  args: readonly (string | number)[],
  onMessage: (message: Record<string, unknown>) => void,
): Promise<Record<string, unknown>> {
  const script = path.join(import.meta.dirname!, "live-member.ts");
  const flags = runtime === "deno" ? ["run", "-A", "--no-check", "-q", DENO_HEAP_FLAGS] : [];
  const [command, ...before] = commandOf(runtime);
  const child = spawn(command!, [...before, ...flags, script, ...[factor, originMs, ...args].map(String)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  children.push(child);
  let text = "";
  return new Promise((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`a member ended with ${code}`)));
    child.stdout!.setEncoding("utf8").on("data", (chunk: string) => {
      const lines = (text + chunk).split("\n");
      text = lines.pop()!;
      for (const line of lines) {
        const message = JSON.parse(line);
        resolve(message);
        onMessage(message);
      }
    });
  });
}

function add<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}

function fromViewers(message: Record<string, unknown>): void {
  if (typeof message.cpu === "number") add(viewerCpus, message.pid as number, message.cpu);
  if (typeof message.viewer !== "string") return;
  if (message.error !== undefined || message.ended === true) console.error(message);
  else add(viewers, message.viewer, message as unknown as ViewerLine);
}

function fromBroadcaster(message: Record<string, unknown>): void {
  if (message.broadcaster === undefined) return;
  broadcaster = message.broadcaster as Record<string, number>;
  broadcasterCpu.push(broadcaster.cpu!);
  if (isTraced) console.error(JSON.stringify(broadcaster));
}

/** Ends all members: in order, so that $NODE_OPTIONS with `--cpu-prof` leaves its files, or else by force. */
async function end(): Promise<void> {
  const ended = children.map((child) => child.exitCode ?? new Promise((resolve) => child.once("close", resolve)));
  for (const child of children) child.stdin!.end();
  await Promise.race([Promise.all(ended), new Promise((resolve) => setTimeout(resolve, LEAVE_MS))]);
  for (const child of children) child.kill("SIGKILL");
}

try {
  const clip = process.env.BENCH_CLIP ?? await makeClip(directory, megabits);
  // One after another: forty programs that start at once take minutes on few cores.
  const each = Math.ceil(count / processes);
  for (let i = 0; i * each < count; i++) {
    const here = Math.min(each, count - i * each);
    await member(["viewers", here, processes * ARRIVAL_MS, i * ARRIVAL_MS], fromViewers);
  }
  const waiting = [...children];
  const { magnet } = await member(["broadcaster", clip, bytesPerS, 2 * bytesPerS], fromBroadcaster);
  await pass(ALONE_MS);
  for (const child of waiting) child.stdin!.write(`${magnet}\n`);
  const halfMs = ((1 + seconds) * 1000 + count * ARRIVAL_MS) / 2;
  await pass(halfMs);
  const busyS = busySeconds();
  await pass(halfMs);
  const busyCores = 1000 * (busySeconds() - busyS) / (factor * halfMs);
  if (isTraced) { for (const lines of viewers.values()) console.error(JSON.stringify(lines.at(-1))); }
  const title = `${count} viewers of ${megabits} Mb/s, ${waiting.length} processes, ${runtime}`;
  const cpus = { viewerCpus: [...viewerCpus.values()], broadcasterCpu, busyCores };
  console.log(liveTable({ title, count, factor, viewers: [...viewers.values()], ...cpus, broadcaster }));
} finally {
  await end();
  rmSync(directory, { recursive: true, force: true });
}
