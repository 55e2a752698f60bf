/** Recordings in the page: started from the library and the guide, played while they grow, ended and removed. */
import { after, before, test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import type { Browser, Page } from "playwright-core";
import { writeXmltvTime } from "../../src/playlist/guide/xmltv-time.ts";
import { TOKEN } from "../api/support.ts";
import { EndlessClip } from "../playback/live-support.ts";
import { type ServedEngine, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { until } from "../support/until.ts";
import { serveWeb, type TestWeb } from "../support/web.ts";
import { launchChromium } from "./support.ts";
import { barriers, misfits, shot } from "./webui-support.ts";

const NOW_S = Math.floor(Date.now() / 1000);
const GUIDE =
  `<tv><programme start="${writeXmltvTime(NOW_S + 3600)}" stop="${writeXmltvTime(NOW_S + 7200)}" channel="a">` +
  "<title>Harbour film</title></programme></tv>";

let web: TestWeb;
let served: ServedEngine;
let browser: Browser;
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;

before(async () => {
  web = await serveWeb((request, response) => {
    if (request.url === "/guide.xml") return void response.end(GUIDE);
    const media = new EndlessClip();
    response.writeHead(200, { "content-type": "video/mp2t" }).write(media.next(2500));
    const timer = setInterval(() => response.write(media.next(50)), 50);
    response.on("close", () => clearInterval(timer));
  });
  directory = await temporaryDirectory();
  served = await serveEngine({ accessToken: TOKEN, stateDir: `${directory.path}/state` });
  browser = await launchChromium();
});
after(async () => {
  await browser?.close();
  await served?.close();
  await web?.close();
  await directory?.remove();
});

async function api(method: string, params: Record<string, string> = {}) {
  const query = new URLSearchParams({ method, token: TOKEN, ...params });
  return (await (await fetch(`${served.url}/server/api?${query}`)).json()).result;
}

/** Opens what the library knows of the channel. */
async function openChannel(page: Page): Promise<void> {
  await page.goto(`${served.url}/#/library`);
  await page.getByRole("button", { name: "More: Harbour TV" }).click();
}

test("recordings are started from a channel and from its guide, play while they grow, end and are removed", async () => {
  const item = await api("playlist_add_item", { title: "Harbour TV", video_url: `${web.base}/live`, is_live: "1" });
  await api("playlist_update_item", { id: String(item), tvg_id: "a" });
  const guide = await api("epg_source_add", { url: `${web.base}/guide.xml`, update_now: "0", update_interval: "0" });
  assertEquals(await api("epg_source_update", { id: String(guide) }), "ok");
  const page = await browser.newPage({ viewport: { width: 390, height: 800 } });
  await openChannel(page);
  await page.getByRole("button", { name: "Record: Harbour TV" }).click();
  await page.locator("dialog").getByText("Programme guide").click();
  await page.locator(".programmes summary").click();
  await page.getByRole("button", { name: "Record: Harbour film" }).focus();
  await page.keyboard.press("Enter");
  await until("both are there", async () => (await api("recording_list")).recordings.length === 2);
  await page.locator(".programmes a[href='#/recordings']").click();
  const planned = page.locator(".recordings li", { hasText: "Harbour film" });
  await planned.waitFor();
  assertMatch((await planned.locator("small").textContent())!, /^planned · /);
  const running = page.locator(".recordings li", { hasText: "Harbour TV" });
  await running.getByRole("button", { name: "Play" }).click({ timeout: 60_000 });
  const plays = () => page.evaluate(() => (document.querySelector("video")?.currentTime ?? 0) > 0.5);
  await until("it plays", plays, 60_000);
  assertEquals([await misfits(page), await barriers(page)], [{ scroll: 0, small: [] }, []]);
  await shot(page, "recordings");
  await page.getByRole("button", { name: "Close" }).click();
  await running.getByRole("button", { name: "Stop" }).click();
  await running.getByText("recorded · ").waitFor();
  await planned.getByRole("button", { name: "Remove" }).click();
  await planned.waitFor({ state: "detached" });
  await running.getByRole("button", { name: "Remove" }).click();
  await page.getByText("Nothing is recorded or planned yet.").waitFor();
  assertEquals((await api("recording_list")).recordings, []);
  await page.close();
});
