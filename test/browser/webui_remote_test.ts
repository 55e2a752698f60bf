/** Every room by the five keys of a remote, with the focus where one expects it, and without barriers. */
import { after, before, test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import type { Browser, Page } from "playwright-core";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine } from "../support/engine.ts";
import { until } from "../support/until.ts";
import { launchChromium } from "./support.ts";
import { barriers, makeFilm, openMore, shot } from "./webui-support.ts";

const ROOMS = ["play", "library", "lists", "broadcast", "settings"];

let seeder: SeededFiles;
let served: ServedEngine;
let browser: Browser;
let page: Page;

before(async () => {
  // Longer than all steps that the arrow keys make in it.
  const bytes = await makeFilm(90, { size: "320x180" });
  seeder = await seedFiles([1, 2].map((n) => ({ path: `Part ${n}.mp4`, bytes })), { name: "Season" });
  served = await serveEngine();
  browser = await launchChromium();
  page = await browser.newPage({ viewport: { width: 1920, height: 1080 } });
  await page.goto(`${served.url}/#/library`);
  const lines = Array.from(
    { length: 4 },
    (_, n) => `#EXTINF:-1 group-title="G${n % 2}",Film ${n}\nhttp://127.0.0.1:9/${n}.m3u8`,
  );
  await page.setInputFiles("input[type=file]", {
    name: "list.m3u",
    mimeType: "audio/x-mpegurl",
    buffer: Buffer.from(`#EXTM3U\n${lines.join("\n")}\n`),
  });
  await page.waitForSelector(".item");
});
after(async () => {
  await browser?.close();
  await served?.close();
  await seeder?.close();
});

const focused = () => page.evaluate(() => document.activeElement!.outerHTML.slice(0, 90));
const isHeading = async () => await page.evaluate(() => document.activeElement!.tagName) === "H1";

/** What of `scope` no sequence of arrow keys reaches from the heading, or from what has the focus in a dialog. */
async function unreached(scope: string): Promise<string[]> {
  const tag = (all: string) => {
    for (const element of document.querySelectorAll("[data-n]")) element.removeAttribute("data-n");
    [...document.querySelectorAll(all)].forEach((element, n) => element.setAttribute("data-n", String(n)));
    return [...document.querySelectorAll<HTMLElement>(all)]
      .filter((element) => element.checkVisibility({ visibilityProperty: true }) && element.tabIndex >= 0)
      .map((element) => element.getAttribute("data-n")!);
  };
  const wanted = new Set(
    await page.evaluate(tag, `:is(${scope}) :is(a[href], button:not([disabled]), input, select, summary)`),
  );
  const at = () => page.evaluate(() => document.activeElement!.getAttribute("data-n") ?? "");
  const seen = new Set<string>();
  const open: string[] = [];
  const note = async () => {
    const now = await at();
    if (seen.has(now)) return;
    seen.add(now);
    open.push(now);
  };
  await note();
  while (open.length > 0) {
    const from = open.pop()!;
    for (const key of ["ArrowDown", "ArrowUp", "ArrowRight", "ArrowLeft"]) {
      await page.evaluate((n) => n !== "" && document.querySelector<HTMLElement>(`[data-n="${n}"]`)?.focus(), from);
      await page.keyboard.press(key);
      await note();
    }
  }
  const missed = [...wanted].filter((n) => !seen.has(n));
  return await page.evaluate(
    (all) => all.flatMap((n) => document.querySelector(`[data-n="${n}"]`)?.outerHTML.slice(0, 120) ?? []),
    missed,
  );
}

for (const room of ROOMS) {
  test(`the room "${room}" puts the focus on its heading, is reached by arrows altogether, and has no barriers`, async () => {
    await page.evaluate(() => location.hash = "#/play?q=");
    await page.locator(`nav a[href="#/${room}"]`).focus();
    await page.keyboard.press("Enter");
    await page.waitForSelector(`main > .${room}`);
    await until("the heading has the focus", isHeading);
    if (room === "library") await page.waitForSelector(".item");
    if (room === "settings") await page.waitForSelector(".card");
    assertEquals(await unreached("main, nav"), []);
    assertEquals(await barriers(page), []);
    await shot(page, `remote-${room}`);
  });
}

test("a group is chosen with OK and arrows, and an item's dialog is worked and left with them", async () => {
  await page.goto(`${served.url}/#/library`);
  await page.waitForSelector(".bar select");
  await page.focus(".bar select");
  await page.keyboard.press("Enter");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /^2 /.test(document.querySelector(".count")!.textContent!));
  await page.locator(".item button:last-of-type").first().focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog[open]");
  assertEquals(await unreached("dialog"), []);
  assertEquals(await barriers(page), []);
  await page.locator("dialog >> text=Move to the trash").focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /^1 /.test(document.querySelector(".count")!.textContent!));
  await until("the heading has the focus", isHeading);
});

test("an item's title, group, logo, address and guide id are changed in its dialog", async () => {
  await page.goto(`${served.url}/#/library`);
  await page.locator(".item", { hasText: "Film 3" }).locator("button:last-of-type").click();
  await page.click("dialog >> text=Edit");
  assertEquals(await barriers(page), []);
  await page.fill("dialog [name=title]", "Evening news");
  await page.fill("dialog [name=category]", "News");
  await page.fill("dialog [name=tvg_logo]", "http://127.0.0.1:9/logo.png");
  await page.fill("dialog [name=address]", "http://127.0.0.1:9/news.m3u8");
  await page.fill("dialog [name=tvg_id]", "news.example");
  await shot(page, "item-edit");
  await page.click("dialog form button");
  await page.waitForFunction(() => document.querySelector("dialog") === null);
  const row = page.locator(".item", { hasText: "Evening news" });
  await row.locator("small", { hasText: "News" }).waitFor();
  // A logo that does not load falls back to the letter.
  await row.locator("span.logo").waitFor();
  // The engine plays its address.
  assert((await row.locator("a").getAttribute("href"))?.includes("item%3A"));
  await row.locator("button:last-of-type").click();
  await page.click("dialog >> text=Edit");
  assertEquals(await page.inputValue("dialog [name=tvg_id]"), "news.example");
  assertEquals(await page.inputValue("dialog [name=address]"), "http://127.0.0.1:9/news.m3u8");
  // What the engine refuses is said in the dialog.
  await page.fill("dialog [name=address]", "hello world");
  await page.click("dialog form button");
  await page.locator("dialog [role=alert]", { hasText: "address" }).waitFor();
  await page.keyboard.press("Escape");
});

test("what is opened puts the focus on its heading: the field, a file, and the way back", async () => {
  await page.goto(`${served.url}/#/play`);
  await page.fill("input[name=q]", seeder.magnet);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".files");
  await until("the heading has the focus", isHeading);
  assertEquals(await unreached("main, nav"), []);
  assertEquals(await barriers(page), []);
  await page.locator(".files button").first().focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector("video");
  await until("the heading has the focus", isHeading);
  await openMore(page);
  await page.click("text=Statistics");
  await page.keyboard.press("Escape");
  await page.waitForSelector(".peers");
  await page.evaluate(() => document.querySelector("video")!.pause());
  assertEquals(await barriers(page), []);
  assertEquals(await unreached("main, nav"), []);
  // A remote whose "back" the browser leaves to the page.
  await page.evaluate(() => dispatchEvent(new KeyboardEvent("keydown", { key: "GoBack" })));
  await page.waitForSelector(".files");
  await until("the heading has the focus", isHeading);
  assert((await focused()).includes("Season"));
});
