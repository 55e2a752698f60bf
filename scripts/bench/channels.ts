/**
 * Channels that come by HTTP: `node scripts/bench/channels.ts [rounds=3] [runtime…]`. Runs the built program
 * (`scripts/build.ts`); the channels are a picture of 4 Mb/s by ffmpeg, sent by this process at its own speed.
 * - How long a channel takes to its first byte, beside the same address without the engine, in turns. The provider waits before it
 *   sends.
 * - Processor time of the engine while 100 clients watch one such channel, beside 100 of a broadcast of the same picture, in turns;
 *   and how many connections the provider had.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { TsLooper } from "../../src/inputs/ts-looper.ts";
import { commandOf, DENO_HEAP_FLAGS, isRuntime, type Runtime } from "../support/runtimes.ts";
import { line, median, start, stop, usage } from "./children.ts";

const TOKEN = "0123456789abcdef".repeat(4);
const PROGRAM = path.join(import.meta.dirname!, "../../dist/millrace.mjs");
const CLIP_S = 20;
const VIEWERS = 100;
const WATCH_MS = 20_000;
/** What the provider waits before its first byte, ms. */
const WAITS_MS = [50, 300, 1000];
const SWITCHES = 15;
const STEP_MS = 40;

const rounds = Number(process.argv[2] ?? 3);
const runtimes = process.argv.slice(3).filter(isRuntime);
const work = mkdtempSync(path.join(process.env["BENCH_DIR"] ?? os.tmpdir(), "millrace-channels-"));

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function makeClip(): Uint8Array {
  const file = path.join(work, "clip.ts");
  const picture = ["-f", "lavfi", "-i", `testsrc2=size=1280x720:rate=25:duration=${CLIP_S}`];
  const sound = ["-f", "lavfi", "-i", `sine=frequency=440:duration=${CLIP_S}`];
  const coding = ["-c:v", "libx264", "-preset", "veryfast", "-g", "25", "-b:v", "3500k", "-c:a", "aac", "-b:a", "128k"];
  const muxing = ["-muxrate", "4000k", "-f", "mpegts", file];
  execFileSync("ffmpeg", ["-v", "error", "-y", ...picture, ...sound, ...coding, ...muxing]);
  const bytes = readFileSync(file);
  return bytes.subarray(0, bytes.length - bytes.length % 188);
}

/** A provider: `/WAIT/NAME` sends the picture after so many ms, beginning with two seconds of it. */
async function provide(clip: Uint8Array) {
  const opened = new Map<string, number>();
  const perMs = clip.length / CLIP_S / 1000;
  const server = createServer((request, response) => {
    opened.set(request.url!, (opened.get(request.url!) ?? 0) + 1);
    let timer: ReturnType<typeof setInterval> | undefined;
    response.on("close", () => clearInterval(timer));
    setTimeout(() => {
      const looper = new TsLooper();
      const begunMs = performance.now() - 2000;
      let sent = 0;
      const send = () => {
        const due = Math.floor((performance.now() - begunMs) * perMs / 188) * 188;
        while (sent < due) {
          const at = sent % clip.length;
          const part = clip.slice(at, Math.min(clip.length, at + due - sent));
          response.write(looper.push(part).slice());
          sent += part.length;
          if (sent % clip.length === 0) response.write(looper.endPass());
        }
      };
      send();
      timer = setInterval(send, STEP_MS);
    }, Number(request.url!.split("/")[1]));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, opened, server };
}

/** Reads an address until `until` resolves or, without it, to the first byte. */
function watch(url: string, until?: Promise<unknown>, took: (bytes: number) => void = () => {}): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent: false }, (response) => {
      const leave = () => {
        response.destroy();
        resolve();
      };
      if (response.statusCode === 302) {
        response.destroy();
        return watch(new URL(response.headers.location!, url).href, until, took).then(resolve, reject);
      }
      if (response.statusCode !== 200) return reject(new Error(`${url}: ${response.statusCode}`));
      void until?.then(leave);
      response.on("data", (chunk: Uint8Array) => {
        took(chunk.length);
        if (until === undefined) leave();
      });
      response.on("error", () => resolve());
    });
    request.on("error", reject);
  });
}

