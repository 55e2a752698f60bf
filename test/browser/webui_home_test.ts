/** The first screen: what was left off, what was played, favourites and channels, and files without dropping them. */
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Browser, Page } from "playwright-core";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine } from "../support/engine.ts";
import { until } from "../support/until.ts";
import { launchChromium } from "./support.ts";
import { barriers, frames, makeFilm, misfits, shot } from "./webui-support.ts";

const TOKEN = "d".repeat(64);

let film: SeededFiles;
let served: ServedEngine;
let browser: Browser;
let page: Page;

before(async () => {
  const bytes = await makeFilm(90, { size: "320x180" });
  film = await seedFiles([{ path: "Harbour at dusk.mp4", bytes }]);
  served = await serveEngine({ accessToken: TOKEN });
  browser = await launchChromium();
  page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
});
after(async () => {
  await browser?.close();
  await served?.close();
  await film?.close();
});

async function api(method: string, params: Record<string, string>) {
  const query = new URLSearchParams({ method, token: TOKEN, ...params });
  return (await (await fetch(`${served.url}/server/api?${query}`)).json()).result;
}

test("a file is chosen by a button, and what has one file to play starts by itself", async () => {
  await page.goto(`${served.url}/`);
  assertEquals(await page.locator(".home h2").count(), 0);
  await page.setInputFiles("form.paste input[type=file]", {
    name: "harbour.torrent",
    mimeType: "application/x-bittorrent",
    buffer: Buffer.from(film.transportFile),
  });
  await page.waitForSelector("video");
  assertEquals(await page.locator("h1").textContent(), "Harbour at dusk.mp4");
  // Back from it is what was before the film, not a list of one line.
  await page.click("text=Back");
  await page.waitForSelector("form.paste");
  await page.goto(`${served.url}/#/play?${new URLSearchParams({ q: film.magnet })}`);
  await until("pictures are shown", async () => await frames(page) > 10);
  await page.evaluate(() => document.querySelector("video")!.currentTime = 40);
  await page.waitForFunction(() => /&t=4\d/.test(location.hash));
});

test("the first screen offers what was left off, favourites and channels, and forgets on request", async () => {
  const id = await api("playlist_add_item", { title: "Evening news", infohash: "1".repeat(40), is_live: "1" });
  const other = await api("playlist_add_item", { title: "Old film", infohash: "2".repeat(40), is_live: "0" });
  for (const one of [id, other]) await api("playlist_item_set_favorite", { id: String(one), value: "1" });
  await page.goto(`${served.url}/#/play`);
  await page.waitForFunction(() => document.querySelectorAll(".home h2").length === 4);
  const shelves = await page.locator(".home section").evaluateAll((all) =>
    all.map((shelf) => [
      shelf.querySelector("h2")!.textContent,
      ...[...shelf.querySelectorAll("a > span:not(.poster)")].map((title) => title.textContent),
    ])
  );
  assertEquals(shelves, [
    ["Continue watching", "Harbour at dusk.mp4"],
    ["Favourites", "Evening news", "Old film"],
    ["Channels", "Evening news"],
    ["Added lately", "Old film"],
  ]);
  // A still of the film where it was left; titles without a picture have one that is drawn.
  assertMatch(await page.locator(".home img.poster").first().getAttribute("src") ?? "", /^data:image\/jpeg;base64,/);
  assertEquals([await page.locator(".home img").count(), await page.locator(".home .drawn").count()], [1, 4]);
  assertMatch(await page.locator(".home small").first().textContent() ?? "", /^0:4\d \/ 1:30/);
  for (const [name, width, height] of [["phone", 390, 844], ["desktop", 1280, 800], ["tv", 1920, 1080]] as const) {
    await page.setViewportSize({ width, height });
    const { scroll, small } = await misfits(page);
    assert(scroll <= 0, `${name}: ${scroll} px too wide`);
    assertEquals([small, await barriers(page)], [[], []], name);
    // Ten feet away letters have to be larger.
    const letters = await page.evaluate(() => parseFloat(getComputedStyle(document.body).fontSize));
    assertEquals(letters, name === "tv" ? 24 : 16, name);
    await shot(page, `home-${name}`);
  }
  await page.click(".home a");
  await page.waitForFunction(() => (document.querySelector("video")?.currentTime ?? 0) >= 40);
  await page.goBack();
  await page.click("text=Forget what was played here");
  await page.waitForFunction(() => document.querySelectorAll(".home h2").length === 3);
});

test("on another device the first screen asks for no token, and nothing in its console complains", async () => {
  const troubles: string[] = [];
  const other = await browser.newPage();
  other.on("console", (message) => message.type() === "error" && troubles.push(message.text()));
  // The page as the engine sends it to other machines: changed before its script runs.
  await other.addInitScript(() =>
    document.addEventListener("readystatechange", () => document.querySelector('meta[name="millrace-here"]')?.remove())
  );
  const asked: string[] = [];
  other.on("request", (request) => asked.push(request.url()));
  try {
    await other.goto(`${served.url}/`, { waitUntil: "networkidle" });
    await other.waitForSelector("form.paste");
    assertEquals([troubles, asked.filter((url) => url.includes("/server/api"))], [[], []]);
    await other.click('nav a[href="#/library"]');
    await other.waitForSelector(".token form");
  } finally {
    await other.close();
  }
});

test("the page speaks the browser's language, and another one that is chosen from then on", async () => {
  const context = await browser.newContext({ locale: "de-CH" });
  const other = await context.newPage();
  try {
    await other.goto(`${served.url}/#/settings`);
    await other.waitForSelector("text=Geschwindigkeit begrenzen");
    assertEquals(await other.evaluate(() => document.documentElement.lang), "de");
    await other.selectOption("footer select", "zh");
    await other.waitForSelector("text=速度限制");
    await other.reload();
    await other.waitForSelector("text=速度限制");
    assertEquals(await barriers(other), []);
  } finally {
    await context.close();
  }
});

test("every language fits the phone in every room", async () => {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 } });
  const phone = await context.newPage();
  try {
    for (const language of ["de", "fr", "it", "pt", "ru", "es", "zh"]) {
      await phone.goto(`${served.url}/`);
      await phone.evaluate((chosen) => localStorage.setItem("millrace-language", chosen), language);
      await phone.reload();
      for (const room of ["play", "library", "lists", "broadcast", "settings"]) {
        await phone.evaluate((name) => location.hash = `#/${name}`, room);
        await phone.waitForSelector(room === "settings" ? ".card" : `main > .${room}`);
        const { scroll } = await misfits(phone);
        assert(scroll <= 0, `${language} ${room}: ${scroll} px too wide`);
        const cut = await phone.locator("nav a").evaluateAll((all) =>
          all.filter((a) => a.scrollWidth > a.clientWidth || a.getBoundingClientRect().right > innerWidth)
            .map((a) => a.textContent)
        );
        assertEquals(cut, [], language);
        await shot(phone, `language-${language}-${room}`);
      }
    }
  } finally {
    await context.close();
  }
});
