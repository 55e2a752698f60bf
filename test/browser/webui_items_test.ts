/** A season in the page: what is fetched ahead, and what the library keeps of it. */
import { after, before, test } from "node:test";
import { assertEquals } from "@std/assert";
import type { Browser } from "playwright-core";
import { TOKEN } from "../api/support.ts";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { until } from "../support/until.ts";
import { launchChromium } from "./support.ts";
import { openMore } from "./webui-support.ts";

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
  await openMore(page);
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

test("an open library shows what was added and removed elsewhere, and leaves the user where he is", async () => {
  const call = async (method: string, params: Record<string, string>) => {
    const query = new URLSearchParams({ method, token: TOKEN, ...params });
    return (await (await fetch(`${served.url}/server/api?${query}`)).json()).result;
  };
  const add = (title: string) =>
    call("playlist_add_item", { title, video_url: `http://x/${title}`, category: "There" });
  const ids: number[] = [];
  for (let i = 100; i < 250; i++) ids.push(await add(`Old ${i}`));
  const page = await browser.newPage();
  await page.clock.install();
  const looked = page.waitForResponse(/playlist_get_version/);
  await page.goto(`${served.url}/#/library?group=There`);
  await page.waitForSelector("text=150 items");
  await page.evaluate(() => scrollTo(0, 64 * 120));
  const star = page.getByRole("button", { name: "Favourite: Old 221" });
  await star.focus();
  await looked;
  await call("playlist_delete_item", { id: String(ids[123]) });
  await call("playlist_add_item", { title: "New", video_url: "http://x/new", category: "Elsewhere" });
  await until("the page has noticed", async () => {
    await page.clock.fastForward(5000);
    return await page.locator("text=149 items").count() > 0;
  });
  await page.waitForFunction(() => !document.body.textContent!.includes("Old 223"));
  assertEquals(await star.evaluate((element) => element === document.activeElement), true);
  assertEquals(await page.evaluate(() => scrollY), 64 * 120);
  await page.waitForSelector("option:has-text('Elsewhere')", { state: "attached" });
});
