/** hls.js in headless Chromium plays what a browser can decode: to the end, with seeks, without a dropped segment. */
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import { type Browser, chromium, type Page } from "playwright-core";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine } from "../support/engine.ts";
import { clip, PLAYABLE } from "../support/fixtures.ts";

/** What Debian's Chromium decodes from MPEG TS: H.264 with AAC or MP3. */
const DECODABLE = PLAYABLE.filter((name) => !/hevc|mpeg2|ac3|eac3/.test(name));

let seeder: SeededFiles;
let served: ServedEngine;
let browser: Browser;
let page: Page;
let pages: Server;

before(async () => {
  seeder = await seedFiles(DECODABLE.map((name) => ({ path: name, bytes: clip(name) })), { name: "fixtures" });
  served = await serveEngine();
  const library = await readFile(new URL("../../node_modules/hls.js/dist/hls.min.js", import.meta.url));
  // Served from another origin than the engine's, as a user's own page would be: CORS has to be right.
  pages = createServer((request, response) => {
    if (request.url === "/hls.js") response.setHeader("content-type", "text/javascript").end(library);
    else {response.setHeader("content-type", "text/html").end(
        "<!doctype html><video muted></video><script src=/hls.js></script>",
      );}
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => pages.once("listening", resolve));
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--autoplay-policy=no-user-gesture-required",
    ],
  });
  page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${(pages.address() as AddressInfo).port}/`);
});
after(async () => {
  await browser?.close();
  pages?.close();
  await served?.close();
  await seeder?.close();
});

interface Outcome {
  readonly ended: boolean;
  readonly time: number;
  readonly duration: number;
  readonly errors: string[];
  readonly seeks: number[];
  readonly decoded: number;
}

/** Plays `url` at four times the speed, seeking to each of `seeks` (fractions) on the way, to the end. */
function play(url: string, seeks: number[]): Promise<Outcome> {
  return page.evaluate(async ([address, fractions]) => {
    // deno-lint-ignore no-explicit-any
    const Hls = (globalThis as any).Hls;
    const old = document.querySelector("video")!;
    const video = document.createElement("video");
    video.muted = true;
    old.replaceWith(video);
    const errors: string[] = [];
    const hls = new Hls({ enableWorker: false });
    // deno-lint-ignore no-explicit-any
    hls.on(Hls.Events.ERROR, (_: unknown, data: any) => errors.push(`${data.details}${data.fatal ? " (fatal)" : ""}`));
    const event = (name: string) =>
      new Promise<void>((resolve, reject) => {
        const timer = setTimeout(
          () => reject(new Error(`no ${name} within 8 s at ${video.currentTime}: ${errors.join()}`)),
          8_000,
        );
        video.addEventListener(name, () => {
          clearTimeout(timer);
          resolve();
        }, { once: true });
      });
    const loaded = event("loadeddata");
    hls.loadSource(address);
    hls.attachMedia(video);
    await loaded;
    const reached: number[] = [];
    video.playbackRate = 4;
    await video.play();
    for (const fraction of fractions) {
      video.pause();
      const seeked = event("seeked");
      video.currentTime = video.duration * fraction;
      await seeked;
      reached.push(video.currentTime / video.duration);
      await video.play();
    }
    const ended = event("ended");
    await ended;
    const outcome = {
      ended: video.ended,
      time: video.currentTime,
      duration: video.duration,
      errors,
      seeks: reached,
      decoded: video.getVideoPlaybackQuality().totalVideoFrames,
    };
    hls.destroy();
    return outcome;
  }, [url, seeks] as const);
}

const manifest = (name: string) => {
  const query = new URLSearchParams({ magnet: seeder.magnet, _idx: String(DECODABLE.indexOf(name)), pid: "browser" });
  return `${served.url}/engine/manifest.m3u8?${query}`;
};

/** Runs `check` on every fixture and reports all that fail, not only the first. */
async function onEvery(check: (name: string) => Promise<void>): Promise<void> {
  const failures: string[] = [];
  for (const name of DECODABLE) {
    try {
      await check(name);
    } catch (error) {
      failures.push(`${name}: ${(error as Error).message.split("\n").slice(0, 3).join(" ")}`);
    }
  }
  assertEquals(failures, []);
}

test("hls.js plays every fixture that Chromium decodes to the end, without an error", async () => {
  assert(DECODABLE.length > 20, "the list of fixtures is too short to be right");
  await onEvery(async (name) => {
    const outcome = await play(manifest(name), []);
    assertEquals([outcome.ended, outcome.errors], [true, []]);
    assertLess(Math.abs(outcome.time - outcome.duration), 0.3);
    if (!/audio-only/.test(name)) assert(outcome.decoded > 50, `${outcome.decoded} frames`);
  });
});

test("hls.js seeks forwards and backwards in every fixture and goes on to the end", async () => {
  await onEvery(async (name) => {
    const outcome = await play(manifest(name), [0.6, 0.1, 0.9]);
    assertEquals([outcome.ended, outcome.errors], [true, []]);
    for (const [i, wanted] of [0.6, 0.1, 0.9].entries()) {
      assertLess(Math.abs(outcome.seeks[i]! - wanted), 0.05, `seek ${i}`);
    }
  });
});
