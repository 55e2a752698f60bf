/** A season in the page: what is fetched ahead, and what the library keeps of it. */
import { after, before, test } from "node:test";
import { assertEquals } from "@std/assert";
import type { Browser } from "playwright-core";
import { TOKEN } from "../api/support.ts";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { until } from "../support/until.ts";
import { launchChromium } from "./support.ts";

let seeder: SeededFiles;
let served: ServedEngine;
let browser: Browser;

before(async () => {
  const bytes = clip("mp4-30fps.mp4");
  seeder = await seedFiles([1, 2, 3].map((n) => ({ path: `Part ${n}.mp4`, bytes })), { name: "Season" });
  served = await serveEngine({ accessToken: TOKEN });
  browser = await launchChromium();
});
after(async () => {
  await browser?.close();
  await served?.close();
  await seeder?.close();
});

async function library(): Promise<[title: string, file: number | null, isLinked: boolean][]> {
  const answer = await fetch(`${served.url}/server/api?method=playlist_get&token=${TOKEN}`);
  const { playlist } = (await answer.json()).result as {
    playlist: { title: string; file_index: number | null; url: string | null }[];
  };
  return playlist.map(({ title, file_index, url }) => [title, file_index, url === seeder.magnet]);
}

test("an episode is added with its file and its link, a season by one button, and items open their episode", async () => {
  const page = await browser.newPage();
  const starts: (string | null)[] = [];
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.pathname.endsWith("/manifest.m3u8")) starts.push(url.searchParams.get("next_file_indexes"));
  });
  await page.goto(`${served.url}/#/play?${new URLSearchParams({ q: seeder.magnet, file: "1" })}`);
  await page.click("text=Add to the library");
  await page.waitForSelector("text=Added");
  assertEquals([starts, await library()], [["2"], [["Part 2.mp4", 1, true]]]);
  await page.click("text=Add all 3 files");
  await until("the season is there", async () => (await library()).length === 4);
  assertEquals((await library()).slice(1), [["Part 1", 0, true], ["Part 2", 1, true], ["Part 3", 2, true]]);
  await page.goto(`${served.url}/#/library`);
  await page.click(".item a >> text=Part 3");
  await page.waitForFunction(() => document.querySelector("h1")?.textContent === "Part 3.mp4");
  assertEquals(new URLSearchParams(new URL(page.url()).hash.split("?")[1]).get("file"), "2");
});
