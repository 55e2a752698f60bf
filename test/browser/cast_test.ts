/** The page casts a film to a DLNA renderer that we did not write, and is its remote control. */
import { networkInterfaces } from "node:os";
import { after, before, test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import type { Browser, Page } from "playwright-core";
import { loadPorts } from "../../platform/detect.ts";
import { createEngine, type Engine } from "../../src/engine.ts";
import type { HttpServer } from "../../src/ports.ts";
import { PAGE_HOST, type SeededFiles, seedFiles } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { type Program, start } from "../support/process.ts";
import { until } from "../support/until.ts";
import { launchChromium } from "./support.ts";
import { barriers, shot } from "./webui-support.ts";

let seeder: SeededFiles;
let engine: Engine;
let server: HttpServer;
let renderer: Program;
let browser: Browser;
let page: Page;

/** The first interface with a network of others. */
function lanName(): string {
  for (const [name, addresses] of Object.entries(networkInterfaces())) {
    if (addresses?.some(({ family, internal }) => String(family).endsWith("4") && !internal)) return name;
  }
  throw new Error("this machine has no network for the renderer to be in");
}

before(async () => {
  renderer = start("gmediarender", [
    `--interface-name=${lanName()}`,
    `--uuid=${crypto.randomUUID()}`,
    "--friendly-name=Living room",
    // They take the time that a film takes, and show nothing.
    "--gstout-audiosink=fakeaudiosink",
    "--gstout-videosink=fakevideosink",
    "--logfile=stdout",
  ]);
  seeder = await seedFiles([{ path: "film.ts", bytes: clip("ts-188.ts") }]);
  const ports = await loadPorts();
  engine = await createEngine(ports, { peerHost: "127.0.0.1", peerPort: 0, dht: false, lsd: false, cache: "ram" });
  server = await ports.http.serve({ host: "0.0.0.0", port: 0 }, (request, info) => engine.fetch(request, info));
  browser = await launchChromium();
  page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
});
after(async () => {
  await browser?.close();
  await renderer?.stop();
  await engine?.close();
  await server?.close(0);
  await seeder?.close();
});

test("a film is sent to a television, paused and stopped there", async () => {
  await page.goto(`http://${PAGE_HOST}:${server.address.port}/#/play?${new URLSearchParams({ q: seeder.magnet })}`);
  const television = page.locator("button.other:has-text('Living room')");
  await until("the television is found", async () => {
    await page.click(".play-on button[aria-expanded=false]");
    await page.waitForFunction(() => !/Looking/.test(document.querySelector(".play-on .note")!.textContent!));
    if (await television.count() === 1) return true;
    await page.keyboard.press("Escape");
    return false;
  }, 60_000);
  await television.click();
  await page.waitForSelector(".cast", { timeout: 60_000 });
  assertMatch(await page.locator(".cast .note").first().textContent() ?? "", /^On Living room$/);
  const status = page.locator(".cast .status");
  await until("it plays there", async () => await status.textContent() === "Playing");
  assertEquals(await barriers(page), []);
  await shot(page, "cast");
  await page.click(".cast >> text=Pause");
  await until("it has paused", async () => await status.textContent() === "Paused");
  await page.click(".cast >> text=Resume");
  await until("it goes on", async () => await status.textContent() === "Playing");
  await page.click(".cast >> text=Stop");
  await page.waitForSelector(".files li");
});
