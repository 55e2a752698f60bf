/** Channels that come by HTTP, in the page: from the library, and from an address that was pasted. */
import { after, before, test } from "node:test";
import { assertEquals } from "@std/assert";
import type { Browser, Page } from "playwright-core";
import { TOKEN } from "../api/support.ts";
import { EndlessClip } from "../playback/live-support.ts";
import { type ServedEngine, serveEngine } from "../support/engine.ts";
import { until } from "../support/until.ts";
import { serveWeb, type TestWeb } from "../support/web.ts";
import { launchChromium } from "./support.ts";
import { openMore } from "./webui-support.ts";

let web: TestWeb;
let served: ServedEngine;
let browser: Browser;
const agents: (string | undefined)[] = [];

before(async () => {
  web = await serveWeb((request, response) => {
    agents.push(request.headers["user-agent"]);
    const media = new EndlessClip();
    response.writeHead(200, { "content-type": "video/mp2t" }).write(media.next(2500));
    const timer = setInterval(() => response.write(media.next(50)), 50);
    response.on("close", () => clearInterval(timer));
  });
  served = await serveEngine({ accessToken: TOKEN });
  browser = await launchChromium();
});
after(async () => {
  await browser?.close();
  await served?.close();
  await web?.close();
});

const plays = (page: Page) =>
  until("it plays", () => page.evaluate(() => (document.querySelector("video")?.currentTime ?? 0) > 0.5), 60_000);

test("an item of the library that comes by HTTP plays in the page, with the fields of its address", async () => {
  const query = new URLSearchParams({
    method: "playlist_add_item",
    token: TOKEN,
    title: "News",
    video_url: `${web.base}/live|User-Agent=Box/1`,
    is_live: "1",
  });
  await (await fetch(`${served.url}/server/api?${query}`)).json();
  const page = await browser.newPage();
  await page.goto(`${served.url}/#/library`);
  await page.click(".item a >> text=News");
  await page.waitForFunction(() => document.querySelector("h1")?.textContent === "News");
  await plays(page);
  assertEquals(agents, ["Box/1"]);
  await page.close();
});

test("an address that was pasted and is a stream plays in the page", async () => {
  const page = await browser.newPage();
  await page.goto(`${served.url}/#/play?${new URLSearchParams({ q: `${web.base}/other` })}`);
  await plays(page);
  await openMore(page);
  await page.click("text=Add to the library");
  await page.waitForSelector("text=Added");
  await page.close();
});
