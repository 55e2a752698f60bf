/** The API's page in headless Chromium: it lists everything in the document, and its forms call the engine. */
import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import process from "node:process";
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Browser, Page } from "playwright-core";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { launchChromium } from "./support.ts";

const SHOTS = process.env["WEBUI_SHOTS"];
const AXE = readFileSync(new URL("../../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

let seeder: SeededFiles;
let served: ServedEngine;
let browser: Browser;
let page: Page;
const troubles: string[] = [];

before(async () => {
  seeder = await seedFiles([{ path: "clip.mp4", bytes: clip("mp4-end.mp4") }]);
  served = await serveEngine();
  browser = await launchChromium();
  page = await browser.newPage({ viewport: { width: 1000, height: 800 } });
  page.on("console", (message) => message.type() === "error" && troubles.push(message.text()));
  page.on("pageerror", (error) => troubles.push(String(error)));
  await page.goto(`${served.url}/docs`);
  await page.waitForSelector("details");
});
after(async () => {
  await browser?.close();
  await served?.close();
  await seeder?.close();
});

/** Fills in the form of an operation, sends it, and waits for the response. */
async function call(
  id: string,
  fields: Readonly<Record<string, string>> = {},
): Promise<{ text: string; failed: boolean }> {
  const row = page.locator(`[id="${id}"]`);
  if (await row.getAttribute("open") === null) await row.locator("summary").click();
  for (const [name, value] of Object.entries(fields)) {
    const input = row.locator(`[name="${name}"]`);
    if (await input.evaluate((one) => one.tagName) === "SELECT") await input.selectOption(value);
    else await input.fill(value);
  }
  const answered = page.waitForResponse((response) => !response.url().endsWith("openapi.json"));
  await row.locator("button").click();
  await answered;
  const output = row.locator("output");
  await row.locator("button:enabled").waitFor();
  return { text: await output.innerText(), failed: await output.evaluate((one) => one.className === "failure") };
}

/** What axe finds of weight. */
async function barriers(): Promise<string[]> {
  await page.evaluate(AXE);
  return await page.evaluate(async () => {
    // deno-lint-ignore no-explicit-any -- axe puts itself there
    const { violations } = await (globalThis as any).axe.run();
    // deno-lint-ignore no-explicit-any -- its results
    return violations.filter(({ impact }: any) => impact === "serious" || impact === "critical").map(({ id }: any) =>
      id
    );
  });
}

test("/docs lists every operation of the document", async () => {
  const { paths } = await (await fetch(`${served.url}/openapi.json`)).json();
  const expected = Object.values(paths as Record<string, Record<string, { operationId: string }>>)
    .flatMap((verbs) => Object.values(verbs).map(({ operationId }) => operationId));
  const listed = await page.locator("details").evaluateAll((rows) => rows.map(({ id }) => id));
  assertEquals(listed.sort(), expected.sort());
});

test("forms of /docs call private methods with the token, and hide it", async () => {
  const added = await call("playlist_add_item", { "query.title": "From the page", "query.infohash": "1".repeat(40) });
  assertMatch(added.text, /"result": 1,/);
  assertMatch(added.text, /token=…/);
  const list = await call("playlist_get", { "query.limit": "1" });
  assertMatch(list.text, /"title": "From the page"/);
  assertEquals([added.failed, list.failed], [false, false]);
  const missing = await call("get_task", { "query.task_id": "7" });
  assertMatch(missing.text, /"code": 5/);
  assert(missing.failed);
});

test("forms of /docs send files and JSON, start a stream and describe its response", async () => {
  const row = page.locator("#get_media_files_post");
  await row.locator("summary").click();
  await row.locator('[name="part.file"]').setInputFiles({
    name: "clip.torrent",
    mimeType: "application/x-bittorrent",
    buffer: Buffer.from(seeder.transportFile),
  });
  assertMatch((await call("get_media_files_post")).text, new RegExp(seeder.metainfo.infohashHex));
  assertMatch((await call("call_by_body", { "part.method": "get_status" })).text, /"playlist_loaded": true/);
  const started = await call("start_ts", { "query.magnet": seeder.magnet, "query.format": "json" });
  const { response } = JSON.parse(started.text.slice(started.text.indexOf("{")));
  const place = { "path.infohash": response.infohash, "path.session": response.playback_session_id };
  assertMatch((await call("session_stat", place)).text, /"status": "(?:prefuf|dl)"/);
  assertMatch((await call("read_ts", place)).text, /video\/mp2t\s+\d+ bytes/);
  assertMatch((await call("session_command", { ...place, "query.method": "stop" })).text, /"response": "ok"/);
});

test("/docs has no barrier of weight and loads without a complaint", async () => {
  assertEquals(await barriers(), []);
  await page.emulateMedia({ colorScheme: "dark" });
  assertEquals(await barriers(), []);
  assertEquals(troubles, []);
  if (SHOTS === undefined) return;
  await mkdir(SHOTS, { recursive: true });
  await page.screenshot({ path: `${SHOTS}/docs.png` });
});
