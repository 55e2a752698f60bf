/** The page asks the browser what it decodes before it loads anything of a film, and takes the file itself where HLS has no sound. */
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import type { Browser, Page } from "playwright-core";
import { loadPorts } from "../../platform/detect.ts";
import { MillraceError } from "../../src/errors.ts";
import { seedFiles, serveOn, temporaryDirectory } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { run } from "../support/process.ts";
import { until } from "../support/until.ts";
import { launchChromium } from "./support.ts";
import { frames, soundBytes } from "./webui-support.ts";

let browser: Browser;

before(async () => {
  browser = await launchChromium();
});
after(() => browser?.close());

/** Plays the film in the page of an engine without ffmpeg. */
async function watch(name: string, bytes: Uint8Array, body: (page: Page, asked: readonly string[]) => Promise<void>) {
  const film = await seedFiles([{ path: name, bytes }]);
  const ports = await loadPorts();
  const spawn = () => Promise.reject(new MillraceError("unavailable", "ffmpeg was not found"));
  const { url, close } = await serveOn({ ...ports, processes: { spawn } }, {});
  const page = await browser.newPage();
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  try {
    await page.goto(`${url}/#/play?q=${encodeURIComponent(film.magnet)}`);
    await body(page, asked);
  } finally {
    await page.close();
    await close();
    await film.close();
  }
}

const status = async (page: Page) =>
  (await page.locator(".status").textContent({ timeout: 5000 }).catch(() => "")) ?? "";

test("a film whose sound HLS lacks plays as the file itself in a browser that plays its container, seeks included", async () => {
  await watch("vorbis.mkv", await makeFilm(), async (page) => {
    await until("pictures are shown", async () => await frames(page) > 10);
    await until("there is sound", async () => await soundBytes(page) > 0);
    assertMatch(await page.evaluate(() => document.querySelector("video")!.src), /\/engine\/f\//);
    await page.evaluate(() => {
      const video = document.querySelector("video")!;
      video.pause();
      video.currentTime = 4;
    });
    await until("it was sought", () =>
      page.evaluate(() => {
        const { seeking, currentTime, readyState } = document.querySelector("video")!;
        return !seeking && currentTime === 4 && readyState >= 2;
      }));
    assertEquals(await status(page), "");
  });
});

test("a film without sound for the browser or a converter shows its pictures, and what is missing in words", async () => {
  await watch("ac3.mp4", clip("mp4-ac3.mp4"), async (page) => {
    await until("pictures are shown", async () => await frames(page) > 10);
    await until("it is said", async () => /no sound.*AC-3/.test(await status(page)));
  });
});

test("a film whose pictures the browser cannot decode is refused in words before anything of it is loaded", async () => {
  await watch("hevc.mp4", clip("mp4-hevc.mp4"), async (page, asked) => {
    await until("it is said", async () => /HEVC/.test(await status(page)));
    assertMatch(await status(page), /VLC/);
    assertEquals(asked.filter((path) => /\.(?:ts|m4s|mp4)$|hls\.js$/.test(path)), []);
  });
});

/** Six seconds of H.264 and Vorbis in Matroska: no HLS carries the sound. */
async function makeFilm(): Promise<Uint8Array> {
  const folder = await temporaryDirectory();
  try {
    const path = `${folder.path}/film.mkv`;
    const inputs = ["testsrc2=s=320x180:r=25:d=6", "sine=d=6"].flatMap((graph) => ["-f", "lavfi", "-i", graph]);
    const coders = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "25", "-c:a", "libvorbis"];
    const { code, stderr } = await run("ffmpeg", ["-nostdin", "-v", "error", ...inputs, ...coders, path]);
    assertEquals(code, 0, stderr);
    return new Uint8Array(await readFile(path));
  } finally {
    await folder.remove();
  }
}
