/** `demo`: a second process seeds the clip, or broadcasts it; the engine plays it by magnet. No network beyond this machine is used. */
import os from "node:os";
import process from "node:process";
import type { Config } from "../../src/config.ts";
import { MillraceError } from "../../src/errors.ts";
import type { ChildProcess, Ports } from "../../src/ports.ts";
import { complain, print } from "../host.ts";
import type { SeedLine } from "../seed.ts";
import { readyLine, type Serving, startServing } from "../serve.ts";
import type { BroadcastFacts } from "../broadcast.ts";
import { loadClip } from "./clip.ts";
import { downloadHls, downloadTs, watchTs } from "./download.ts";

/** How long the seeder may take to print its line, ms: much of this on a busy or emulated machine. */
const SEEDER_START_MS = 60_000;

/** Longest first line of the seeder, characters. */
const MAX_LINE_CHARS = 4096;

/** How often the progress line is updated, ms. */
const PROGRESS_MS = 1000;

/** How long `--live --once` watches the broadcast, ms: past the end of the clip, where it starts over. */
const WATCHED_MS = 12_000;

/** Runs the demo; returns the exit code. */
export async function runDemo(
  config: Config,
  ports: Ports,
  self: readonly string[],
  stopped: Promise<void>,
): Promise<number> {
  const directory = `${os.tmpdir().replaceAll("\\", "/")}/millrace-demo-${crypto.randomUUID()}`;
  let seeder: ChildProcess | null = null;
  let serving: Serving | null = null;
  try {
    const stateDir = `${directory}/state`;
    serving = await startServing(
      { ...config, stateDir, cache: "ram", dht: false, lsd: false, portMapping: false },
      ports,
    );
    const file = `${directory}/clip.mp4`;
    await ports.files.writeFile(file, await loadClip());
    seeder = await startSeeder(ports, self, config.live ? broadcastFlags(file, directory) : seedFlags(file));
    const seed = await seederLine(seeder);
    print(readyLine(serving, config.logFormat));
    const peer = "peers" in seed ? seed.peers : seed.peer;
    const magnet = `magnet:?xt=urn:btih:${seed.infohash}&dn=${encodeURIComponent(seed.name)}&x.pe=${peer}`;
    const start = (path: string) => `${serving!.baseUrl}/engine/${path}?magnet=${encodeURIComponent(magnet)}`;
    const urls = { ts: start("getstream"), hls: start("manifest.m3u8") };
    print(`MPEG TS: ${urls.ts}`);
    print(`HLS:     ${urls.hls}`);
    if (config.once) return await (config.live ? watchOnce(urls.ts) : playOnce(urls));
    print(`Open one of them in a player (mpv '…', vlc '…'); Ctrl-C ends the demo.`);
    await showProgress(urls.ts, stopped);
    return 0;
  } finally {
    seeder?.kill();
    await serving?.stop();
    await seeder?.exited;
    await ports.files.remove(directory).catch(() => {});
  }
}

const seedFlags = (file: string) => ["seed", "--file", file];

const broadcastFlags = (file: string, directory: string) => [
  ...["broadcast", "--source", file, "--name", "demo", "--json", "--no-dht", "--no-lsd"],
  ...["--state-dir", `${directory}/broadcast`],
];

function startSeeder(ports: Ports, self: readonly string[], flags: readonly string[]): Promise<ChildProcess> {
  const args = [...flags, "--peer-host", "127.0.0.1", "--peer-port", "0", "--log-level", "error"];
  return ports.processes.spawn(self[0]!, [...self.slice(1), ...args]);
}

async function seederLine(seeder: ChildProcess): Promise<SeedLine | BroadcastFacts> {
  void forward(seeder.stderr);
  const timer = setTimeout(() => seeder.kill("SIGKILL"), SEEDER_START_MS);
  const reader = seeder.stdout.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    while (!text.includes("\n") && text.length < MAX_LINE_CHARS) {
      const { done, value } = await reader.read();
      if (done) break;
      text += decoder.decode(value, { stream: true });
    }
    return JSON.parse(text.slice(0, text.indexOf("\n"))) as SeedLine | BroadcastFacts;
  } catch (cause) {
    throw new MillraceError("unavailable", "the demo's second process did not start", { cause });
  } finally {
    clearTimeout(timer);
    reader.releaseLock();
    // Keep reading, or later output would fill the pipe.
    void forward(seeder.stdout, () => {});
  }
}

async function forward(
  stream: ReadableStream<Uint8Array>,
  to: (chunk: Uint8Array) => void = (chunk) => process.stderr.write(chunk),
): Promise<void> {
  for await (const chunk of stream) to(chunk);
}

async function watchOnce(tsUrl: string): Promise<number> {
  try {
    const { bytes, packets, pids, pesPackets } = await watchTs(tsUrl, WATCHED_MS);
    print(`MPEG TS: ${bytes} bytes live, ${packets} packets on ${pids} PIDs, ${pesPackets} access units: good`);
    return 0;
  } catch (error) {
    complain(`millrace: the demo failed: ${(error as Error).message}`);
    return 1;
  }
}

async function playOnce(urls: { ts: string; hls: string }): Promise<number> {
  try {
    const ts = await downloadTs(urls.ts);
    print(`MPEG TS: ${ts.bytes} bytes, ${ts.packets} packets on ${ts.pids} PIDs, ${ts.pesPackets} access units: good`);
    const hls = await downloadHls(urls.hls);
    print(`HLS:     ${hls.bytes} bytes in ${hls.segments} segments, ${hls.pesPackets} access units: good`);
    return 0;
  } catch (error) {
    complain(`millrace: the demo failed: ${(error as Error).message}`);
    return 1;
  }
}

/** Keeps one session on the clip and shows its progress until `stopped` resolves. */
async function showProgress(tsUrl: string, stopped: Promise<void>): Promise<void> {
  const over = new AbortController();
  void stopped.then(() => over.abort());
  const ask = async (url: string) => {
    const response = await fetch(url, { signal: AbortSignal.any([over.signal, AbortSignal.timeout(10_000)]) });
    return (await response.json()) as { response: Record<string, unknown> | null; error: string | null };
  };
  const terminal = process.stdout.isTTY === true;
  let last = "";
  let statUrl: string | null = null;
  while (!over.signal.aborted) {
    try {
      statUrl ??= String((await ask(`${tsUrl}&format=json&pid=demo`)).response?.["stat_url"] ?? "") || null;
      const stat = statUrl === null ? null : (await ask(statUrl)).response;
      if (stat === null) statUrl = null;
      else last = progress(stat, last, terminal);
    } catch {
      statUrl = null;
    }
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, PROGRESS_MS);
      void stopped.then(() => (clearTimeout(timer), resolve()));
    });
  }
  if (terminal) print("");
}

/** Shows the progress line: rewritten on a terminal, elsewhere printed when it changes. Returns the line. */
function progress(stat: Record<string, unknown>, last: string, terminal: boolean): string {
  const line = `${stat["status"]}: ${stat["peers"]} peers, ${stat["speed_down"]} KB/s down, ` +
    `${stat["downloaded"]} bytes downloaded`;
  if (terminal) process.stdout.write(`\r\x1b[K${line}`);
  else if (line !== last) print(line);
  return line;
}
