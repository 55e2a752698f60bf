/** Pages in headless Chromium, served from other origins than the engine's: CORS has to be right. */
import { readFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Browser, chromium, type Page } from "playwright-core";

/** What a page is waited for, ms: beside other tests it has a fraction of a core. */
const WAIT_MS = 90_000;

/** Debian's Chromium, headless, without requests of its own. `flags`: further command line flags. */
export async function launchChromium(flags: readonly string[] = []): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--autoplay-policy=no-user-gesture-required",
      ...flags,
    ],
  });
  // `newPage` uses it, too.
  const newContext = browser.newContext.bind(browser);
  browser.newContext = async (options) => {
    const context = await newContext(options);
    context.setDefaultTimeout(WAIT_MS);
    return context;
  };
  return browser;
}

/** An open page with hls.js, and the server that it came from. */
export interface PlayerPage {
  readonly page: Page;
  /** Origin of the page, which the engine has to allow. */
  readonly origin: string;
  close(): Promise<void>;
}

/**
 * Joins the swarm of `magnet` for an hour as a player on this machine does: the engine dials peers on this machine only for
 * local programs, whatever a page of another origin names.
 */
export async function joinAsPlayer(url: string, magnet: string): Promise<void> {
  const query = new URLSearchParams({ magnet, format: "json", pid: "player", use_api_stop: "1" });
  const { error } = await (await fetch(`${url}/engine/manifest.m3u8?${query}`)).json();
  if (error !== null) throw new Error(error);
}

/** Opens it. `answer` gives what the page's own server has besides; true when it answers. */
export async function openPlayerPage(answer: (path: string, response: ServerResponse) => boolean): Promise<PlayerPage> {
  const library = await readFile(new URL("../../node_modules/hls.js/dist/hls.min.js", import.meta.url));
  const pages = createServer((request, response) => {
    const path = request.url ?? "";
    if (answer(path, response)) return;
    if (path === "/hls.js") response.setHeader("content-type", "text/javascript").end(library);
    else {
      response.setHeader("content-type", "text/html")
        .end("<!doctype html><video muted></video><script src=/hls.js></script>");
    }
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => pages.once("listening", resolve));
  const browser = await launchChromium().catch((error) => {
    pages.close();
    throw error;
  });
  const page = await browser.newPage();
  const origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
  await page.goto(`${origin}/`);
  return {
    page,
    origin,
    async close() {
      await browser.close();
      pages.close();
    },
  };
}
