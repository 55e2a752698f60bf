/**
 * Breaks the source of a broadcast in several ways for players that we didn't write, and prints how many pictures each of
 * them showed after that: `main.ts [PART OF A NAME]`. All kinds take eight minutes. Needs ffmpeg, GStreamer, VLC and Chromium.
 */
import { readFile } from "node:fs/promises";
import process from "node:process";
import { assertEquals } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { openSource } from "../../src/inputs/open-source.ts";
import { joinAsPlayer, openPlayerPage } from "../../test/browser/support.ts";
import { OPTIONS } from "../../test/inputs/support.ts";
import { serveEngine, temporaryDirectory } from "../../test/support/engine.ts";
import { run } from "../../test/support/process.ts";
import { bytesOf } from "../../test/support/ts-shapes.ts";
import { type GapPlayer, gstreamer, hlsJs, Shown, vlc } from "./players.ts";
import { clipFor, type GapShape, gapShapes } from "./shapes.ts";

/** Pictures after which a player plays, and the longest that is waited for that, ms. */
const BEGUN_PICTURES = 25;
const LONGEST_BEFORE_MS = 120_000;
/** Pictures after a break of the source that only a player shows that goes on: the others end 12 s later at most. */
const ENOUGH_PICTURES = 350;
/** How long a player may be behind the end of the source, ms. */
const LATE_MS = 40_000;

/** As the clip, but larger and with 44.1 kHz. */
async function otherClip(): Promise<Uint8Array> {
  const directory = await temporaryDirectory();
  const file = `${directory.path}/other.ts`;
  const { code, stderr } = await run("ffmpeg", [
    ...["-v", "error", "-f", "lavfi", "-i", "testsrc2=s=640x360:r=25:d=6", "-f", "lavfi", "-i", "sine=r=44100:d=6"],
    ...["-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-pix_fmt", "yuv420p", "-b:v", "400k"],
    ...["-c:a", "aac", "-f", "mpegts", file],
  ]);
  assertEquals([code, stderr], [0, ""]);
  const bytes = new Uint8Array(await readFile(file));
  await directory.remove();
  return bytes;
}

/** Sends the clip, and `shape` from the moment on in which `breaks` resolves. */
function inRealTime(shape: GapShape, breaks: Promise<void>): ReadableStream<Uint8Array> {
  const startMs = performance.now();
  let packets = clipFor(LONGEST_BEFORE_MS);
  let at = 0;
  let isBreaking = false;
  void breaks.then(() => isBreaking = true);
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (isBreaking && at > 0) {
        [packets, at, isBreaking] = [shape.from(packets[at - 1]!.atMs + 1), 0, false];
      }
      const from = at;
      while (at < packets.length && at === from) {
        await new Promise((resolve) => setTimeout(resolve, 40));
        while (at < packets.length && packets[at]!.atMs <= performance.now() - startMs) at++;
      }
      if (at === from) controller.close();
      else controller.enqueue(bytesOf(packets.slice(from, at)));
    },
  }, { highWaterMark: 0 });
}

const TS = "getstream";
const HLS = "manifest.m3u8";
/** Name, output that it plays, and the player. */
type Entry = readonly [name: string, path: string, player: GapPlayer];

/** Has `players` play a broadcast whose source breaks once all of them play. Returns a line of a table for each. */
async function play(shape: GapShape, players: readonly Entry[], origin: string): Promise<string[]> {
  const sender = await serveEngine();
  const viewer = await serveEngine({ startTimeoutMs: 60_000, allowOrigins: [origin] });
  const over = new AbortController();
  let playing: Promise<string>[] = [];
  try {
    let breakNow = () => {};
    const breaks = new Promise<void>((resolve) => breakNow = resolve);
    const { input } = await openSource(await loadPorts({ log: { level: "error" } }), "-", {
      ...OPTIONS,
      once: true,
      stdin: () => inRealTime(shape, breaks),
    });
    const broadcast = await sender.engine.broadcast({ input, name: "gaps", directory: null, bytesPerS: 25_000 });
    const magnet = `${broadcast.magnet}&x.pe=${sender.peer}`;
    await joinAsPlayer(viewer.url, magnet);
    const shown = players.map(() => new Shown());
    playing = players.map(([, path, player], i) => {
      const query = new URLSearchParams({ magnet, pid: `player${i}` });
      return player(`${viewer.url}/engine/${path}?${query}`, over.signal, shown[i]!);
    });
    await Promise.all(shown.map((one) => one.reached(BEGUN_PICTURES)));
    breakNow();
    const before = shown.map(({ pictures }) => pictures);
    await broadcast.done;
    // Those that are behind play on for a while; one that stopped is not awaited forever.
    const enough = shown.map((one, i) => one.reached(before[i]! + ENOUGH_PICTURES));
    const timer = setTimeout(() => over.abort(), LATE_MS);
    const late = new Promise((resolve) => over.signal.addEventListener("abort", resolve, { once: true }));
    await Promise.race([Promise.all(enough), late]);
    clearTimeout(timer);
    over.abort();
    const words = await Promise.all(playing);
    return players.map(([name], i) => {
      const after = shown[i]!.pictures - before[i]!;
      const pauseS = (shown[i]!.longestPauseMs / 1000).toFixed(1);
      return `${shape.name} | ${name} | ${after} pictures | ${pauseS} s | ${words[i]}`;
    });
  } finally {
    over.abort();
    await Promise.allSettled(playing);
    await viewer.close();
    await sender.close();
  }
}

const page = await openPlayerPage(() => false);
try {
  const wish = process.argv[2] ?? "";
  for (const shape of gapShapes(await otherClip()).filter(({ name }) => name.includes(wish))) {
    const players: Entry[] = [
      ["hls.js", HLS, hlsJs(page)],
      ["GStreamer, MPEG TS", TS, gstreamer],
      ["GStreamer, HLS", HLS, gstreamer],
      ["VLC, MPEG TS", TS, vlc],
      ["VLC, HLS", HLS, vlc],
    ];
    for (const line of await play(shape, players, page.origin)) console.log(line);
  }
} finally {
  await page.close();
}
