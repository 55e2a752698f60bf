/** A film of open groups of pictures, which Chromium's decoder cannot begin in the middle of: the page goes on, and says so. */
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { assertEquals, assertLess, assertMatch } from "@std/assert";
import type { Browser, Page } from "playwright-core";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { run } from "../support/process.ts";
import { until as untilBy } from "../support/until.ts";
import { launchChromium } from "./support.ts";

const FILM_S = 30;
/** Three starts of a decoder, on a busy machine, ms. */
const WAIT_MS = 90_000;
const until = (what: string, is: () => Promise<boolean>) => untilBy(what, is, WAIT_MS);

let seeder: SeededFiles;
let served: ServedEngine;
let browser: Browser;

before(async () => {
  const home = await temporaryDirectory();
  try {
    const path = `${home.path}/film.mp4`;
    const graphs = [`testsrc2=s=320x180:r=25:d=${FILM_S}`, `sine=440:r=48000:d=${FILM_S}`];
    const coder = [
      "-c:v",
      "libx264",
      "-preset",
      "ultrafast",
      "-x264-params",
      "b-pyramid=normal:open-gop=1:keyint=50:bframes=3",
    ];
    const inputs = graphs.flatMap((graph) => ["-f", "lavfi", "-i", graph]);
    const args = ["-nostdin", "-v", "error", ...inputs, "-pix_fmt", "yuv420p", ...coder, "-c:a", "aac", path];
    const { code, stderr } = await run("ffmpeg", args, { timeoutMs: 120_000 });
    assertEquals(code, 0, stderr);
    seeder = await seedFiles([{ path: "Open groups.mp4", bytes: new Uint8Array(await readFile(path)) }]);
  } finally {
    await home.remove();
  }
  served = await serveEngine();
  browser = await launchChromium();
});
after(async () => {
  await browser?.close();
  await served?.close();
  await seeder?.close();
});

const status = async (page: Page) => await page.locator(".status").textContent() ?? "";
const video = (page: Page) =>
  page.evaluate(() => {
    const { currentTime, playbackRate, paused } = document.querySelector("video")!;
    return { at: currentTime, rate: playbackRate, paused };
  });

test("the page goes on from where a film was that the browser cannot search, and says so", async () => {
  const page = await browser.newPage();
  try {
    await page.addInitScript(() =>
      addEventListener("play", (event) => (event.target as HTMLVideoElement).muted = true, true)
    );
    await page.goto(`${served.url}/#/play?q=${encodeURIComponent(seeder.magnet)}`);
    await until(
      "some seconds are played",
      async () => (await page.locator("video").count()) > 0 && (await video(page)).at > 5,
    );
    assertEquals(await status(page), "");
    const before = (await video(page)).at;
    await page.evaluate(() => document.querySelector("video")!.currentTime = 25);
    await until("it is said", async () => await status(page) !== "");
    assertMatch(await status(page), /cannot search in this film.*VLC/);
    await until("it goes on", async () => (await video(page)).at > before + 1 && (await video(page)).rate === 1);
    const { at, paused } = await video(page);
    assertLess(at, 24);
    assertEquals(paused, false);
  } finally {
    await page.close();
  }
});

test("a film that the browser cannot search begins at its beginning where it was left off elsewhere", async () => {
  const page = await browser.newPage();
  try {
    await page.goto(`${served.url}/#/play?q=${encodeURIComponent(seeder.magnet)}&file=0&t=20`);
    await until(
      "it is said",
      async () => (await page.locator(".status").count()) > 0 && /cannot search/.test(await status(page)),
    );
    await until("it plays", async () => (await video(page)).at > 2);
    assertLess((await video(page)).at, 19);
  } finally {
    await page.close();
  }
});
