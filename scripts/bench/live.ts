/**
 * A broadcast among real processes: `deno run -A scripts/bench/live.ts [viewers=30] [seconds=60] [processes=3] [Mb/s=1]`.
 *
 * One broadcaster of a clip of that bitrate (made with ffmpeg), its upload limited to twice that, and viewers who join one after
 * another knowing only its magnet link; each reads MPEG TS as a player does. Prints Markdown: time from the request to
 * a second of media, delay behind the source, continuity, who sent the bytes, CPU.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { commandOf, type Runtime } from "../support/runtimes.ts";

/** Time between the arrivals of two viewers, ms. */
const ARRIVAL_MS = 500;
const [count, seconds, processes, megabits] = [30, 60, 3, 1].map((initial, i) =>
  Number(process.argv[2 + i] ?? initial)
) as [number, number, number, number];
const bytesPerS = megabits * 125_000;
const runtime = (process.env.BENCH_RUNTIME ?? "deno") as Runtime;

interface ViewerLine {
  readonly joinMs: number | null;
  readonly startedMs: number;
  readonly playedMs: number;
  readonly missingMs: number;
  readonly arrival: [number, number] | null;
  readonly [field: string]: unknown;
}

const directory = mkdtempSync(path.join(process.env.BENCH_DIR ?? os.tmpdir(), "millrace-live-"));
const children: ChildProcess[] = [];
const viewers = new Map<string, ViewerLine[]>();
const cpus = new Map<string, number[]>();
let broadcaster: Record<string, number> = {};

function member(args: readonly string[], line: (message: Record<string, unknown>) => void): void {
  const script = path.join(import.meta.dirname!, "live-member.ts");
  const flags = runtime === "deno" ? ["run", "-A", "--no-check", "-q"] : [];
  const command = [...commandOf(runtime), ...flags, script, ...args];
  const child = spawn(command[0]!, command.slice(1), { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  let text = "";
  child.stdout!.setEncoding("utf8").on("data", (chunk: string) => {
    const lines = (text + chunk).split("\n");
    text = lines.pop()!;
    for (const one of lines) line(JSON.parse(one));
  });
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
}

async function makeClip(): Promise<string> {
  const clip = path.join(directory, "clip.ts");
  const input = ["-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25", "-f", "lavfi", "-i", "sine=frequency=440"];
  // What sound and the headers of packets leave of the bitrate.
  const videoRate = `${930 * megabits - 130}k`;
  const video = [
    "-c:v",
    "libx264",
    "-preset",
    "veryfast",
    "-b:v",
    videoRate,
    "-minrate",
    videoRate,
    "-maxrate",
    videoRate,
    "-bufsize",
    `${400 * megabits}k`,
    // Fills what the picture doesn't need: a broadcast drops null packets, so these bytes have to be pictures.
    "-x264-params",
    "nal-hrd=cbr",
    "-g",
    "25",
  ];
  const output = [
    "-c:a",
    "aac",
    "-b:a",
    "64k",
    "-muxrate",
    `${megabits}M`,
    "-pcr_period",
    "40",
    "-t",
    "30",
    "-f",
    "mpegts",
    clip,
  ];
  const child = spawn("ffmpeg", ["-v", "error", "-y", ...input, ...video, ...output], { stdio: "inherit" });
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  if (code !== 0) throw new Error("ffmpeg could not make the clip");
  return clip;
}

try {
  const clip = await makeClip();
  const magnet = await new Promise<string>((resolve) => {
    member(["broadcaster", clip, String(bytesPerS), String(2 * bytesPerS)], (message) => {
      if (typeof message.magnet === "string") resolve(message.magnet);
      if (message.broadcaster === undefined) return;
      broadcaster = message.broadcaster as Record<string, number>;
      if (process.env.BENCH_TRACE === "1") console.error(JSON.stringify(broadcaster));
      cpus.set("broadcaster", [...cpus.get("broadcaster") ?? [], broadcaster.cpu!]);
    });
  });
  // Let the broadcast run for a while first.
  await new Promise((resolve) => setTimeout(resolve, 8000));
  const each = Math.ceil(count / processes);
  for (let i = 0; i < processes; i++) {
    const here = Math.min(each, count - i * each);
    member(
      ["viewers", String(here), String(processes * ARRIVAL_MS), String(1000 + i * ARRIVAL_MS), magnet],
      (message) => {
        if (typeof message.viewer === "string") {
          if (message.error !== undefined || message.ended === true) console.error(message);
          else viewers.set(message.viewer, [...viewers.get(message.viewer) ?? [], message as unknown as ViewerLine]);
        } else if (typeof message.cpu === "number") {
          cpus.set(String(message.pid), [...cpus.get(String(message.pid)) ?? [], message.cpu]);
        }
      },
    );
  }
  await new Promise((resolve) => setTimeout(resolve, (2 + seconds) * 1000 + count * ARRIVAL_MS));
  report();
} finally {
  for (const child of children) child.kill("SIGKILL");
  rmSync(directory, { recursive: true, force: true });
}

function report(): void {
  const last = [...viewers.values()].map((lines) => lines[lines.length - 1]!);
  const joins = last.map(({ joinMs }) => joinMs ?? Infinity);
  const offsetMs = broadcaster.offsetMs!;
  // In each second the delay of the latest arrival, over the second half of the run.
  const lags = [...viewers.values()].flatMap((lines) =>
    lines.slice(Math.floor(lines.length / 2)).flatMap(({ arrival }) => arrival === null ? [] : [arrival[1] - offsetMs])
  );
  if (process.env.BENCH_TRACE === "1") { for (const line of last) console.error(JSON.stringify(line)); }
  const played = last.reduce((sum, { playedMs }) => sum + playedMs, 0);
  const missing = last.reduce((sum, { missingMs }) => sum + missingMs, 0);
  const total = (field: string) => last.reduce((sum, line) => sum + Number(line[field]), 0);
  const ms = (value: number) => `${Math.round(value)} ms`;
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const steady = [...cpus].map(([name, values]) => [name, mean(values.slice(Math.floor(values.length / 2)))] as const);
  const viewerCpu = steady.filter(([name]) => name !== "broadcaster").reduce((sum, [, value]) => sum + value, 0);
  console.log(
    `| ${count} viewers, ${processes} processes, ${runtime}, load ${
      os.loadavg()[0]!.toFixed(1)
    } on ${os.cpus().length} cores | |
| --- | --- |
| viewers that play | ${last.filter(({ joinMs }) => joinMs !== null).length} of ${count} |
| request to a second of media, p50 / p95 / most | ${
      [0.5, 0.95, 1].map((share) => ms(quantile(joins, share))).join(" / ")
    } |
| request to the start's answer, p50 / p95 | ${
      [0.5, 0.95].map((share) => ms(quantile(last.map(({ startedMs }) => startedMs), share))).join(" / ")
    } |
| delay behind the source, p50 / p95 / most | ${[0.5, 0.95, 1].map((share) => ms(quantile(lags, share))).join(" / ")} |
| continuity | ${(100 * (1 - missing / Math.max(1, played))).toFixed(3)} % of ${Math.round(played / 1000)} s |
| payload from the broadcaster | ${(100 * broadcaster.uploadedBytes! / total("downloadedBytes")).toFixed(1)} % |
| thrown away | ${(100 * total("wastedBytes") / total("downloadedBytes")).toFixed(2)} % |
| CPU, broadcaster / one viewer | ${steady.find(([name]) => name === "broadcaster")![1].toFixed(1)} % / ${
      (viewerCpu / count).toFixed(1)
    } % of a core |`,
  );
}
