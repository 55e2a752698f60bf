/** Shared by the tests of the web page: a long film, screenshots, and axe. */
import { execFile } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, readFile, rename } from "node:fs/promises";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Page } from "playwright-core";

/** Folder for screenshots, for people to look at; without it none are made. */
const SHOTS = process.env["WEBUI_SHOTS"];

const AXE = readFileSync(new URL("../../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

/** Colours of the film: the page's own, from the deep water to the lamp. */
const HUES = "c0=0x0b1f2a:c1=0x12697a:c2=0x6cc6d3:c3=0xf0a860:c4=0xa34d00";

/** Drawn small and enlarged: that takes a third of the time. */
const DRAWN = "240x136";

/** Films that were made once, by what ffmpeg was told: several files of tests show the same, and all do so twice. */
const FILMS = new URL("../../node_modules/.cache/films/", import.meta.url);

/** A film of `seconds`, about 100 KB per second, with sound in `languages`: its bytes. */
export async function makeFilm(
  seconds: number,
  { languages = ["eng"], size = "960x540" }: { readonly languages?: readonly string[]; readonly size?: string } = {},
): Promise<Uint8Array> {
  const args = [
    ...[
      "-v",
      "error",
      "-f",
      "lavfi",
      "-i",
      `gradients=s=${DRAWN}:r=25:speed=0.01:n=5:${HUES}:d=${seconds},scale=${size}`,
    ],
    ...languages.flatMap((_, n) => ["-f", "lavfi", "-i", `sine=frequency=${220 * (n + 1)}:duration=${seconds}`]),
    ...[
      "-map",
      "0:v",
      ...languages.flatMap((language, n) => {
        return ["-map", `${n + 1}:a`, `-metadata:s:a:${n}`, `language=${language}`];
      }),
    ],
    ...["-c:v", "libx264", "-preset", "ultrafast", "-g", "50", "-b:v", "800k", "-minrate", "800k", "-maxrate", "800k"],
    ...["-bufsize", "800k", "-x264-params", "nal-hrd=cbr", "-pix_fmt", "yuv420p", "-c:a", "aac", "-b:a", "64k"],
    ...["-movflags", "+faststart"],
  ];
  const name = createHash("sha256").update(args.join("\n")).digest("hex");
  const path = fileURLToPath(new URL(`${name}.mp4`, FILMS));
  if (!existsSync(path)) {
    // Another test may make the same film meanwhile: only a whole one gets its name.
    const partial = `${path}.${randomUUID()}.mp4`;
    await mkdir(FILMS, { recursive: true });
    await promisify(execFile)("ffmpeg", [...args, partial]);
    await rename(partial, path);
  }
  return new Uint8Array(await readFile(path));
}

/** Saves a screenshot of the page if a folder is given. */
export async function shot(page: Page, name: string): Promise<void> {
  if (SHOTS === undefined) return;
  await mkdir(SHOTS, { recursive: true });
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: `${SHOTS}/${name}.png` });
}

/** Faults that axe finds on the page now. */
export async function barriers(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return await page.evaluate(async () => {
    // deno-lint-ignore no-explicit-any -- axe puts itself there
    const { violations } = await (globalThis as any).axe.run();
    return violations
      // deno-lint-ignore no-explicit-any -- its results
      .map(({ id, nodes }: any) => `${id}: ${nodes.map((node: any) => node.html).join(" ")}`);
  });
}

/** Opens the player's menu of everything that is not in its row. */
export async function openMore(page: Page): Promise<void> {
  await page.click(".others > button[aria-expanded=false]");
}

/** Pictures shown so far. */
export function frames(page: Page): Promise<number> {
  return page.evaluate(() => document.querySelector("video")?.getVideoPlaybackQuality().totalVideoFrames ?? 0);
}

/** Bytes of sound that were decoded. */
export function soundBytes(page: Page): Promise<number> {
  // deno-lint-ignore no-explicit-any -- Chromium's own counter
  return page.evaluate(() => (document.querySelector("video") as any)?.webkitAudioDecodedByteCount ?? 0);
}

/** How far it sticks out to the side, px, and how many targets are too small for a thumb or a remote. */
export function misfits(page: Page): Promise<{ scroll: number; small: string[] }> {
  return page.evaluate(() => ({
    scroll: document.documentElement.scrollWidth - innerWidth,
    small: [...document.querySelectorAll("button, .button, nav a, summary, input:not([type=file])")].filter(
      (element) => {
        if (!element.checkVisibility()) return false;
        const target = element.closest("label.switch") ?? element;
        return target.getBoundingClientRect().height < 44;
      },
    ).map((element) => element.outerHTML.slice(0, 120)),
  }));
}
