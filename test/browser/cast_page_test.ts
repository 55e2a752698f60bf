/** A page of one engine plays what another engine of the network sends to it. */
import { after, before, test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import type { Browser } from "playwright-core";
import { loadPorts } from "../../platform/detect.ts";
import { createEngine, type Engine, type EngineOptions } from "../../src/engine.ts";
import type { HttpServer } from "../../src/ports.ts";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { PAGE_HOST, type SeededFiles, seedFiles } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { until } from "../support/until.ts";
import { launchChromium } from "./support.ts";

const TOKEN = "ab".repeat(32);

interface Served {
  readonly engine: Engine;
  readonly server: HttpServer;
  readonly url: string;
}

let seeder: SeededFiles;
let sender: Served;
let receiver: Served;
let browser: Browser;

async function serve(options: EngineOptions): Promise<Served> {
  const ports = await loadPorts();
  const alone = { peerHost: "127.0.0.1", peerPort: 0, dht: false, lsd: false, accessToken: TOKEN };
  const engine = await createEngine(ports, { ...alone, ...options });
  const server = await ports.http.serve({ host: "0.0.0.0", port: 0 }, (request, info) => engine.fetch(request, info));
  engine.servedAt(server.address);
  return { engine, server, url: `http://${PAGE_HOST}:${server.address.port}` };
}

before(async () => {
  seeder = await seedFiles([{ path: "film.mp4", bytes: clip("mp4-end.mp4") }]);
  sender = await serve({ deviceName: "Study" });
  sender.engine.swarms.acquire({ metainfo: seeder.metainfo, magnet: parseMagnet(seeder.magnet) });
  const { result: { key } } = await call(sender, "get_cast_senders");
  // No program of this machine, whatever is installed here.
  receiver = await serve({ deviceName: "Tablet", playerPrograms: ["/nowhere/mpv"], allowCastFrom: [key] });
  browser = await launchChromium();
});
after(async () => {
  await browser?.close();
  for (const served of [sender, receiver]) {
    await served?.engine.close();
    await served?.server.close(0);
  }
  await seeder?.close();
});

async function call({ url }: Served, method: string, params: Record<string, string> = {}) {
  const query = new URLSearchParams({ method, token: TOKEN, ...params });
  return await (await fetch(`${url}/server/api?${query}`)).json();
}

test("a page plays what another engine sends, and is paused, sought and stopped from there", async () => {
  const id = `millrace:${(await call(receiver, "get_cast_senders")).result.key}`;
  const isListed = async () => {
    const { result: { players } } = await call(sender, "get_available_players");
    return players.some((player: { id: string }) => player.id === id);
  };
  const page = await browser.newPage();
  const foreign: string[] = [];
  page.on("request", (request) => !request.url().startsWith(receiver.url) && foreign.push(request.url()));
  await page.goto(`${receiver.url}/`, { waitUntil: "networkidle" });
  await page.click("footer button");
  await until("the engine with the page is listed", isListed, 40_000);

  const status = async () => (await call(sender, "get_player_status", { player_id: id })).result;
  const control = async (command: string, more: Record<string, string> = {}) =>
    assertEquals((await call(sender, "control_player", { player_id: id, command, ...more })).error, null, command);
  const opened = await call(sender, "open_in_player", { player_id: id, infohash: seeder.metainfo.infohashHex });
  assertEquals(opened.error, null);
  assertMatch(await page.locator("h1").textContent() ?? "", /film\.mp4/);
  await until(
    "pictures are shown",
    () => page.evaluate(() => document.querySelector("video")!.getVideoPlaybackQuality().totalVideoFrames > 10),
  );
  await control("pause");
  await until("it has paused", async () => (await status()).state === "paused");
  await control("seek", { position: "4" });
  await until("it is where it was told to go", async () => Math.abs((await status()).position - 4) < 0.5);
  const path = await page.evaluate(() =>
    performance.getEntriesByType("resource").map(({ name }) => name).find((name) => name.includes("/cast/media/"))!
  );
  await control("stop");
  await page.waitForSelector("form.paste");
  assertEquals((await fetch(path)).status, 404, "nothing is passed on any more");
  assertEquals(foreign.filter((url) => !/^(blob|data):/.test(url)), []);
});
