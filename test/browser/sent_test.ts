/** A web page of the engine in headless Chromium as a player: what a program sends there plays, pauses, seeks and stops. */
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Browser, Page } from "playwright-core";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { until } from "../support/until.ts";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { launchChromium } from "./support.ts";

let seeder: SeededFiles;
let served: ServedEngine;
let browser: Browser;
let page: Page;
const troubles: string[] = [];

before(async () => {
  const files = [["film.mp4", "mp4-30fps.mp4"], ["new.mkv", "mkv-hevc-eac3.mkv"]] as const;
  seeder = await seedFiles(files.map(([path, name]) => ({ path, bytes: clip(name) })), { name: "films" });
  served = await serveEngine();
  served.engine.swarms.acquire({ metainfo: seeder.metainfo, magnet: parseMagnet(seeder.magnet) });
  browser = await launchChromium();
  page = await browser.newPage();
  page.on("pageerror", (error) => troubles.push(String(error)));
});
after(async () => {
  await browser?.close();
  await served?.close();
  await seeder?.close();
});

async function call(method: string, params: Record<string, string> = {}) {
  const response = await fetch(`${served.url}/server/api?${new URLSearchParams({ method, ...params })}`);
  return await response.json();
}
const players = async (): Promise<{ id: string; name: string }[]> =>
  (await call("get_available_players")).result.players;

test("a page plays what is opened in it once its user allows that, and obeys commands", async () => {
  await page.goto(`${served.url}/`, { waitUntil: "networkidle" });
  assertEquals(await players(), [], "nobody asked the user yet");
  await page.click("footer button");
  await until("the page is a player", async () => (await players()).length === 1);
  const [{ id, name }] = await players() as [{ id: string; name: string }];
  assertEquals(name, "Web page on this machine");
  const open = (index: number) =>
    call("open_in_player", { player_id: id, infohash: seeder.metainfo.infohashHex, _idx: String(index) });
  const status = async () => (await call("get_player_status", { player_id: id })).result;
  const control = async (command: string, more: Record<string, string> = {}) =>
    assertEquals((await call("control_player", { player_id: id, command, ...more })).error, null, command);

  assertEquals((await open(0)).error, null);
  assertMatch(await page.locator("h1").textContent() ?? "", /film\.mp4/);
  await until(
    "pictures are shown",
    () => page.evaluate(() => document.querySelector("video")!.getVideoPlaybackQuality().totalVideoFrames > 10),
  );
  await control("pause");
  await until("it has paused", async () => (await status()).state === "paused");
  assert(await page.evaluate(() => document.querySelector("video")!.paused));
  await control("seek", { position: "4" });
  await until("it is where it was told to go", async () => Math.abs((await status()).position - 4) < 0.5);
  await control("resume");
  await until("it goes on", async () => (await status()).state === "playing");
  const { duration } = await status();
  assert(Math.abs(duration - 6) < 1, `${duration} s`);
  await control("stop");
  await page.waitForSelector("form.paste");
  assertEquals((await status()).state, "idle");

  const refused = await open(1);
  assertEquals(refused.result, undefined);
  assertMatch(refused.error.message, /does not play it.*HEVC/, "this browser decodes neither HEVC nor E-AC-3");
  assertEquals(troubles, []);
});

test("a page sends what it plays to another page, and shows an error when that does not work", async () => {
  const other = await browser.newPage();
  try {
    await other.goto(`${served.url}/#/play?${new URLSearchParams({ q: seeder.magnet })}`);
    await other.click(".files li:first-child button");
    await other.click(".play-on button[aria-expanded]");
    await other.click(".play-on button.other");
    // The sender becomes a remote control, and the picture is on the other page.
    await other.waitForSelector(".cast");
    await until("it is named there", async () => /film\.mp4/.test(await page.locator("h1").textContent() ?? ""));
    // The page looks first whether it can play it.
    await until(
      "it plays there",
      () => page.evaluate(() => (document.querySelector("video")?.currentTime ?? 0) > 0),
    );
    await other.click("text=Pause");
    await until("it has paused there", () => page.evaluate(() => document.querySelector("video")!.paused));
    await other.click("text=Resume");
    await until("it goes on there", () => page.evaluate(() => !document.querySelector("video")!.paused));
    // Its user goes elsewhere: the stream is over.
    await page.click('a[href="#/lists"]');
    await page.waitForSelector(".lists .add");
    const { id } = (await players())[0]!;
    await until("it is idle", async () => (await call("get_player_status", { player_id: id })).result.state === "idle");
    await other.waitForFunction(() => /plays nothing/.test(document.querySelector(".cast .status")!.textContent!));
    await other.click(".cast >> text=Back");
    await other.click(".files li:last-child button");
    await other.click(".play-on button[aria-expanded]");
    await other.click(".play-on button.other");
    await other.waitForFunction(() =>
      /does not play it/.test(document.querySelector(".play-on .note")?.textContent ?? "")
    );
  } finally {
    await other.close();
  }
});

test("a closed page leaves the list at once, and a reloaded page does not ask for permission again", async () => {
  await page.reload();
  await until("the page is a player again", async () => (await players()).length === 1);
  await page.click("footer button");
  await until("its user wants that no longer", async () => (await players()).length === 0);
  await page.click("footer button");
  await until("and wants it again", async () => (await players()).length === 1);
  await page.close();
  await until("it is gone", async () => (await players()).length === 0);
});
