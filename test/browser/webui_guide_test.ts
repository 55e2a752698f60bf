/** The guide in the page: what is on beside a channel, and its programmes as a list. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import type { Browser } from "playwright-core";
import { writeXmltvTime } from "../../src/playlist/guide/xmltv-time.ts";
import { TOKEN } from "../api/support.ts";
import { type ServedEngine, serveEngine } from "../support/engine.ts";
import { launchChromium } from "./support.ts";
import { barriers, misfits, shot } from "./webui-support.ts";

const NOW_S = Math.floor(Date.now() / 1000);
const programme = (title: string, from: number, to: number, more = "") =>
  `<programme start="${writeXmltvTime(NOW_S + from * 60)}" stop="${writeXmltvTime(NOW_S + to * 60)}" channel="a">` +
  `<title lang="en">${title}</title>${more}</programme>`;
const GUIDE = `<tv>${programme("Breakfast", -60, -20)}${
  programme("Harbour news", -20, 40, "<desc>Ships and tides.</desc><category>News</category>")
}${programme("Quiz", 40, 90)}</tv>`;

let source: Server;
let served: ServedEngine;
let browser: Browser;

before(async () => {
  source = createServer((_request, response) => void response.end(GUIDE));
  await new Promise<void>((resolve) => source.listen(0, "127.0.0.1", resolve));
  served = await serveEngine({ accessToken: TOKEN });
  browser = await launchChromium();
});
after(async () => {
  await browser?.close();
  await served?.close();
  source?.close();
});

async function api(method: string, params: Record<string, string>) {
  const query = new URLSearchParams({ method, token: TOKEN, ...params });
  return (await (await fetch(`${served.url}/server/api?${query}`)).json()).result;
}

test("a channel shows what is on and what is next, and its programmes open by keyboard and on a telephone", async () => {
  const id = await api("playlist_add_item", { title: "Harbour TV", infohash: "1".repeat(40), is_live: "1" });
  await api("playlist_update_item", { id: String(id), tvg_id: "a" });
  const url = `http://127.0.0.1:${(source.address() as AddressInfo).port}/guide.xml`;
  const guide = await api("epg_source_add", { url, update_now: "0", update_interval: "0" });
  assertEquals(await api("epg_source_update", { id: String(guide) }), "ok");
  const page = await browser.newPage({ viewport: { width: 390, height: 800 } });
  await page.goto(`${served.url}/#/library`);
  const line = page.locator(".item .on");
  await line.waitFor();
  assertMatch((await line.textContent())!, /^Harbour news until .+ · .+: Quiz$/);
  await page.getByRole("button", { name: "More: Harbour TV" }).click();
  await page.locator("dialog").getByText("Programme guide").focus();
  await page.keyboard.press("Enter");
  const on = page.locator(".programmes summary[aria-current=time]");
  await on.waitFor();
  assertMatch((await on.textContent())!, /Harbour news$/);
  assertEquals(await page.locator(".programmes summary").count(), 3);
  await on.focus();
  await page.keyboard.press("Enter");
  await page.getByText("Ships and tides.").waitFor();
  assertEquals([await misfits(page), await barriers(page)], [{ scroll: 0, small: [] }, []]);
  await shot(page, "guide");
  await page.goto(`${served.url}/#/play`);
  await page.locator(".shelf .on").waitFor();
  await page.goto(`${served.url}/#/library`);
  await page.locator("a[href='#/guide']").click();
  const grid = page.locator(".grid .time button");
  await grid.first().waitFor();
  await page.locator(".grid .on").focus();
  await page.keyboard.press("ArrowRight");
  const next = await page.evaluate(() => document.activeElement?.textContent);
  assertEquals(next, "Quiz");
  assertEquals([await misfits(page), await barriers(page)], [{ scroll: 0, small: [] }, []]);
  await shot(page, "guide-grid");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Record: Quiz" }).waitFor();
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Later" }).click();
  await grid.first().waitFor({ state: "detached" });
  await page.goto(`${served.url}/#/lists`);
  await page.getByText("programmes of your channels: 3").waitFor();
  assertEquals([await misfits(page), await barriers(page)], [{ scroll: 0, small: [] }, []]);
  await page.close();
});
