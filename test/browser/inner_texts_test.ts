/** hls.js in Chromium shows the texts inside a film at their times, in MPEG TS and in fragmented MP4. */
import { after, before, test } from "node:test";
import { assertEquals, assertLess } from "@std/assert";
import { readFile, writeFile } from "node:fs/promises";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { clipPath } from "../support/fixtures.ts";
import { run } from "../support/process.ts";
import { joinAsPlayer, openPlayerPage, type PlayerPage } from "./support.ts";

const SRT = "1\n00:00:01,000 --> 00:00:02,000\nfirst\n\n2\n00:00:04,000 --> 00:00:05,000\nsecond\n";
const CLIPS = ["mkv-cues.mkv", "webm-vp9-opus.webm", "mp4-front.mp4"];
const extensionOf = (name: string) => name.startsWith("mp4") ? "mp4" : "mkv";

let seeder: SeededFiles;
let served: ServedEngine;
let player: PlayerPage;

before(async () => {
  const directory = await temporaryDirectory();
  const files = [];
  for (const [n, name] of CLIPS.entries()) {
    const [texts, film] = [`${directory.path}/texts.srt`, `${directory.path}/${n}.${extensionOf(name)}`];
    await writeFile(texts, SRT);
    const inputs = ["-i", clipPath(name), "-i", texts];
    await run("ffmpeg", [
      "-nostdin",
      "-v",
      "error",
      ...inputs,
      "-map",
      "0",
      "-map",
      "1",
      "-c",
      "copy",
      "-c:s",
      extensionOf(name) === "mp4" ? "mov_text" : "ass",
      film,
    ]);
    files.push({ path: `${n}.${extensionOf(name)}`, bytes: new Uint8Array(await readFile(film)) });
  }
  await directory.remove();
  seeder = await seedFiles(files, { name: "texts" });
  player = await openPlayerPage(() => false);
  served = await serveEngine({ allowOrigins: [player.origin] });
  await joinAsPlayer(served.url, seeder.magnet);
});
after(async () => {
  await player?.close();
  await served?.close();
  await seeder?.close();
});

/** Texts that hls.js adds to the video, with their beginning on its clock. */
function cuesOf(url: string): Promise<{ text: string; startS: number }[]> {
  return player.page.evaluate(async (address) => {
    // deno-lint-ignore no-explicit-any
    const Hls = (globalThis as any).Hls;
    const video = document.createElement("video");
    video.muted = true;
    document.querySelector("video")!.replaceWith(video);
    const hls = new Hls({ enableWorker: false });
    const found = new Promise<{ text: string; startS: number }[]>((resolve, reject) => {
      setTimeout(() => reject(new Error("no texts within 30 s")), 30_000);
      hls.on(Hls.Events.SUBTITLE_FRAG_PROCESSED, () => {
        const cues = [...video.textTracks].flatMap(({ cues }) => [...cues ?? []]) as VTTCue[];
        if (cues.length >= 2) resolve(cues.map(({ text, startTime }) => ({ text, startS: startTime })));
      });
    });
    hls.loadSource(address);
    hls.attachMedia(video);
    await video.play();
    hls.subtitleTrack = 0;
    const cues = await found;
    hls.destroy();
    return cues;
  }, url);
}

for (const [n, name] of CLIPS.entries()) {
  test(`hls.js has the texts inside ${name} at their times`, async () => {
    const query = new URLSearchParams({ magnet: seeder.magnet, _idx: String(n), pid: "texts", subtitles: "1" });
    const cues = await cuesOf(`${served.url}/engine/manifest.m3u8?${query}`);
    assertEquals(cues.map(({ text }) => text), ["first", "second"]);
    for (const [i, startS] of [1, 4].entries()) assertLess(Math.abs(cues[i]!.startS - startS), 0.1, cues[i]!.text);
  });
}
