/** A series in full screen: one episode after the other, and everything within reach of a remote's five keys. */
import { after, before, test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import type { Browser, Page } from "playwright-core";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine } from "../support/engine.ts";
import { until } from "../support/until.ts";
import { launchChromium } from "./support.ts";
import { barriers, frames, makeFilm, shot } from "./webui-support.ts";

let seeder: SeededFiles;
let served: ServedEngine;
let browser: Browser;
let page: Page;
const troubles: string[] = [];
const starts: URL[] = [];

before(async () => {
  const bytes = await makeFilm(90, { languages: ["eng", "spa"], size: "320x180" });
  const srt = (text: string) => new TextEncoder().encode(`1\n00:00:00,100 --> 00:00:59,000\n${text}\n`);
  seeder = await seedFiles(
    [1, 2, 3].flatMap((n) => [
      { path: `Episode ${n}.mp4`, bytes },
      { path: `Episode ${n}.en.srt`, bytes: srt(`Ahoy ${n}`) },
      { path: `Episode ${n}.es.srt`, bytes: srt(`Hola ${n}`) },
    ]),
    { name: "Series" },
  );
  served = await serveEngine();
  browser = await launchChromium();
  page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.on("console", (message) => {
    // What was still being loaded when a session ended is no trouble.
    if (message.type() === "error" && !/net::ERR/.test(message.text())) troubles.push(message.text());
  });
  page.on("pageerror", (error) => troubles.push(String(error)));
  page.on("request", (request) => {
    if (request.url().includes("/engine/manifest.m3u8")) starts.push(new URL(request.url()));
  });
  await page.goto(`${served.url}/#/play?${new URLSearchParams({ q: seeder.magnet })}`);
  await page.locator(".files button").first().click();
  await until("pictures are shown", async () => await frames(page) > 10);
});
after(async () => {
  await browser?.close();
  await served?.close();
  await seeder?.close();
});

const focused = () => page.evaluate(() => document.activeElement!.textContent || document.activeElement!.tagName);
const subtitle = () =>
  page.evaluate(() =>
    [...document.querySelector("video")!.textTracks].filter(({ mode }) => mode === "showing")
      .flatMap(({ activeCues }) => [...activeCues ?? []].map((cue) => (cue as VTTCue).text)).join()
  );
const press = (...keys: string[]) =>
  keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());
/** Moves right until what has the focus begins with `words`. */
async function moveTo(words: string): Promise<void> {
  for (let n = 0; n < 12 && !(await focused()).startsWith(words); n++) await press("ArrowRight");
  assert((await focused()).startsWith(words), await focused());
}

test("subtitles and sound are chosen in full screen with four arrows and OK, and the console stays empty", async () => {
  await page.waitForFunction(() => document.querySelector("video")!.textTracks.length === 2);
  await press("f");
  await page.waitForFunction(() => document.fullscreenElement?.className === "theatre");
  await press("ArrowUp");
  assertEquals(await focused(), "Pause");
  await moveTo("Subtitles");
  await press("Enter");
  await until("the present choice has the focus", async () => await focused() === "Off");
  await press("ArrowDown");
  await shot(page, "full-screen-menu");
  await moveTo("English");
  await press("ArrowDown", "Enter");
  await until("they are shown", async () => await subtitle() === "Hola 1");
  assertEquals(await barriers(page), []);
  // What is left alone for a while makes room for the picture, on which OK pauses.
  await page.waitForSelector(".theatre.idle");
  assertEquals(await focused(), "VIDEO");
  await press("Enter");
  await page.waitForFunction(() => document.querySelector("video")?.paused);
  await press("Enter");
  await page.waitForFunction(() => !document.querySelector("video")!.paused);
  assertEquals(troubles, []);
});

