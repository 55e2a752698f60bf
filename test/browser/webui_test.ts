/** The web page in headless Chromium, on a real engine with a real peer, used as a person would. */
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Browser, Page } from "playwright-core";
import { magnetLink } from "../../src/metainfo/live.ts";
import { TorrentSwarm } from "../../src/swarm/torrent/torrent-swarm.ts";
import { PAGE_HOST, type SeededFiles, seedFiles, type ServedEngine, serveEngine } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { until } from "../support/until.ts";
import { launchChromium } from "./support.ts";
import { barriers, frames, misfits, openMore, shot } from "./webui-support.ts";

let seeder: SeededFiles;
let served: ServedEngine;
let browser: Browser;
let page: Page;
const troubles: string[] = [];

before(async () => {
  const names = ["mp4-30fps.mp4"];
  seeder = await seedFiles(
    names.map((name) => ({ path: `E10 ${name}`, bytes: clip(name) })).concat(
      names.map((name) => ({ path: `E2 ${name}`, bytes: clip(name) })),
    ),
    { name: "Season" },
  );
  served = await serveEngine();
  browser = await launchChromium();
  page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.on("console", (message) => message.type() === "error" && troubles.push(message.text()));
  page.on("pageerror", (error) => troubles.push(String(error)));
});
after(async () => {
  await browser?.close();
  await served?.close();
  await seeder?.close();
});

test("the page loads within 150 KB, offline from everything but the engine, without an error in the console", async () => {
  let bytes = 0;
  const hosts = new Set<string>();
  const counted = async (response: import("playwright-core").Response) => {
    hosts.add(new URL(response.url()).host);
    bytes += (await response.request().sizes()).responseBodySize;
  };
  page.on("response", counted);
  await page.goto(`${served.url}/`, { waitUntil: "networkidle" });
  page.off("response", counted);
  assert(bytes < 150_000, `${bytes} bytes`);
  assertEquals([...hosts], [new URL(served.url).host]);
  assertEquals(troubles, []);
  assertEquals(await barriers(page), []);
  await shot(page, "start");
});

test("a pasted magnet is listed in natural order and its picture moves, seeks and continues with the next file", async () => {
  await page.goto(`${served.url}/`);
  await page.fill("input[name=q]", seeder.magnet);
  await page.click("form.paste button");
  await page.waitForSelector(".files li");
  const listed = await page.locator(".files span").allTextContents();
  assertEquals(listed, ["E2 mp4-30fps.mp4", "E10 mp4-30fps.mp4"]);
  assertEquals(await barriers(page), []);
  await shot(page, "files");
  await page.evaluate(() => addEventListener("play", (event) => (event.target as HTMLVideoElement).muted = true, true));
  await page.click(".files li:first-child button");
  await until("pictures are shown", async () => await frames(page) > 10);
  await openMore(page);
  await page.click("text=Statistics");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => /Peers/.test(document.querySelector(".figures")!.textContent!));
  assertEquals(await barriers(page), []);
  await shot(page, "playing");
  await page.evaluate(() => document.querySelector("video")!.currentTime = 4);
  await page.waitForFunction(() => (document.querySelector("video")?.currentTime ?? 0) > 4.2);
  await page.evaluate(() => document.querySelector("video")!.dispatchEvent(new Event("ended")));
  await page.waitForFunction(() => /E10/.test(document.querySelector("h1")!.textContent!));
  await until("the next file plays", async () => await frames(page) > 10);
  assertEquals(troubles, [], troubles.join("\n"));
  await page.click("text=Back");
  await page.waitForSelector(".files li");
  await until("the sessions are stopped", async () => {
    const stat = await (await fetch(`${served.url}/server/api?method=get_status`)).json();
    return stat.error === null && served.engine.swarms.list().length <= 1;
  });
});

test("a dropped transport file is opened", async () => {
  await page.goto(`${served.url}/`);
  await page.waitForSelector("form.paste");
  await page.evaluate((bytes) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(bytes)], "season.torrent"));
    dispatchEvent(new DragEvent("drop", { dataTransfer: data }));
  }, [...seeder.transportFile]);
  await page.waitForSelector(".files li");
  assertMatch(await page.locator("h1").textContent() ?? "", /Season/);
});

