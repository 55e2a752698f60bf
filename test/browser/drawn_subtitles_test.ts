/** The page draws subtitles that are no text. */
import { after, before, test } from "node:test";
import { assert, assertEquals, assertGreater, assertLess } from "@std/assert";
import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import process from "node:process";
import { promisify } from "node:util";
import type { Browser, Page } from "playwright-core";
import { discNothing, discPicture, supFile } from "../media/support/picture-subtitles.ts";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { run } from "../support/process.ts";
import { until } from "../support/until.ts";
import { launchChromium } from "./support.ts";

const SCREEN = [640, 360] as const;
/** When the pictures are shown, and when they are taken away, ms. */
const SHOWN = [[1000, 4000], [9500, 14_000]] as const;

/** A font that nothing but the film brings along. */
const FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSerif-Bold.ttf";
const SCRIPT = `[Script Info]
ScriptType: v4.00+
PlayResX: 640
PlayResY: 360
ScaledBorderAndShadow: yes

[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, Bold, Italic, Underline, StrikeOut, ScaleX, ScaleY, Spacing, Angle, BorderStyle, Outline, Shadow, Alignment, MarginL, MarginR, MarginV, Encoding
Style: Default,DejaVu Serif,30,&H00FFFFFF,&H000000FF,&H00000000,&H80000000,1,0,0,0,100,100,0,0,1,2,1,2,20,20,20,1

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:01.00,0:00:04.00,Default,,0,0,0,,{\\k50}Ka{\\kf80}ra{\\ko60}oke {\\k200}line
Dialogue: 0,0:00:01.00,0:00:04.00,Default,,0,0,0,,{\\pos(160,120)\\frz15\\1c&H00FFFF&}Turned sign
Dialogue: 0,0:00:01.00,0:00:04.00,Default,,0,0,0,,{\\move(350,60,600,200)\\fad(400,400)}Moving
Dialogue: 1,0:00:01.00,0:00:04.00,Default,,0,0,0,,{\\an7\\pos(380,200)\\p1\\1c&H00FF00&\\bord1}m 0 0 l 100 0 100 60 0 60{\\p0}
Dialogue: 0,0:00:09.50,0:00:14.00,Default,,0,0,0,,{\\an5\\pos(320,160)\\t(0,3000,\\fscx200\\fscy200)}Grows
`;

let home: { path: string; remove(): Promise<void> };
let browser: Browser;
let engine: ServedEngine;
let seeder: SeededFiles;

const at = (name: string) => `${home.path}/${name}`;
async function ran(command: string, ...args: string[]): Promise<void> {
  const { code, text } = await run(command, args, { timeoutMs: 60_000 });
  assertEquals(code, 0, text.slice(-2000));
}

before(async () => {
  home = await temporaryDirectory();
  const sets = SHOWN.flatMap(([from, to], n) => {
    const colour = (x: number, y: number) => 1 + ((x >> 4) + (y >> 3)) % 2;
    const picture = discPicture({ number: 2 * n, width: 400, height: 48 + 16 * n, screen: SCREEN, colour });
    return [[from, picture], [to, discNothing(2 * n + 1, SCREEN)]] as const;
  });
  await writeFile(at("text.sup"), supFile(sets));
  await writeFile(at("text.ass"), SCRIPT);
  const graphs = [`color=c=0x305070:s=${SCREEN.join("x")}:r=25:d=16`, "sine=440:r=48000:d=16"];
  const inputs = [
    ...graphs.flatMap((graph) => ["-f", "lavfi", "-i", graph]),
    "-i",
    at("text.sup"),
    "-i",
    at("text.ass"),
  ];
  const coders = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-pix_fmt", "yuv420p", "-c:a", "aac"];
  const maps = [0, 1, 2, 3].flatMap((n) => ["-map", String(n)]);
  const texts = ["-c:s", "copy", "-metadata:s:s:0", "language=ger", "-metadata:s:s:1", "language=ger"];
  const fonts = ["-attach", FONT, "-metadata:s:t:0", "mimetype=font/ttf", "-metadata:s:t:0", "filename=Serif.ttf"];
  await ran("ffmpeg", "-nostdin", "-v", "error", ...inputs, ...maps, ...texts, ...fonts, ...coders, at("film.mkv"));
  seeder = await seedFiles([{ path: "film.mkv", bytes: new Uint8Array(await readFile(at("film.mkv"))) }]);
  engine = await serveEngine();
  browser = await launchChromium();
});
after(async () => {
  await browser?.close();
  await engine?.close();
  await seeder?.close();
  await home?.remove();
});

