/**
 * Time to the first picture in players people use, over four seeders of 20 Mbit/s and 50 ms: mpv and VLC with the engine's
 * file, MPEG TS and HLS, hls.js in Chromium with its HLS; against libtorrent, tuned for streaming, that serves the raw file to
 * the same player (of raw files Chromium plays MP4 alone). All take turns in each round.
 *
 *   node scripts/bench/players.ts [rounds=5] [clip=mkv] [players=mpv,vlc,chromium] [contestant.mjs,...]
 *
 * Several contestants (bundles of contestant.ts, to compare two builds) take turns too. $OUTPUTS (file,ts,hls) picks outputs.
 * With $STAGES set it prints when each start reached which stage, ms.
 */
import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { type Browser, chromium } from "playwright-core";
import { ROOT } from "../support/files.ts";
import { commandOf } from "../support/runtimes.ts";
import { stop } from "./children.ts";
import { bundle, type Contender, streamers } from "./contenders.ts";
import { Swarm } from "./far-swarm.ts";
import { Serving, within } from "./serving.ts";
import { compare, makeClips } from "./stream.ts";

/** A player that shows no picture within this fails, ms. */
const STEP_MS = 30_000;
/** VLC refuses to run as root. */
const UNPRIVILEGED = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

const RIVAL = "libtorrent, raw file";
const SHOWS_STAGES = process.env["STAGES"] !== undefined;

/** Opens an address and resolves once the first picture is shown. With `say` it reports its stages, Unix ms. */
type Player = (url: string, work: string, say?: (stage: string, atMs: number) => void) => Promise<void>;

/** Starts a program and waits until it writes what `shows` matches, then ends it. */
async function untilSays(command: readonly string[], shows: RegExp): Promise<void> {
  const child = spawn(command[0]!, command.slice(1), { stdio: ["ignore", "pipe", "pipe"] });
  try {
    await within(
      `a picture by ${command.find((word) => !word.startsWith("-"))}`,
      new Promise<void>((resolve, reject) => {
        let text = "";
        const look = (chunk: Uint8Array) => {
          text += new TextDecoder().decode(chunk);
          if (shows.test(text)) resolve();
        };
        child.stdout.on("data", look);
        child.stderr.on("data", look);
        child.once("error", reject);
        child.once("exit", (code) => reject(new Error(`it ended with ${code}: ${text.slice(-300)}`)));
      }),
      STEP_MS,
    );
  } finally {
    await stop(child);
  }
}

const mpv: Player = (url) =>
  // "first video frame after restart shown" is what mpv logs when the picture stands.
  untilSays(["mpv", "--no-config", "--vo=null", "--ao=null", "--msg-level=cplayer=debug", url], /first video frame/);

const vlc: Player = (url, work) => {
  const quiet = ["--no-media-library", "--no-audio", "--vout", "dummy", "--no-color", "-vv"];
  const command = ["env", `HOME=${work}`, "cvlc", "-I", "dummy", ...quiet, url];
  return untilSays(process.getuid?.() === 0 ? [...UNPRIVILEGED, ...command] : command, /Received first picture/);
};

