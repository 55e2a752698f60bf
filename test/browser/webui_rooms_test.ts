/** Settings and broadcasts in the page, a large library, and a remote control. */
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch, assertNotEquals, assertRejects } from "@std/assert";
import type { Browser, Page } from "playwright-core";
import { loadPorts } from "../../platform/detect.ts";
import { CastIdentity } from "../../src/players/engines/cast-identity.ts";
import { EnginePlayer } from "../../src/players/engines/engine-player.ts";
import { PAGE_HOST, type ServedEngine, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { clipPath } from "../support/fixtures.ts";
import { until } from "../support/until.ts";
import { launchChromium } from "./support.ts";
import { barriers, misfits, shot } from "./webui-support.ts";

const TOKEN = "c".repeat(64);
/** Lines of the large list. */
const MANY = 100_000;

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let served: ServedEngine;
let browser: Browser;
let page: Page;
const troubles: string[] = [];

before(async () => {
  directory = await temporaryDirectory();
  served = await serveEngine({ accessToken: TOKEN, stateDir: `${directory.path}/state`, allowedHosts: ["tv.test"] });
  browser = await launchChromium([`--host-resolver-rules=MAP tv.test ${PAGE_HOST}`]);
  page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.on("console", (message) => message.type() === "error" && troubles.push(message.text()));
  page.on("pageerror", (error) => troubles.push(String(error)));
});
after(async () => {
  await browser?.close();
  await served?.close();
  await directory?.remove();
});

async function api(method: string, params: Record<string, string> = {}) {
  const query = new URLSearchParams({ method, token: TOKEN, ...params });
  return (await (await fetch(`${served.url}/server/api?${query}`)).json()).result;
}

test("settings show the engine and change access and limits", async () => {
  await page.goto(`${served.url}/#/settings`);
  await page.waitForSelector(".cards .card");
  assertEquals(
    await page.locator(".switch input").evaluateAll((all) => all.map((one) => (one as HTMLInputElement).checked)),
    [
      true,
      false,
      true,
    ],
  );
  await page.click(".switch:first-of-type");
  await until("the network is refused", async () => (await api("get_settings")).access.intranet === false);
  await page.click(".switch:first-of-type");
  await until("the network is allowed", async () => (await api("get_settings")).access.intranet === true);
  await page.fill("input[name=download]", "40");
  await page.fill("input[name=upload]", "2.5");
  await page.click(".limits button");
  await until("the limits hold", async () => (await api("get_settings")).limits.download === 5_000_000);
  assertEquals((await api("get_settings")).limits.upload, 312_500);
  await page.click("text=Where peers are slower than a film");
  await until("films do not wait", async () => (await api("get_settings")).cushion === "off");
  await page.click("text=Show the token");
  await page.waitForFunction((token) => document.querySelector(".secret code")?.textContent === token, TOKEN);
  assertEquals(await barriers(page), []);
  assertEquals(troubles, []);
});

test("settings show the last warnings, and sign a user in and out with messages", async () => {
  await served.engine.fetch(new Request("http://localhost/engine/getstream?url=http://127.0.0.1:9/x.torrent"));
  await page.goto(`${served.url}/#/settings`);
  await page.waitForSelector(".log li");
  assertMatch(await page.locator(".log li").first().textContent() ?? "", /a stream did not start/);
  await page.fill("input[name=email]", "nobody@example.org");
  await page.fill("input[name=password]", "wrong password");
  await page.click("text=Sign in");
  await page.waitForSelector("text=The email or the password is wrong.");
  assertEquals(await barriers(page), []);
  await shot(page, "settings-desktop-light");
});

test("from another device the page asks for the token once, and shows codes that a phone can scan", async () => {
  const url = served.url.replace(PAGE_HOST, "tv.test");
  const other = await browser.newPage();
  try {
    await other.goto(`${url}/#/settings`);
    await other.waitForSelector(".cards .card");
    await other.click("text=Library for players");
    await other.waitForSelector(".qr");
    assertMatch(
      await other.locator(".qr").getAttribute("aria-label") ?? "",
      /^QR code of http:\/\/tv\.test:\d+\/engine\/playlist/,
    );
  } finally {
    await other.close();
  }
});

test("another engine that asks to play here is allowed by a click, and loses the permission by another", async () => {
  const shared = { playerDiscovery: true, accessToken: TOKEN };
  const asked = await serveEngine({ ...shared, playerPrograms: ["/bin/mpv-that-is-not-there"] });
  const room = await browser.newPage();
  const senders = async () => {
    const query = new URLSearchParams({ method: "get_cast_senders", token: TOKEN });
    return (await (await fetch(`${asked.url}/server/api?${query}`)).json()).result;
  };
  try {
    const identity = await CastIdentity.load(await loadPorts(), null);
    const at = { host: PAGE_HOST, port: Number(new URL(asked.url).port) };
    const self = { identity, name: "Study <b>", fetch };
    const sender = new EnginePlayer(self, { key: (await senders()).key, name: "this one", at, output: "file" });
    const stream = { id: "1", url: "http://127.0.0.1:1/engine/f/x/1/a.mkv", title: "A film", isLive: false };
    const rest = { ready: () => Promise.resolve(), trouble: () => null, stop: () => {} };
    await assertRejects(() => sender.open({ ...stream, ...rest }, AbortSignal.timeout(10_000)), Error, "has to allow");
    await room.goto(`${asked.url}/#/settings`);
    await room.waitForSelector("text=Study <b> wants to play here");
    assertEquals(await barriers(room), []);
    await room.click("text=Allow >> nth=0");
    await until("it is allowed", async () => (await senders()).allowed[0]?.key === identity.key);
    assertEquals((await senders()).pending, []);
    await room.waitForSelector(".rows li:not(.pending) >> text=Remove");
    await room.click(".rows li:not(.pending) >> text=Remove");
    await until("it is not allowed any more", async () => (await senders()).allowed.length === 0);
  } finally {
    await room.close();
    await asked.close();
  }
});

test("a broadcast is started from a file, watched, and stopped", async () => {
  await page.goto(`${served.url}/#/broadcast`);
  await page.waitForSelector(".broadcast .empty");
  await page.fill("input[name=source]", "/nowhere/at/all.ts");
  await page.fill("input[name=name]", "talk");
  await page.click(".broadcast .add button");
  await page.waitForFunction(() => /cannot read/.test(document.querySelector(".broadcast [role=alert]")!.textContent!));
  await page.fill("input[name=source]", clipPath("ts-188.ts"));
  await page.click(".broadcast .add button");
  await page.waitForSelector(".broadcast .card");
  const [own] = (await api("broadcast_list")).broadcasts;
  const viewer = await serveEngine({ startTimeoutMs: 20_000 });
  try {
    const magnet = encodeURIComponent(`${own.magnet}&x.pe=${served.peer}`);
    const played = await fetch(`${viewer.url}/engine/getstream?magnet=${magnet}`);
    const reader = played.body!.getReader();
    await reader.read();
    await page.waitForSelector(".swarm .to");
    assertEquals(await page.locator(".swarm .them").count(), 1);
    await page.waitForFunction(() =>
      /^(up to date|pieces behind: \d+)/.test(document.querySelector(".facts")!.textContent!)
    );
    assertEquals(await barriers(page), []);
    await shot(page, "broadcast-desktop-light");
    await reader.cancel();
  } finally {
    await viewer.close();
  }
  await page.click(".broadcast .card button:has-text('Stop')");
  await page.waitForSelector(".broadcast .empty");
  assertEquals(troubles, []);
});

test(`a list of ${MANY} items is imported with progress, and searched as one types`, async () => {
  await page.goto(`${served.url}/#/library`);
  await page.waitForSelector(".empty");
  const lines = Array.from(
    { length: MANY },
    (_, n) => `#EXTINF:-1 group-title="Group ${n % 40}",Channel ${n}\nhttp://192.0.2.1/${n}.m3u8`,
  );
  await page.setInputFiles("input[type=file]", {
    name: "list.m3u",
    mimeType: "audio/x-mpegurl",
    buffer: Buffer.from(`#EXTM3U\n${lines.join("\n")}\n`),
  });
  await page.waitForSelector(".report progress");
  await page.waitForFunction((many) => document.querySelector(".count")!.textContent!.includes(String(many)), MANY, {
    timeout: 120_000,
  });
  assert(await page.locator(".virtual li").count() < 100, "only lines in sight exist");
  await page.fill("input[type=search]", "Channel 98765");
  await page.waitForFunction(() => /^1 /.test(document.querySelector(".count")!.textContent!));
  await page.fill("input[type=search]", "");
  await page.waitForFunction((many) => document.querySelector(".count")!.textContent!.includes(String(many)), MANY);
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
  await page.waitForFunction(() =>
    [...document.querySelectorAll(".item a")].some((a) => /Channel 99999/.test(a.textContent!))
  );
  assertEquals(troubles, []);
});

test("the arrow keys of a remote reach every room, and the focused element is visible", async () => {
  await page.setViewportSize({ width: 1920, height: 1080 });
  await page.goto(`${served.url}/#/settings`);
  await page.waitForSelector(".cards .card");
  await page.evaluate(() => (document.querySelector("nav a") as HTMLElement).focus());
  const rooms = [];
  for (let n = 0; n < 5; n++) {
    rooms.push(await page.evaluate(() => document.activeElement!.textContent));
    await page.keyboard.press("ArrowRight");
  }
  assertEquals(rooms, ["Play", "Library", "Lists", "Broadcast", "Settings"]);
  const seen = new Set<string>();
  for (let n = 0; n < 12; n++) {
    await page.keyboard.press("ArrowDown");
    const { name, isInSight } = await page.evaluate(() => {
      const element = document.activeElement!;
      const { top, bottom } = element.getBoundingClientRect();
      return { name: element.outerHTML.slice(0, 60), isInSight: bottom > 0 && top < innerHeight };
    });
    assert(isInSight, name);
    seen.add(name);
  }
  assert(seen.size >= 4, [...seen].join("\n"));
  // What stays pressed has to be read, too.
  await page.click("footer button");
});

test("every room fits the phone and the TV, by day and by night", async () => {
  await api("broadcast_start", { source: clipPath("ts-188.ts"), name: "evening", title: "Evening talk" });
  for (const [name, width, height] of [["phone", 390, 844], ["tv", 1920, 1080]] as const) {
    await page.setViewportSize({ width, height });
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      for (const room of ["play", "library", "lists", "broadcast", "settings"]) {
        await page.goto(`${served.url}/#/${room}`);
        await page.waitForSelector(`main > .${room}`);
        if (room === "library") await page.waitForSelector(".item");
        if (room === "broadcast" || room === "settings") await page.waitForSelector(".card");
        const { scroll, small } = await misfits(page);
        assert(scroll <= 0, `${name} ${room}: ${scroll} px too wide`);
        assertEquals(small, [], `${name} ${room}`);
        assertEquals(await barriers(page), [], `${name} ${colorScheme} ${room}`);
        await shot(page, `${room}-${name}-${colorScheme}`);
      }
    }
  }
  assertNotEquals(await page.title(), "");
  assertEquals(troubles, []);
});