/** Brightness of each pixel of a picture in a file, in the size of the film. */
async function brightness(path: string): Promise<Uint8Array> {
  const args = [
    "-v",
    "error",
    "-i",
    path,
    "-vf",
    `scale=${SCREEN.join(":")}`,
    "-pix_fmt",
    "gray",
    "-f",
    "rawvideo",
    "-",
  ];
  const { stdout } = await promisify(execFile)("ffmpeg", args, { encoding: "buffer", maxBuffer: 1 << 24 });
  return new Uint8Array(stdout);
}

function difference(one: Uint8Array, other: Uint8Array): number {
  assertEquals(one.length, other.length);
  return one.reduce((sum, value, i) => sum + Math.abs(value - other[i]!), 0) / one.length;
}

async function seek(page: Page, toS: number): Promise<void> {
  await page.evaluate(async (to) => {
    const video = document.querySelector("video")!;
    video.pause();
    const sought = new Promise((resolve) => video.addEventListener("seeked", resolve, { once: true }));
    video.currentTime = to;
    await sought;
  }, toS);
}

/** The picture with what is drawn over it, without the controls. */
async function pageShot(page: Page, name: string): Promise<Uint8Array> {
  await page.evaluate(() => {
    const video = document.querySelector("video")!;
    video.controls = false;
    const drawn = document.querySelector<HTMLElement>(".drawn")!;
    for (const one of document.querySelectorAll<HTMLElement>("body *")) {
      if (!one.contains(video) && !one.contains(drawn) && !drawn.contains(one)) one.style.visibility = "hidden";
    }
  });
  const path = at(`${name}.png`);
  const box = await page.evaluate(() => {
    const video = document.querySelector("video")!;
    const { left, top, width, height } = video.getBoundingClientRect();
    const wide = Math.min(width, height * video.videoWidth / video.videoHeight);
    const high = wide * video.videoHeight / video.videoWidth;
    return { x: left + (width - wide) / 2, y: top + (height - high) / 2, width: wide, height: high };
  });
  await page.screenshot({ path, clip: box });
  await keepShot(path, `${name}-page.png`);
  return await brightness(path);
}

/** For people to look at, if a folder is given. */
async function keepShot(path: string, name: string): Promise<void> {
  const folder = process.env["WEBUI_SHOTS"];
  if (folder === undefined) return;
  await mkdir(folder, { recursive: true });
  await writeFile(`${folder}/${name}`, await readFile(path));
}

async function played(): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(`${engine.url}/#/play?q=${encodeURIComponent(seeder.magnet)}`);
  await page.waitForSelector(".files li, video");
  if (await page.locator(".files").count() > 0) await page.click(".files li:first-child button");
  await page.evaluate(() => addEventListener("play", (event) => (event.target as HTMLVideoElement).muted = true, true));
  return page;
}

/** Turns on the subtitles whose name ends so, and all others off. */
async function turnOn(page: Page, ending: string): Promise<void> {
  const isHere = () =>
    page.evaluate(
      (end) => [...document.querySelector("video")?.textTracks ?? []].some(({ label }) => label.endsWith(end)),
      ending,
    );
  await until(`${ending} is listed`, isHere);
  await page.evaluate((end) => {
    for (const track of document.querySelector("video")!.textTracks) {
      track.mode = track.label.endsWith(end) ? "showing" : "disabled";
    }
  }, ending);
}

const isDrawn = (page: Page) =>
  page.evaluate(() => {
    const canvas = document.querySelector<HTMLCanvasElement>(".drawn canvas");
    if (!canvas || canvas.width === 0) return false;
    // A copy: the canvas may belong to a worker.
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d")!;
    copy.drawImage(canvas, 0, 0);
    return copy.getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value !== 0);
  });