for (const [format, words] of [["v2", "BitTorrent v2"], ["hybrid", "BitTorrent v1 + v2"]] as const) {
  test(`a magnet of version 2 is listed with its title, and the page says that it is ${words}`, async () => {
    const files = ["one.mkv", "two.mkv"].map((path) => ({ path, bytes: new Uint8Array(20_000).fill(path.length) }));
    const seeded = await seedFiles(files, { name: "Pack", format });
    try {
      const magnet = `${magnetLink(seeded.metainfo).replace(/xt=urn:btih:\w+&/, "")}&x.pe=${seeded.peer}`;
      await page.goto(`${served.url}/#/play?${new URLSearchParams({ q: magnet })}`);
      await page.waitForSelector(".files li");
      assertEquals(await page.locator("h1").textContent(), "Pack");
      assertEquals(await page.locator("p.note").allTextContents(), [words]);
      assertEquals(await page.locator(".files span").allTextContents(), ["one.mkv", "two.mkv"]);
    } finally {
      await seeded.close();
    }
  });
}

test("a dead stream is looked for in words, with what of its link is not understood", async () => {
  const dead = "0".repeat(39) + "1";
  const magnet = `magnet:?xt=urn:btih:${dead}&x.pe=127.0.0.1:1&tr=31313131`;
  await page.goto(`${served.url}/#/play?q=${encodeURIComponent(magnet)}`);
  await page.waitForSelector(".flow");
  assertMatch(await page.locator(".flow").textContent() ?? "", /peers/);
  await page.waitForFunction(() =>
    /^Peers known: \d+, connected: 0 · Not understood in the link: tr=31313131$/.test(
      document.querySelector(".found .note")!.textContent!,
    )
  );
});

test("an imported list of 5,000 channels is searched, starred and scrolled without its lines all existing", async () => {
  await page.goto(`${served.url}/#/library`);
  await page.waitForSelector(".empty");
  await shot(page, "empty-library");
  const lines = Array.from({ length: 5000 }, (_, n) => `#EXTINF:-1,Channel ${n}\nhttp://192.0.2.1/${n}.m3u8`);
  await page.setInputFiles("input[type=file]", {
    name: "list.m3u",
    mimeType: "audio/x-mpegurl",
    buffer: Buffer.from(`#EXTM3U\n${lines.join("\n")}\n`),
  });
  await page.waitForFunction(() => /5000/.test(document.querySelector(".count")!.textContent!));
  await page.waitForSelector(".item");
  assert(await page.locator("li").count() < 100, "only lines in sight exist");
  assertEquals(await barriers(page), []);
  await shot(page, "library");
  await page.evaluate(() => scrollTo(0, 200_000));
  await page.waitForFunction(() =>
    [...document.querySelectorAll(".item a")].some((a) => /Channel 3\d\d\d/.test(a.textContent!))
  );
  await page.fill("input[type=search]", "Channel 4321");
  await page.waitForFunction(() => /^1 /.test(document.querySelector(".count")!.textContent!));
  await page.click(".item button:first-of-type");
  await page.waitForSelector('.item button[aria-pressed="true"]');
  await page.reload();
  await page.fill("input[type=search]", "Channel 4321");
  await page.waitForSelector('.item button[aria-pressed="true"]');
  assertEquals(troubles, []);
});

test("the library shows who is alive, by channel, and what is disabled and locked", async () => {
  const other = await seedFiles([{ path: "Harbour.mp4", bytes: clip("mp4-24fps.mp4") }]);
  const lines = ["Harbour HD", "Harbour 4K"].map((name, n) => {
    const magnet = n === 0 ? other.magnet : `magnet:?xt=urn:btih:${"0".repeat(39)}1&x.pe=127.0.0.1:1`;
    return `#EXTINF:-1 group-title="Films",${name}\n${magnet}`;
  });
  await page.goto(`${served.url}/#/library`);
  // The words of the last search are gone with the page.
  await page.reload();
  await page.setInputFiles("input[type=file]", {
    name: "films.m3u",
    mimeType: "audio/x-mpegurl",
    buffer: Buffer.from(`#EXTM3U\n${lines.join("\n")}\n`),
  });
  await page.selectOption(".bar select", "Films");
  await page.waitForFunction(() => /^2 /.test(document.querySelector(".count")!.textContent!));
  await page.click("text=Who is alive?");
  await page.waitForSelector(".item .pulse.alive");
  assertMatch(await page.locator(".pulse.alive").textContent() ?? "", /^alive, peers: 1$/);
  await page.waitForSelector(".report progress");
  await shot(page, "library-alive");
  // The other one is looked for until its deadline: the sweep can be stopped.
  await page.click(".report >> text=Stop");
  await page.waitForSelector(".report >> text=Close");
  await page.click("text=By channel");
  await page.waitForFunction(() => /^1 channel$/.test(document.querySelector(".count")!.textContent!));
  assertMatch(await page.locator(".item small").textContent() ?? "", /sources: 2/);
  await page.click(".item button:last-of-type");
  await page.waitForSelector("dialog .rows li:nth-child(2)");
  assertEquals(await barriers(page), []);
  await shot(page, "library-channel");
  await page.click("dialog .switch:nth-of-type(1)");
  await page.click("dialog .switch:nth-of-type(2)");
  await page.waitForFunction(() =>
    document.querySelector<HTMLButtonElement>("dialog .actions button:nth-child(2)")!.disabled
  );
  await page.keyboard.press("Escape");
  // Disabled items do not appear in searches.
  await page.waitForSelector(".library .empty");
  await page.click("text=By channel");
  await page.waitForSelector(".item.off");
  assertEquals(await page.locator(".item.off").count(), 2);
  await other.close();
  assertEquals(troubles, []);
});

