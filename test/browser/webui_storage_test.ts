/** What is cached, in the settings: by torrent, removed by a remote's keys, and limited. */
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Browser, Page } from "playwright-core";
import type { EngineOptions } from "../../src/engine/options.ts";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { noise } from "../support/random.ts";
import { launchChromium } from "./support.ts";
import { barriers, misfits, shot } from "./webui-support.ts";

const TOKEN = "e".repeat(64);
const PIECE_BYTES = 65_536;

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
const films: SeededFiles[] = [];
let served: ServedEngine;
let browser: Browser;
let page: Page;

before(async () => {
  directory = await temporaryDirectory();
  for (const [n, path] of ["Harbour at dusk.mkv", "The mill.mkv", "In use.mkv"].entries()) {
    films.push(await seedFiles([{ path, bytes: noise(8 * PIECE_BYTES, n + 1) }], { pieceLengthBytes: PIECE_BYTES }));
  }
  const options: EngineOptions = {
    accessToken: TOKEN,
    cache: "disk",
    cacheDir: `${directory.path}/cache`,
    stateDir: `${directory.path}/state`,
  };
  // What an engine fetched half a minute ago is in use: another one takes over what the first cached.
  const before = await serveEngine(options);
  for (const film of films) await fetchAll(before, film);
  await before.close();
  served = await serveEngine(options);
  await fetchAll(served, films[2]!);
  browser = await launchChromium();
  page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
});
after(async () => {
  await browser?.close();
  await served?.close();
  for (const film of films) await film.close();
  await directory?.remove();
});

async function fetchAll({ engine }: ServedEngine, { metainfo, magnet }: SeededFiles): Promise<void> {
  const { swarm } = engine.swarms.acquire({ metainfo, magnet: parseMagnet(magnet) });
  swarm.setDownloadAll(true);
  await swarm.completed(AbortSignal.timeout(30_000));
}

async function storage(): Promise<{ readonly limit: number; readonly total: number }> {
  const query = new URLSearchParams({ method: "storage_list", token: TOKEN });
  return (await (await fetch(`${served.url}/server/api?${query}`)).json()).result;
}

/** Lines of the card: what they say, and whether they can be removed. */
const lines = () =>
  page.locator(".storage .rows li").evaluateAll((all) =>
    all.map((line) => `${line.querySelector("small")!.textContent} ${line.querySelector("button")!.disabled}`)
  );

test("the settings show what is cached with its share, and which of it plays", async () => {
  await page.goto(`${served.url}/#/settings`);
  await page.waitForFunction(() => document.querySelectorAll(".storage .rows li").length === 3);
  assertEquals((await lines()).sort(), [
    "524 KB of 524 KB is here (100 %) false",
    "524 KB of 524 KB is here (100 %) false",
    "524 KB of 524 KB is here (100 %) · in use true",
  ]);
  const links = await page.locator(".storage .rows a").evaluateAll((all) => all.map((a) => a.getAttribute("href")));
  for (const { metainfo } of films) assert(links.some((link) => link!.includes(metainfo.infohashHex)), `${links}`);
  for (const [name, width, height] of [["phone", 390, 2000], ["desktop", 1280, 1200], ["tv", 1920, 1600]] as const) {
    await page.setViewportSize({ width, height });
    const { scroll, small } = await misfits(page);
    assertEquals([scroll <= 0, small, await barriers(page)], [true, [], []], name);
    await shot(page, `storage-${name}`);
  }
});

test("the limit of the cache is set in the settings, in gigabytes", async () => {
  await page.fill(".storage input[name=gigabytes]", "1.5");
  await page.press(".storage input[name=gigabytes]", "Enter");
  await page.waitForFunction(() => document.querySelector(".usage")!.textContent!.includes("of 1.5 GB"));
  assertEquals((await storage()).limit, 1_500_000_000);
});

test("one torrent is removed, then by a second press all that is not in use", async () => {
  await page.locator(".storage .rows li button:not([disabled])").first().focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector("text=524 KB are free now.");
  await page.waitForFunction(() => document.querySelectorAll(".storage .rows li").length === 2);
  await page.focus("text=Empty all");
  await page.keyboard.press("Enter");
  // The button asks first, and forgets that it was pressed when the focus leaves it.
  await page.waitForSelector(".sure");
  await page.keyboard.press("ArrowUp");
  await page.waitForFunction(() => document.querySelector(".sure") === null);
  assertEquals((await storage()).total, 2);
  await page.focus("text=Empty all");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".sure");
  assertEquals(await barriers(page), []);
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll(".storage .rows li").length === 1);
  assertMatch((await lines())[0]!, /in use true$/);
  assertEquals((await storage()).total, 1);
});