/** The same moment as mpv shows it, with subtitles `number`. */
async function mpvShot(atS: number, number: number, name: string): Promise<Uint8Array> {
  const folder = at(`mpv-${name}`);
  await mkdir(folder);
  await ran(
    "mpv",
    ...["--no-config", "--ao=null", "--no-audio", `--start=${atS}`, "--hr-seek=yes", "--frames=1", `--sid=${number}`],
    // It looks back for what is shown already.
    ...["--demuxer-mkv-subtitle-preroll=yes", "--demuxer-mkv-subtitle-preroll-secs=8"],
    ...["--vo=image", "--vo-image-format=png", `--vo-image-outdir=${folder}`, at("film.mkv")],
  );
  await keepShot(`${folder}/00000001.png`, `${name}-mpv.png`);
  return await brightness(`${folder}/00000001.png`);
}

test("the page draws PGS of a film, before and after a seek, and takes it away", async () => {
  const page = await played();
  const requests: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  try {
    await until("it plays", () => page.evaluate(() => document.querySelector("video")!.readyState >= 3));
    await turnOn(page, "(PGS)");
    await seek(page, 2);
    await until("the picture is drawn", () => isDrawn(page));
    const first = await pageShot(page, "pgs-first");
    // It began in the segment before.
    await seek(page, 10.6);
    await until("the other picture is drawn", () => isDrawn(page));
    const second = await pageShot(page, "pgs-second");
    assertGreater(difference(second, first), 0.5);
    await seek(page, 5);
    await until("nothing is drawn", async () => !await isDrawn(page));
    // White and black in equal parts where the picture is, and what lies under it elsewhere.
    const clear = await pageShot(page, "pgs-none");
    const changed = [...first.keys()].filter((i) => Math.abs(first[i]! - clear[i]!) > 20);
    assertLess(Math.abs(changed.length - 400 * 48), 1500);
    assertLess(Math.abs(changed.filter((i) => first[i]! > 200).length - 400 * 24), 1500);
    // It loads what it shows, and no more: the film has a few segments.
    const files = requests.filter((url) => url.includes(".sup"));
    assert(files.length > 0 && files.length < 12, files.join("\n"));
    await page.evaluate(() =>
      [...document.querySelector("video")!.textTracks].forEach((track) => track.mode = "disabled")
    );
    await until("the layer is gone", async () => await page.locator(".drawn canvas").count() === 0);
  } finally {
    await page.close();
  }
});

test("the page draws a script of a film as mpv does, in the film's font, before and after a seek", async () => {
  const page = await played();
  const [requests, refused]: string[][] = [[], []];
  page.on("request", (request) => requests!.push(request.url()));
  page.on("console", (message) => /Content Security/i.test(message.text()) && refused!.push(message.text()));
  try {
    await until("it plays", () => page.evaluate(() => document.querySelector("video")!.readyState >= 3));
    assertEquals(requests!.filter((url) => /libass|ass-worker|font/.test(url)), [], "nothing is loaded in advance");
    await seek(page, 2);
    await turnOn(page, "(ASS)");
    const fonts = page.waitForEvent("requestfinished", (request) => /font-0$/.test(request.url()));
    await until("the script is drawn", () => isDrawn(page));
    await fonts;
    // Both are libass. The pictures of the film are decoded and scaled by different programs.
    for (const [atS, name] of [[2, "ass-first"], [10.6, "ass-second"]] as const) {
      await seek(page, atS);
      const wanted = await mpvShot(atS, 2, name);
      await until(`the page shows ${name}`, async () => {
        const shot = await pageShot(page, name);
        return await isDrawn(page) && difference(shot, wanted) < 1.5;
      });
    }
    await seek(page, 6);
    await until("nothing is drawn", async () => !await isDrawn(page));
    // Without what is drawn it would be no match.
    const clear = await pageShot(page, "ass-none");
    assertGreater(difference(clear, await brightness(at("mpv-ass-first/00000001.png"))), 3);
    assertEquals(refused, []);
  } finally {
    await page.close();
  }
});
