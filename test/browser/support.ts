/** A page with hls.js in headless Chromium, served from another origin than the engine's: CORS has to be right. */
import { readFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { chromium, type Page } from "playwright-core";

/** An open page, and the server that it came from. */
export interface PlayerPage {
  readonly page: Page;
  close(): Promise<void>;
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
    ],
  }).catch((error) => {
    pages.close();
    throw error;
  });
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${(pages.address() as AddressInfo).port}/`);
  return {
    page,
    async close() {
      await browser.close();
      pages.close();
    },
  };
}
