/**
 * A broadcast from end to end, with real programs: ffmpeg makes a picture and a tone in real time, `broadcast --source
 * -` sends them, `serve` receives them, and ffmpeg decodes both outputs at once. Prints what the decoders said and how
 * long each played. `deno run -A scripts/bench/live-watch.ts [seconds] [runtime]`, default 300 s on Node.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { ROOT } from "../support/files.ts";
import { commandOf, exit, type Runtime } from "../support/runtimes.ts";

const seconds = Number(process.argv[2] ?? 300);
const runtime = (process.argv[3] ?? "node") as Runtime;
/** About 1 Mb/s, with a random access point every second. */
const PICTURE = ["-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25", "-f", "lavfi", "-i", "sine=sample_rate=48000"];
const ENCODER = ["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "25", "-pix_fmt", "yuv420p"];
const RATES = ["-b:v", "800k", "-maxrate", "800k", "-bufsize", "800k", "-c:a", "aac", "-b:a", "96k"];

const children: ChildProcess[] = [];

/** Starts the program on the runtime; returns its first line, parsed as JSON. */
async function program(args: readonly string[], stdin: ChildProcess | null): Promise<Record<string, string>> {
  const [command, ...before] = commandOf(runtime);
  const flags = runtime === "deno" ? ["run", "-A", "-q", "--no-check"] : [];
  const script = join(ROOT, `platform/${runtime}/main.ts`);
  const child = spawn(command!, [...before, ...flags, script, ...args], { stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  if (stdin !== null) stdin.stdout!.pipe(child.stdin!);
  const lines = createInterface({ input: child.stdout! });
  const first = await new Promise<string>((resolve, reject) => {
    lines.once("line", resolve);
    child.once("exit", (code) => reject(new Error(`${args[0]} ended with ${code}`)));
  });
  return JSON.parse(first);
}

interface Decoded {
  readonly code: number | null;
  readonly complaints: string;
  readonly mediaS: number;
  readonly tookS: number;
}

/** Decodes `url` for the requested time. */
async function decode(url: string): Promise<Decoded> {
  const began = performance.now();
  const args = [
    "-nostdin",
    "-v",
    "warning",
    "-progress",
    "pipe:1",
    "-i",
    url,
    "-t",
    String(seconds),
    "-f",
    "null",
    "-",
  ];
  const child = spawn("ffmpeg", args, { stdio: ["ignore", "pipe", "pipe"] });
  children.push(child);
  let complaints = "", mediaS = 0;
  child.stderr!.on("data", (text) => complaints += text);
  child.stdout!.on("data", (text) => {
    const last = [...String(text).matchAll(/out_time_us=(\d+)/g)].at(-1);
    if (last !== undefined) mediaS = Number(last[1]) / 1e6;
  });
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, complaints, mediaS, tookS: (performance.now() - began) / 1000 };
}

const directory = await mkdtemp(join(tmpdir(), "millrace-watch-"));
let ok = false;
try {
  const source = spawn("ffmpeg", ["-v", "error", "-re", ...PICTURE, ...ENCODER, ...RATES, "-f", "mpegts", "-"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(source);
  const alone = ["--peer-host", "127.0.0.1", "--peer-port", "0", "--no-dht", "--no-lsd"];
  const at = (name: string) => ["--state-dir", join(directory, name)];
  const air = await program(
    ["broadcast", "--source", "-", "--name", "watch", "--json", "--bitrate", "1Mbit/s", ...alone, ...at("sender")],
    source,
  );
  const ready = await program(
    ["serve", "--http-port", "0", "--log-format", "json", "--cache", "ram", ...alone, ...at("viewer")],
    null,
  );
  const query = new URLSearchParams({ magnet: `${air["magnet"]}&x.pe=${air["peers"]}` });
  const outputs = ["getstream", "manifest.m3u8"];
  const results = await Promise.all(outputs.map((path) => decode(`${ready["http"]}/engine/${path}?${query}`)));
  for (const [i, { code, complaints, mediaS, tookS }] of results.entries()) {
    console.log(`${outputs[i]}: exit ${code}, ${mediaS.toFixed(1)} s of media decoded in ${tookS.toFixed(1)} s`);
    console.log(complaints === "" ? "  ffmpeg said nothing" : complaints);
  }
  ok = results.every(({ code, complaints }) => code === 0 && complaints === "");
} finally {
  for (const child of children) child.kill("SIGKILL");
  await rm(directory, { recursive: true, force: true });
}
exit(ok);
