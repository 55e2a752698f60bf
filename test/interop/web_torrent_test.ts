/** WebTorrent in a page of Chromium, and bittorrent-tracker's server: a film in both directions by WebRTC. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import type { Page } from "playwright-core";
import { launchChromium } from "../browser/support.ts";
import { bytesOf, seedNoise, startSession } from "../loopback/support.ts";
import { serveEngine } from "../support/engine.ts";
import { start } from "../support/process.ts";
import { noise } from "../support/random.ts";
import { listen, stop } from "../support/web.ts";
import { packageFolder } from "./support/modules.ts";

const FILM = noise(3_000_000, 51);
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

/** Runs `body` with the address of a tracker, and a page in which `client` is a WebTorrent that asks no STUN servers. */
async function withPage(body: (tracker: string, page: Page) => Promise<void>): Promise<void> {
  const script = fileURLToPath(new URL("./support/page-tracker.mjs", import.meta.url));
  const program = start("node", [script, packageFolder("bittorrent-tracker")]);
  const library = await readFile(join(packageFolder("webtorrent"), "dist/webtorrent.min.js"));
  const web = createServer(({ url }, response) => {
    if (url === "/webtorrent.js") return void response.setHeader("content-type", "text/javascript").end(library);
    response.setHeader("content-type", "text/html").end(`<!doctype html><script type=module>
      import WebTorrent from "/webtorrent.js";
      globalThis.client = new WebTorrent({ tracker: { rtcConfig: { iceServers: [] } } });
    </script>`);
  });
  const port = await listen(web);
  const browser = await launchChromium();
  try {
    const [, trackerPort] = await program.line(/^(\d+)$/);
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${port}/`);
    await page.waitForFunction("globalThis.client !== undefined");
    await body(`ws://127.0.0.1:${trackerPort}`, page);
  } finally {
    await browser.close();
    await stop(web);
    await program.stop();
  }
}

test("serve plays a film that a page of WebTorrent alone has", () =>
  withPage(async (tracker, page) => {
    const magnet = await page.evaluate(`new Promise((resolve) => {
      const film = new Uint8Array(${FILM.length});
      let state = 51;
      for (let i = 0; i < film.length; i++) {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        film[i] = state >>> 24;
      }
      client.seed(new File([film], "film.mkv"), { announce: [${
      JSON.stringify(tracker)
    }] }, ({ magnetURI }) => resolve(magnetURI));
    })`) as string;
    const watching = await serveEngine({ startTimeoutMs: 60_000 });
    try {
      const started = await startSession(watching, "getfile", { magnet });
      assertEquals(sha256(await bytesOf(started.playback_url)), sha256(FILM));
    } finally {
      await watching.close();
    }
  }));

test("a page of WebTorrent downloads a film that the engine alone has", () =>
  withPage(async (tracker, page) => {
    const seeded = await seedNoise(FILM.length, { seed: 51, trackers: [[tracker]] });
    const { infohashHex } = seeded.metainfo;
    const magnet = `magnet:?xt=urn:btih:${infohashHex}&tr=${encodeURIComponent(tracker)}`;
    try {
      const [digest, types] = await page.evaluate(`new Promise((resolve) => {
        client.add(${JSON.stringify(magnet)}, (torrent) => {
          const types = new Set();
          const done = async () => {
            const bytes = await (await torrent.files[0].blob()).arrayBuffer();
            const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
            resolve([[...digest].map((byte) => byte.toString(16).padStart(2, "0")).join(""), [...types]]);
          };
          torrent.on("wire", ({ type }) => types.add(type));
          for (const { type } of torrent.wires) types.add(type);
          torrent.done ? done() : torrent.on("done", done);
        });
      })`) as [string, string[]];
      assertEquals(digest, sha256(FILM));
      assert(types.includes("webrtc"), `${types}`);
    } finally {
      await seeded.close();
    }
  }));