/** A page with hls.js, of the origin that the engine allows. */
async function openPage(): Promise<{ origin: string; close(): void }> {
  const library = readFileSync(path.join(ROOT, "node_modules/hls.js/dist/hls.min.js"));
  const server = createServer((request, response) => {
    if (request.url === "/hls.js") response.setHeader("content-type", "text/javascript").end(library);
    else {
      response.setHeader("content-type", "text/html")
        .end("<!doctype html><video muted></video><script src=/hls.js></script>");
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() };
}

/** Chromium with `browser`: hls.js for playlists, the video element for files. The page is open before the clock starts. */
function chromiumPlayer(browser: Browser, origin: string): { open(): Promise<Player> } {
  return {
    async open() {
      const page = await browser.newPage();
      await page.goto(origin);
      return async (url, _work, say) => {
        const picture = page.evaluate((address) => {
          const video = document.querySelector("video")!;
          const stages: [stage: string, atMs: number][] = [];
          const mark = (stage: string, ms = performance.now()) => stages.push([stage, performance.timeOrigin + ms]);
          mark("player told");
          return new Promise<{ trouble: string; stages: typeof stages }>((settle) => {
            const resolve = (trouble: string) => settle({ trouble, stages });
            video.requestVideoFrameCallback(() => {
              mark("picture");
              resolve("");
            });
            video.onloadeddata = () => mark("decoded");
            video.onerror = () => resolve(video.error?.message ?? "error");
            // deno-lint-ignore no-explicit-any -- a script of the page
            const Hls = (globalThis as any).Hls;
            if (address.endsWith(".m3u8")) {
              const hls = new Hls();
              // deno-lint-ignore no-explicit-any
              hls.on(Hls.Events.ERROR, (_: unknown, data: any) => data.fatal && resolve(data.details));
              // deno-lint-ignore no-explicit-any
              hls.on(Hls.Events.MANIFEST_LOADED, (_: unknown, { stats }: any) => {
                mark("playlist requested", stats.loading.start);
                mark("playlist", stats.loading.end);
              });
              // deno-lint-ignore no-explicit-any
              hls.on(Hls.Events.FRAG_LOADED, (_: unknown, { frag: { sn, stats } }: any) => {
                if (sn !== 0) return;
                mark("segment requested", stats.loading.start);
                mark("its first byte", stats.loading.first);
                mark(`its last byte of ${stats.total}`, stats.loading.end);
              });
              // deno-lint-ignore no-explicit-any
              hls.on(Hls.Events.FRAG_PARSED, (_: unknown, { frag }: any) => frag.sn === 0 && mark("remuxed"));
              // deno-lint-ignore no-explicit-any
              hls.on(Hls.Events.FRAG_BUFFERED, (_: unknown, { frag }: any) => frag.sn === 0 && mark("appended"));
              hls.loadSource(address);
              hls.attachMedia(video);
            } else video.src = address;
            void video.play();
          });
        }, url);
        const { trouble, stages } = await within("a picture in Chromium", picture, STEP_MS);
        for (const [stage, atMs] of stages) say?.(stage, atMs);
        await page.close();
        if (trouble !== "") throw new Error(trouble);
      };
    },
  };
}

/** libtorrent with the file, then outputs of `ours`. */
function contenders(builds: readonly string[], outputs: readonly string[], origin: string): Contender[] {
  const rival = streamers(builds[0]!).find(({ name }) => name === "libtorrent");
  if (rival === undefined) throw new Error("not installed: libtorrent (Debian: python3-libtorrent)");
  const own = outputs.flatMap((output) =>
    builds.map((build): Contender => ({
      name: builds.length === 1 ? output : `${output}, ${path.basename(path.dirname(build))}`,
      command: (torrent, directory) => [
        ...["env", `OUTPUT=${output}`, `ALLOW_ORIGIN=${origin}`, ...SHOWS_STAGES ? ["STAGES=1"] : []],
        ...commandOf("node"),
        ...[build, "stream", torrent, directory],
      ],
    }))
  );
  return [{ ...rival, name: RIVAL }, ...own];
}

function shownStages(name: string, stages: readonly (readonly [stage: string, ms: number])[]): string {
  const inOrder = [...stages].sort(([, a], [, b]) => a - b);
  return `${name}: ${inOrder.map(([stage, ms]) => `${ms.toFixed(0)} ${stage}`).join(", ")}`;
}

const median = (list: readonly number[]) => [...list].sort((a, b) => a - b)[list.length >> 1]!;

const [rounds = "5", kind = "mkv", names = "mpv,vlc,chromium", built] = process.argv.slice(2);
const work = mkdtempSync(path.join(process.env["BENCH_DIR"] ?? os.tmpdir(), "players-"));
const page = await openPage();
let browser: Browser | null = null;
try {
  const builds = built?.split(",") ?? [await bundle("scripts/bench/contestant.ts", work)];
  const clips = makeClips(work);
  const home = path.join(work, "home");
  mkdirSync(home);
  chmodSync(work, 0o755);
  chmodSync(home, 0o777);
  for (const name of names.split(",")) {
    const isBrowser = name === "chromium";
    if (isBrowser) {
      browser = await chromium.launch({
        executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
        args: [
          "--no-sandbox",
          "--disable-gpu",
          "--disable-background-networking",
          "--autoplay-policy=no-user-gesture-required",
        ],
      });
    }
    const clip = clips.find((file) => path.extname(file) === `.${kind}`)!;
    const possible = !isBrowser ? ["file", "ts", "hls"] : kind === "mp4" ? ["file", "hls"] : ["hls"];
    const outputs = process.env["OUTPUTS"]?.split(",") ?? possible;
    const who = contenders(builds, possible.filter((output) => outputs.includes(output)), page.origin)
      .filter((one) => one.name !== RIVAL || possible.includes("file"));
    const bestRival: number[] = [];
    const lines = await compare(
      `${name}, ${path.extname(clip).slice(1).toUpperCase()}: first picture`,
      ["seconds (median)", "worst", "÷ libtorrent"],
      who,
      Number(rounds),
      () => Swarm.open(clip, work),
      async (one, swarm) => {
        const player = isBrowser ? await chromiumPlayer(browser!, page.origin).open() : name === "vlc" ? vlc : mpv;
        const serving = await Serving.open(one, swarm, work);
        try {
          const stages: [stage: string, ms: number][] = [];
          await player(serving.url, home, (stage, atMs) => {
            stages.push([stage, atMs - performance.timeOrigin - serving.beganMs]);
          });
          const seconds = (performance.now() - serving.beganMs) / 1000;
          if (one.name === RIVAL) bestRival.push(seconds);
          if (SHOWS_STAGES) console.log(shownStages(one.name, [...serving.stages, ...stages]));
          return seconds;
        } finally {
          await serving.close();
        }
      },
      (list) => [
        median(list).toFixed(2),
        Math.max(...list).toFixed(2),
        bestRival.length === 0 ? "–" : (median(list) / median(bestRival)).toFixed(2),
      ],
    );
    console.log(lines.join("\n"));
  }
} finally {
  await browser?.close();
  page.close();
  rmSync(work, { recursive: true, force: true });
}
