/** hls.js in headless Chromium plays everything a browser can decode: to the end, with seeks, without a dropped segment. */
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import type { Page } from "playwright-core";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { clip, clipPath, PLAYABLE, UNCARRIABLE } from "../support/fixtures.ts";
import { run } from "../support/process.ts";
import { concatBytes } from "../../src/bytes/hex.ts";
import { joinAsPlayer, openPlayerPage, type PlayerPage } from "./support.ts";

/**
 * Clips of open groups of pictures: only their first random access point is an IDR picture. Debian's Chromium decodes
 * them in one go, but fails at the first picture that drops a reference which was never decoded, as any picture after
 * another random access point of x264's open groups does, and says PIPELINE_ERROR_DECODE. See the test of them.
 */
const OPEN_GROUPS = PLAYABLE.filter((name) => name.includes("open-gop"));

/** What Debian's Chromium decodes from MPEG TS: H.264 with AAC or MP3. */
const DECODABLE = PLAYABLE.filter((name) => !/hevc|mpeg2|mp2|ac3|eac3/.test(name));

/** Another file of the seeder, after the clips. */
const TWICE = "twice.ts";
/** A film that goes as fragmented MP4. */
const WEBM = "webm-vp9-opus.webm";
/** Files of sound that become AAC. */
const SOUNDS = [...UNCARRIABLE].filter((name) => name.startsWith("audio"));

let seeder: SeededFiles;
let served: ServedEngine;
let player: PlayerPage;
let page: Page;
/** Folder whose files the page's own server serves. */
let shared: string | null = null;

before(async () => {
  const files = DECODABLE.map((name) => ({ path: name, bytes: clip(name) }));
  // Its clock goes back to the start in the middle.
  files.push({ path: TWICE, bytes: concatBytes([clip("ts-188.ts"), clip("ts-188.ts")]) });
  files.push({ path: WEBM, bytes: clip(WEBM) });
  files.push(...SOUNDS.map((name) => ({ path: name, bytes: clip(name) })));
  seeder = await seedFiles(files, { name: "fixtures" });
  player = await openPlayerPage((path, response) => {
    if (shared === null || !path.startsWith("/shared/")) return false;
    readFile(`${shared}/${path.slice(8)}`).then((bytes) => response.end(bytes), () => response.destroy());
    return true;
  });
  served = await serveEngine({ allowOrigins: [player.origin] });
  await joinAsPlayer(served.url, seeder.magnet);
  page = player.page;
});
after(async () => {
  await player?.close();
  await served?.close();
  await seeder?.close();
});

interface Outcome {
  readonly ended: boolean;
  readonly time: number;
  readonly duration: number;
  readonly errors: string[];
  /** How far from each wanted place playback went on, seconds. */
  readonly misses: number[];
  readonly decoded: number;
  /** Bytes of sound that were decoded. */
  readonly soundBytes: number;
}

/** Plays `url` at four times the speed, seeking to each of `seeks` (fractions) on the way, to the end. */
function play(url: string, seeks: number[]): Promise<Outcome> {
  return page.evaluate(async ([address, fractions]) => {
    // deno-lint-ignore no-explicit-any
    const Hls = (globalThis as any).Hls;
    const old = document.querySelector("video")!;
    const video = document.createElement("video");
    video.muted = true;
    old.replaceWith(video);
    const errors: string[] = [];
    const hls = new Hls({ enableWorker: false });
    // deno-lint-ignore no-explicit-any
    hls.on(Hls.Events.ERROR, (_: unknown, data: any) => {
      // At four times the speed a busy machine is late now and then; playing goes on, or the end would not come.
      if (data.details !== "bufferStalledError" || data.fatal) {
        errors.push(`${data.details}${data.fatal ? " (fatal)" : ""}`);
      }
    });
    const event = (name: string) =>
      new Promise<void>((resolve, reject) => {
        const timer = setTimeout(
          () => reject(new Error(`no ${name} within 40 s at ${video.currentTime}: ${errors.join()}`)),
          40_000,
        );
        video.addEventListener(name, () => {
          clearTimeout(timer);
          resolve();
        }, { once: true });
      });
    const loaded = event("loadeddata");
    hls.loadSource(address);
    hls.attachMedia(video);
    await loaded;
    const misses: number[] = [];
    video.playbackRate = 4;
    await video.play();
    for (const fraction of fractions) {
      video.pause();
      const seeked = event("seeked");
      const wanted = video.duration * fraction;
      video.currentTime = wanted;
      await seeked;
      misses.push(Math.abs(video.currentTime - wanted));
      await video.play();
    }
    const ended = event("ended");
    await ended;
    const outcome = {
      ended: video.ended,
      time: video.currentTime,
      duration: video.duration,
      errors,
      misses,
      decoded: video.getVideoPlaybackQuality().totalVideoFrames,
      // deno-lint-ignore no-explicit-any -- Chromium's own
      soundBytes: (video as any).webkitAudioDecodedByteCount as number,
    };
    hls.destroy();
    return outcome;
  }, [url, seeks] as const);
}

const manifest = (name: string, more: Record<string, string> = {}) => {
  const index = [...DECODABLE, TWICE, WEBM, ...SOUNDS].indexOf(name);
  const query = new URLSearchParams({ magnet: seeder.magnet, _idx: String(index), pid: "browser", ...more });
  return `${served.url}/engine/manifest.m3u8?${query}`;
};

/** Runs `check` on each of `names` and reports all that fail, not only the first. */
async function onEvery(names: readonly string[], check: (name: string) => Promise<void>): Promise<void> {
  const failures: string[] = [];
  for (const name of names) {
    try {
      await check(name);
    } catch (error) {
      failures.push(`${name}: ${(error as Error).message.replaceAll(/\s+/g, " ").slice(0, 300)}`);
    }
  }
  assertEquals(failures, []);
}