test("a list is added by its address, fails in words, is removed, and what was trashed comes back", async () => {
  await page.goto(`${served.url}/#/lists`);
  await page.waitForSelector(".lists .add");
  await page.fill("input[name=url]", "http://127.0.0.1:9/list.m3u");
  await page.fill("input[name=name]", "Nobody is there");
  await page.click(".add button");
  await page.waitForSelector(".rows li");
  await page.click(".rows li button:first-of-type");
  await page.waitForFunction(() => document.querySelector("[role=alert]")!.textContent !== "");
  assertEquals(await barriers(page), []);
  await shot(page, "lists");
  await page.click(".rows li button:last-of-type");
  await page.waitForFunction(() => document.querySelector(".rows li") === null);
  await page.goto(`${served.url}/#/library`);
  await page.waitForSelector(".item");
  await page.click(".item button:last-of-type");
  await page.click("dialog >> text=Move to the trash");
  await page.waitForFunction(() => /5001/.test(document.querySelector(".count")!.textContent!));
  await page.goto(`${served.url}/#/lists`);
  await page.waitForSelector("h2 ~ .rows li");
  await page.click("h2 ~ .rows li button");
  await page.waitForFunction(() => document.querySelector("h2 ~ .rows li") === null);
  assertEquals(troubles, []);
});

test("phone, TV and dark views have no sideways scrolling and large enough targets", async () => {
  for (
    const [name, width, height, scheme] of [
      ["phone", 390, 844, "light"],
      ["tv", 1920, 1080, "dark"],
      ["desktop-dark", 1280, 800, "dark"],
    ] as const
  ) {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme: scheme });
    await page.goto(`${served.url}/`);
    await page.waitForSelector("form.paste");
    const { scroll, small } = await misfits(page);
    assert(scroll <= 0, `${name}: ${scroll} px too wide`);
    assertEquals(small, [], name);
    assertEquals(await barriers(page), [], name);
    await shot(page, name);
  }
});

test("the page waits for an infohash that takes longer than an analysis may", async () => {
  const lone = await browser.newPage();
  const { infohashHex } = seeder.metainfo;
  const other = await serveEngine();
  try {
    await lone.goto(`${other.url}/`);
    await lone.fill("input[name=q]", infohashHex);
    const asks = lone.waitForRequest(/get_media_files/, { timeout: 20_000 });
    await lone.keyboard.press("Enter");
    await lone.waitForSelector("text=Looking it up");
    await asks;
    const [host = "", port = ""] = seeder.peer.split(":");
    const swarm = other.engine.swarms.list().find((one) => one.infohashHex === infohashHex);
    assert(swarm instanceof TorrentSwarm);
    swarm.addPeer({ host, port: Number(port) });
    await lone.waitForSelector(".files button");
  } finally {
    await lone.close();
    await other.close();
  }
});

test("Copy link says that it copied, on pages that are no secure context, too", async () => {
  const context = await browser.newContext();
  const copying = await context.newPage();
  try {
    await copying.goto(`${served.url}/#/play?q=${encodeURIComponent(seeder.magnet)}`);
    await copying.click(".files button");
    await openMore(copying);
    await copying.click("text=Copy link");
    await copying.waitForSelector("text=Copied");
    assertEquals(await copying.evaluate(() => isSecureContext), PAGE_HOST === "127.0.0.1");
  } finally {
    await context.close();
  }
});