async function measure(runtime: Runtime, clip: Uint8Array): Promise<void> {
  const provider = await provide(clip);
  const command = [
    ...commandOf(runtime),
    ...(runtime === "deno" ? ["run", "-A", "--no-check", "-q", DENO_HEAP_FLAGS] : []),
  ];
  const quiet = (name: string) => [
    ...["--peer-port", "0", "--no-dht", "--no-lsd"],
    ...["--state-dir", path.join(work, name), "--cache-dir", path.join(work, name, "cache")],
  ];
  const child = start([...command, PROGRAM, ...quiet(runtime), "--http-port", "0", "--access-token", TOKEN]);
  const sender = start([
    ...commandOf("node"),
    ...[
      PROGRAM,
      "broadcast",
      ...quiet(`${runtime}-sender`),
      "--json",
      "--name",
      "picture",
      "--source",
      `${provider.base}/0/source`,
    ],
  ]);
  try {
    const base = (await line(child, "ready ", 30_000)).split(" ")[1]!.replace(/\/$/, "");
    const channel = (name: string, viewer: string) =>
      `${base}/engine/getstream?${new URLSearchParams({
        direct_url: `${provider.base}/${name}`,
        pid: viewer,
        token: TOKEN,
      })}`;
    for (const waitMs of WAITS_MS) {
      const [alone, through]: [number[], number[]] = [[], []];
      const cpuBefore = usage(child.pid!).cpuSeconds;
      for (let at = 0; at < SWITCHES; at++) {
        let begun = performance.now();
        await watch(`${provider.base}/${waitMs}/alone`);
        alone.push(performance.now() - begun);
        begun = performance.now();
        await watch(channel(`${waitMs}/${at}`, "switcher"));
        through.push(performance.now() - begun);
      }
      const [a, b] = [median(alone), median(through)];
      const cpuMs = (usage(child.pid!).cpuSeconds - cpuBefore) / SWITCHES * 1000;
      const cells = [
        `${runtime}, ${waitMs} ms`,
        a.toFixed(0),
        b.toFixed(0),
        (b / a).toFixed(2),
        Math.max(...through).toFixed(0),
        cpuMs.toFixed(0),
      ];
      console.log(`| ${cells.join(" | ")} |`);
    }
    const { magnet, peers } = JSON.parse(await line(sender, "{", 60_000));
    const from = magnet.includes("x.pe=") ? "" : `&x.pe=127.0.0.1:${String(peers ?? "").split(":").pop()}`;
    const broadcast = (viewer: string) =>
      `${base}/engine/getstream?${new URLSearchParams({ magnet: magnet + from, pid: viewer, token: TOKEN })}`;
    const cost: Record<string, number[]> = { HTTP: [], broadcast: [] };
    for (let round = 0; round < rounds; round++) {
      for (const kind of ["HTTP", "broadcast"] as const) {
        await sleep(11_000);
        const watched = `/0/watched-${round}`;
        let leave = () => {};
        const until = new Promise<void>((resolve) => leave = resolve);
        const address = kind === "HTTP" ? (name: string) => channel(watched.slice(1), name) : broadcast;
        let bytes = 0;
        const watching = Array.from(
          { length: VIEWERS },
          (_, at) => watch(address(`viewer ${at}`), until, (more) => bytes += more),
        );
        await sleep(10_000);
        const begun = usage(child.pid!).cpuSeconds;
        bytes = 0;
        await sleep(WATCH_MS);
        const cpu = usage(child.pid!).cpuSeconds - begun;
        const megabytes = bytes / 1e6;
        leave();
        await Promise.all(watching);
        cost[kind]!.push(cpu / megabytes);
        const cells = [
          `${runtime}, ${kind}`,
          (cpu / WATCH_MS * 100_000).toFixed(0),
          (megabytes * 8000 / WATCH_MS / VIEWERS).toFixed(2),
          (cpu / megabytes * 1000).toFixed(2),
          kind === "HTTP" ? provider.opened.get(watched) ?? 0 : "–",
        ];
        console.log(`| ${cells.join(" | ")} |`);
      }
    }
    const ratio = median(cost["HTTP"]!) / median(cost["broadcast"]!);
    console.log(`${runtime}: per MB, HTTP costs ${ratio.toFixed(2)} of a broadcast`);
  } finally {
    await stop(child);
    await stop(sender);
    provider.server.closeAllConnections();
    provider.server.close();
  }
}

try {
  const clip = makeClip();
  console.log(`picture: ${(clip.length * 8 / CLIP_S / 1e6).toFixed(2)} Mb/s`);
  console.log(
    "\n| provider waits | alone, ms | through the engine, ms | ratio | longest, ms | processor per start, ms |\n| --- | --- | --- | --- | --- | --- |",
  );
  console.log(
    "| 100 viewers of | processor, % of a core | Mb/s for each | processor, ms per MB | connections of the provider |\n| --- | --- | --- | --- | --- |",
  );
  for (const runtime of runtimes.length > 0 ? runtimes : ["node", "deno", "bun"] as const) await measure(runtime, clip);
} finally {
  rmSync(work, { recursive: true, force: true });
}