test("hls.js plays every fixture that Chromium decodes to the end, without an error", async () => {
  assert(DECODABLE.length > 20, "the list of fixtures is too short to be right");
  await onEvery(DECODABLE, async (name) => {
    const outcome = await play(manifest(name), []);
    assertEquals([outcome.ended, outcome.errors], [true, []]);
    assertLess(Math.abs(outcome.time - outcome.duration), 0.3);
    if (!/^audio|audio-only/.test(name)) assert(outcome.decoded > 50, `${outcome.decoded} frames`);
  });
});

test("hls.js plays the sound of a transport stream that was AC-3, with seeks", async () => {
  const silent = await play(manifest("ts-192.m2ts"), []);
  assertEquals([silent.ended, silent.soundBytes], [true, 0]);
  const outcome = await play(manifest("ts-192.m2ts", { transcode_audio: "1", transcode_ac3: "1" }), [0.7, 0.2]);
  assertEquals([outcome.ended, outcome.errors], [true, []]);
  assert(outcome.soundBytes > 20_000, `${outcome.soundBytes} bytes of sound`);
  assert(outcome.decoded > 50, `${outcome.decoded} frames`);
});

test("hls.js plays the sound of files that MPEG TS cannot carry, with seeks", async () => {
  await onEvery(SOUNDS, async (name) => {
    const outcome = await play(manifest(name, { transcode_audio: "1" }), [0.7, 0.2]);
    assertEquals([outcome.ended, outcome.errors], [true, []]);
    assert(Math.abs(outcome.duration - 6) < 0.3, `${outcome.duration} s`);
    assert(outcome.soundBytes > 20_000, `${outcome.soundBytes} bytes of sound`);
  });
});

test("hls.js plays fragmented MP4 with sound and seeks: of VP9 and Opus unasked, of H.264 and AAC when asked", async () => {
  await onEvery([WEBM, "mkv-cues.mkv", "mp4-front.mp4"], async (name) => {
    const outcome = await play(manifest(name, { playlist_output_format_vod: name === WEBM ? "auto" : "fmp4" }), [
      0.7,
      0.2,
    ]);
    assertEquals([outcome.ended, outcome.errors], [true, []]);
    for (const [i, miss] of outcome.misses.entries()) assertLess(miss, 0.05, `seek ${i}`);
    assert(outcome.soundBytes > 10_000, `${outcome.soundBytes} bytes of sound`);
    assert(outcome.decoded > 40, `${outcome.decoded} frames`);
  });
});

test("hls.js plays on over a discontinuity", async () => {
  const outcome = await play(manifest(TWICE), [0.3]);
  assertEquals([outcome.ended, outcome.errors], [true, []]);
  assert(Math.abs(outcome.duration - 12) < 0.3, `${outcome.duration} s`);
  assertLess(Math.abs(outcome.time - outcome.duration), 0.3);
});

test("hls.js seeks forwards and backwards in every fixture and plays on to the end", async () => {
  await onEvery(DECODABLE.filter((name) => !OPEN_GROUPS.includes(name)), async (name) => {
    const outcome = await play(manifest(name), [0.6, 0.1, 0.9]);
    assertEquals([outcome.ended, outcome.errors], [true, []]);
    for (const [i, miss] of outcome.misses.entries()) assertLess(miss, 0.05, `seek ${i}`);
  });
});

test("hls.js seeks within the first group of open groups, and beyond no worse than in what ffmpeg makes", async () => {
  assertEquals(OPEN_GROUPS.length, 3);
  const directory = await temporaryDirectory();
  try {
    await onEvery(OPEN_GROUPS, async (name) => {
      const outcome = await play(manifest(name), [0.1]);
      assertEquals([outcome.ended, outcome.errors], [true, []]);
      const list = `${directory.path}/${name}.m3u8`;
      const hls = ["-c", "copy", "-f", "hls", "-hls_time", "5", "-hls_playlist_type", "vod", list];
      await run("ffmpeg", ["-nostdin", "-v", "error", "-i", clipPath(name), ...hls]);
      shared = directory.path;
      const theirs = await seekOutcome(`/shared/${name}.m3u8`);
      const ours = await seekOutcome(manifest(name));
      // Where Chromium manages ffmpeg's, it must manage ours; where it fails, then at the very same picture.
      assertEquals(ours === theirs || ours === "seeked", true, `${ours}, but of ffmpeg's: ${theirs}`);
    });
  } finally {
    shared = null;
    await directory.remove();
  }
});

/** "seeked" when Chromium shows a picture after a seek to the middle, else Chromium's error message. */
function seekOutcome(url: string): Promise<string> {
  return page.evaluate(async (address) => {
    // deno-lint-ignore no-explicit-any
    const Hls = (globalThis as any).Hls;
    const video = document.createElement("video");
    video.muted = true;
    document.querySelector("video")!.replaceWith(video);
    const hls = new Hls({ enableWorker: false });
    const wait = (names: string[]) =>
      new Promise<string>((resolve) => {
        const timer = setTimeout(() => resolve(`no ${names} within 8 s`), 8_000);
        const settle = (answer: string) => {
          clearTimeout(timer);
          resolve(answer);
        };
        for (const name of names) {
          video.addEventListener(name, () => settle(video.error?.message ?? name), { once: true });
        }
      });
    const loaded = wait(["loadeddata", "error"]);
    hls.loadSource(address);
    hls.attachMedia(video);
    await loaded;
    const settled = wait(["seeked", "error"]);
    video.currentTime = 3.66;
    const answer = await settled;
    hls.destroy();
    return answer;
  }, url);
}