test("the next episode goes on in full screen, with volume, speed, subtitles and its beginning fetched ahead", async () => {
  assertEquals(starts.at(-1)!.searchParams.get("next_file_indexes"), "3");
  await page.evaluate(() => {
    const video = document.querySelector("video")!;
    video.volume = 0.4;
    video.playbackRate = 1.5;
  });
  await page.waitForFunction(() => document.querySelector("video")?.defaultPlaybackRate === 1.5);
  await page.evaluate(() => document.querySelector("video")!.dispatchEvent(new Event("ended")));
  await page.waitForFunction(() => document.querySelector("h1")?.textContent === "Episode 2.mp4");
  assertEquals(starts.at(-1)!.searchParams.get("next_file_indexes"), "6");
  await until("its subtitles are shown", async () => await subtitle() === "Hola 2");
  await page.waitForFunction(() => (document.querySelector("video")?.currentTime ?? 0) > 0.5);
  const { full, volume, rate } = await page.evaluate(() => {
    const { volume, playbackRate: rate } = document.querySelector("video")!;
    return { full: document.fullscreenElement?.className, volume, rate };
  });
  assert(full?.startsWith("theatre"), full);
  assertEquals([volume, rate], [0.4, 1.5]);
  await shot(page, "full-screen-next");
  await page.waitForSelector(".theatre.idle");
  await shot(page, "full-screen-idle");
  assertEquals(await focused(), "VIDEO");
  await press("ArrowUp");
  await moveTo("Next file");
  await press("Enter");
  await page.waitForFunction(() => document.querySelector("h1")?.textContent === "Episode 3.mp4");
  await press("f");
  await page.waitForFunction(() => document.fullscreenElement === null);
  assertEquals(troubles, []);
});

test("a file of subtitles that is dropped on the player is shown, and one that has none is named", async () => {
  const drop = (name: string, content: string) =>
    page.evaluate(([name, content]) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([content!], name!));
      document.querySelector("video")!.dispatchEvent(
        new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }),
      );
    }, [name, content]);
  const at = await page.evaluate(() => location.hash);
  await drop("Own.srt", "1\n00:00:00,000 --> 01:00:00,000\nMy own words\n");
  await until("the own words are shown", async () => await subtitle() === "My own words");
  assertEquals(await page.evaluate(() => location.hash.split("&t=")[0]), at.split("&t=")[0]);
  await drop("Empty.vtt", "WEBVTT\n");
  await page.locator("[role=alert]", { hasText: "“Empty.vtt” has no subtitles" }).waitFor();
  assertEquals(await subtitle(), "My own words");
  // Nobody drops with a remote: the menu has a button.
  await page.locator(".menu > button", { hasText: "Subtitles" }).click();
  await page.setInputFiles(".menu input[type=file]", {
    name: "Other.vtt",
    mimeType: "text/vtt",
    buffer: Buffer.from("WEBVTT\n\n00:00.000 --> 59:00.000\nOther words\n"),
  });
  await until("the other words are shown", async () => await subtitle() === "Other words");
  assertEquals(await barriers(page), []);
  await shot(page, "own-subtitles");
  await page.keyboard.press("Escape");
});

test("a paused film keeps its session for an hour, and goes on by itself where the session ended nevertheless", async () => {
  const kept = page.waitForRequest(/set_player_activity_timeout&timeout=3600/);
  await page.waitForFunction(() => (document.querySelector("video")?.currentTime ?? 0) > 1);
  await page.evaluate(() => document.querySelector("video")!.pause());
  const stop = (await kept).url().replace(/\?.*/, "?method=stop");
  const before = await page.evaluate(() => document.querySelector("video")!.currentTime);
  await fetch(stop);
  await page.waitForFunction(() => /session ended/.test(document.querySelector(".status")!.textContent!));
  await page.evaluate(() => void document.querySelector("video")!.play());
  await page.waitForFunction((from) => document.querySelector("video")!.currentTime > from + 0.5, before);
  assertEquals(await page.locator(".status.trouble").count(), 0);
});
