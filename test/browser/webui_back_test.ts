/** Ways back in the page: the browser's own, the address, a reload, a link that was copied. */
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Browser, Page } from "playwright-core";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { until } from "../support/until.ts";
import { launchChromium } from "./support.ts";
import { frames, shot } from "./webui-support.ts";

let seeder: SeededFiles;
let served: ServedEngine;
let browser: Browser;
let page: Page;
const troubles: string[] = [];

before(async () => {
  const bytes = clip("mp4-30fps.mp4");
  seeder = await seedFiles([1, 2, 3].map((n) => ({ path: `Part ${n}.mp4`, bytes })), { name: "Season" });
  served = await serveEngine();
  const query = new URLSearchParams({ method: "get_media_files", magnet: seeder.magnet });
  const known = fetch(`${served.url}/server/api?${query}`);
  browser = await launchChromium();
  page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.on("pageerror", (error) => troubles.push(String(error)));
  await known;
});
after(async () => {
  await browser?.close();
  await served?.close();
  await seeder?.close();
});

const heading = (at = page) => at.locator("h1").textContent();
const focused = (at = page) => at.evaluate(() => document.activeElement!.tagName);
const parameter = (name: string) => new URLSearchParams(new URL(page.url()).hash.split("?")[1]).get(name);

test("the browser's back leads from the player to the files, and to a library as it was left", async () => {
  const lines = Array.from({ length: 300 }, (_, n) => {
    const group = n % 2 === 0 ? "Evening" : "Morning";
    return `#EXTINF:-1 group-title="${group}",Film ${n}\n${n === 200 ? seeder.magnet : `http://127.0.0.1:9/${n}.mpd`}`;
  });
  await page.goto(`${served.url}/#/library`);
  await page.setInputFiles("input[type=file]", {
    name: "list.m3u",
    mimeType: "audio/x-mpegurl",
    buffer: Buffer.from(`#EXTM3U\n${lines.join("\n")}\n`),
  });
  await page.waitForFunction(() => /^300 /.test(document.querySelector(".count")!.textContent!));
  await page.selectOption(".bar select", "Evening");
  await page.waitForFunction(() => /^150 /.test(document.querySelector(".count")!.textContent!));
  const found = page.waitForResponse(/playlist_get&query=Film/);
  await page.fill("input[type=search]", "Film");
  await found;
  await page.evaluate(() => scrollTo(0, 1200));
  await page.waitForFunction(() => history.state.scroll === 1200);
  const link = page.locator(".item a", { hasText: "Film 48" });
  await link.click();
  await page.waitForSelector(".found a");
  assertMatch(page.url(), /#\/play\?q=http/);
  assertEquals(await focused(), "H1");
  await page.goBack();
  await link.waitFor();
  assertEquals(await page.inputValue("input[type=search]"), "Film");
  assertEquals(await page.inputValue(".bar select"), "Evening");
  // Within half a line: the bar above may still grow, and the browser keeps in sight what is there.
  await page.waitForFunction(() => Math.abs(scrollY - 1200) < 40);
  await page.fill("input[type=search]", "Film 200");
  await page.waitForFunction(() => /^1 /.test(document.querySelector(".count")!.textContent!));
  await page.locator(".item a").click();
  await page.locator(".files button").nth(1).click();
  await page.waitForSelector("video");
  assertEquals(await heading(), "Part 2.mp4");
  assertEquals(await page.title(), "Part 2.mp4 – millrace");
  assertEquals(await focused(), "H1");
  await page.goBack();
  await page.waitForSelector(".files");
  assertEquals([await heading(), await page.title()], ["Season", "Season – millrace"]);
  await page.goBack();
  await page.waitForFunction(() => /^1 /.test(document.querySelector(".count")!.textContent!));
  await page.goForward();
  await page.goForward();
  await page.waitForSelector("video");
  // The page's own button goes the same way.
  await page.click("text=Back");
  await page.waitForSelector(".files");
  await page.goBack();
  await page.waitForSelector(".item");
  assertEquals(troubles, []);
});

test("the address holds file and time: a reload goes on, and a copied link opens the film at its place", async () => {
  await page.goto(`${served.url}/#/play?${new URLSearchParams({ q: seeder.magnet })}`);
  await page.locator(".files button").nth(2).click();
  await until("pictures are shown", async () => await frames(page) > 10);
  await page.evaluate(() => document.querySelector("video")!.currentTime = 5);
  await page.waitForFunction(() => /&file=2&t=[5-9]/.test(location.hash));
  await page.evaluate(() => document.querySelector("video")!.pause());
  const link = page.url();
  await page.reload();
  await page.waitForFunction(() => (document.querySelector("video")?.currentTime ?? 0) >= 5);
  assertEquals(await heading(), "Part 3.mp4");
  const context = await browser.newContext();
  try {
    const other = await context.newPage();
    await other.goto(link);
    await other.waitForFunction(() => (document.querySelector("video")?.currentTime ?? 0) >= 5);
    assertEquals(await heading(other), "Part 3.mp4");
    // Nothing was before it: back leads to the files.
    await other.click("text=Back");
    await other.waitForSelector(".files");
  } finally {
    await context.close();
  }
  // The next file takes the entry of the one before.
  await page.evaluate(() => document.querySelector("video")!.pause());
  await page.click(".menu:has-text('File') > button");
  await page.click(".menu li >> text=Part 1.mp4");
  await page.waitForFunction(() => document.querySelector("h1")?.textContent === "Part 1.mp4");
  assertEquals(parameter("file"), "0");
  await page.goBack();
  await page.waitForSelector(".files");
  assertEquals(troubles, []);
});

test("what the page cannot play stays in it and says so, with the address to open elsewhere", async () => {
  await page.goto(`${served.url}/#/play?${new URLSearchParams({ q: "http://127.0.0.1:9/a.m3u8" })}`);
  await page.waitForSelector(".found a");
  assertMatch(await page.locator(".found [role=alert]").textContent() ?? "", /./);
  assertEquals(await page.locator(".found a").getAttribute("href"), "http://127.0.0.1:9/a.m3u8");
  await shot(page, "not-playable");
  // Asking again asks again.
  const asked = page.waitForRequest(/analyze_content/);
  await page.fill("input[name=q]", "http://127.0.0.1:9/a.m3u8");
  await page.click("form.paste button");
  await asked;
  assert(page.url().includes("a.m3u8"));
});

test("a dropped transport file gets an address that can be loaded again, and the skip link leaves it as it is", async () => {
  await page.goto(`${served.url}/#/lists`);
  await page.waitForSelector(".lists");
  await page.evaluate((bytes) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(bytes)], "season.torrent"));
    dispatchEvent(new DragEvent("drop", { dataTransfer: data }));
  }, [...seeder.transportFile]);
  await page.waitForSelector(".files");
  assertEquals(parameter("q"), seeder.metainfo.infohashHex);
  await page.reload();
  await page.waitForSelector(".files");
  await page.evaluate(() => document.querySelector<HTMLElement>(".skip")!.click());
  assertEquals(parameter("q"), seeder.metainfo.infohashHex);
  await page.goBack();
  await page.waitForSelector(".lists");
  assertEquals(troubles, []);
});

test("a room that was left does not come back beside the next one when its answers are late", async () => {
  await page.goto(`${served.url}/#/play`);
  let answer = () => {};
  const late = new Promise<void>((resolve) => answer = resolve);
  // What a slow engine or a slow line does to the library's requests.
  await page.route(/method=playlist_get/, async (route) => {
    await late;
    await route.continue();
  });
  const asked = [page.waitForRequest(/method=playlist_get&/), page.waitForRequest(/playlist_get_categories/)];
  await page.goto(`${served.url}/#/library`);
  await Promise.all(asked);
  await page.goto(`${served.url}/#/settings`);
  await page.waitForSelector(".card");
  const checked = page.waitForResponse(/playlist_check_results|get_check|method=playlist_get&/);
  answer();
  await checked;
  await page.unroute(/method=playlist_get/);
  // What those answers change is drawn within two frames.
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  assertEquals(await page.locator("main h1").allTextContents(), ["Settings"]);
});
