/** hls.js in headless Chromium plays a broadcast near its edge, without a dropped segment, and through a restart. */
import { after, before, test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import type { Page } from "playwright-core";
import { temporaryDirectory } from "../support/engine.ts";
import { renderLivePlaylist } from "../../src/media/hls/live-playlist.ts";
import { LiveStream } from "../../src/playback/live/live-stream.ts";
import { Studio } from "../playback/live-support.ts";
import { type OnAir, onAir } from "../support/live.ts";
import { concatBytes } from "../../src/bytes/hex.ts";
import { joinAsPlayer, openPlayerPage, type PlayerPage } from "./support.ts";

let air: OnAir;
let player: PlayerPage;
let page: Page;
/** Further files of the page's own server, by path. */
const files = new Map<string, Uint8Array | string>();
let directory: { path: string; remove(): Promise<void> };

before(async () => {
  directory = await temporaryDirectory();
  player = await openPlayerPage((path, response) => {
    const file = files.get(path);
    if (file !== undefined) response.end(file);
    return file !== undefined;
  });
  air = await onAir({ directory: directory.path, viewer: { allowOrigins: [player.origin] } });
  await joinAsPlayer(air.viewer.url, air.magnet);
  page = player.page;
});
after(async () => {
  await player?.close();
  await air?.close();
  await directory?.remove();
});

interface Outcome {
  readonly errors: string[];
  /** Numbers of the segments that were loaded, in order. */
  readonly loaded: number[];
  /** Seconds behind the wall clock, by the playlist's dates, when it began and at the end. */
  readonly behindS: readonly number[];
  /** Seconds from asking to the first picture. */
  readonly startS: number;
  /** Seconds of media played in the time of the test, and that time. */
  readonly playedS: number;
  readonly watchedS: number;
  readonly dropped: number;
  readonly decoded: number;
}

/**
 * Sound and pictures never begin at the very same time. The browser jumps to where both are there, or hls.js does it where
 * that takes longer than its next look, and says so.
 */
const BEGINS_AT_ONCE = /^bufferSeekOverHole .* seeking from 0 to 0\.[012]\d*$/;

/** Plays `url` for `ms` at the edge, as hls.js does it by itself. */
async function play(url: string, ms: number): Promise<Outcome> {
  const outcome = await watch(url, ms);
  return { ...outcome, errors: outcome.errors.filter((error) => !BEGINS_AT_ONCE.test(error)) };
}

function watch(url: string, ms: number): Promise<Outcome> {
  return page.evaluate(async ([address, watchMs]) => {
    // deno-lint-ignore no-explicit-any
    const Hls = (globalThis as any).Hls;
    const old = document.querySelector("video")!;
    const video = document.createElement("video");
    video.muted = true;
    old.replaceWith(video);
    const errors: string[] = [];
    const loaded: number[] = [];
    const hls = new Hls({ enableWorker: false });
    // deno-lint-ignore no-explicit-any
    const failed = (_: unknown, data: any) =>
      errors.push(`${data.details} of ${data.frag?.sn}: ${data.error?.message}`);
    hls.on(Hls.Events.ERROR, failed);
    // deno-lint-ignore no-explicit-any
    hls.on(Hls.Events.FRAG_BUFFERED, (_: unknown, data: any) => loaded.push(data.frag.sn));
    const begun = performance.now();
    const playing = new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`nothing plays within a minute: ${errors.join()}`)), 60_000);
      video.addEventListener("playing", () => (clearTimeout(timer), resolve()), { once: true });
    });
    hls.loadSource(address);
    hls.attachMedia(video);
    await video.play();
    await playing;
    const startS = (performance.now() - begun) / 1000;
    const behind = () => (Date.now() - (hls.playingDate?.getTime() ?? NaN)) / 1000;
    const behindS = [behind()];
    const from = video.currentTime;
    const since = performance.now();
    while (performance.now() - since < watchMs) {
      await new Promise((resolve) => setTimeout(resolve, 1000));
      behindS.push(behind());
    }
    const quality = video.getVideoPlaybackQuality();
    const outcome = {
      errors,
      loaded,
      behindS,
      startS,
      playedS: video.currentTime - from,
      watchedS: (performance.now() - since) / 1000,
      dropped: quality.droppedVideoFrames,
      decoded: quality.totalVideoFrames,
    };
    hls.destroy();
    return outcome;
  }, [url, ms] as const);
}

const manifest = () =>
  `${air.viewer.url}/engine/manifest.m3u8?${new URLSearchParams({ magnet: air.magnet, pid: crypto.randomUUID() })}`;

test("hls.js plays a broadcast seconds behind its source and drops no segment", async (t) => {
  const first = await play(manifest(), 12_000);
  t.diagnostic(JSON.stringify(first));
  assertEquals([first.errors, first.loaded], [[], first.loaded.map((_, i) => first.loaded[0]! + i)]);
  // The usual case: a viewer who joins later.
  const outcome = await play(manifest(), 15_000);
  t.diagnostic(JSON.stringify(outcome));
  assertEquals(outcome.errors, []);
  const { loaded } = outcome;
  assertEquals(loaded, loaded.map((_, i) => loaded[0]! + i));
  assertLess(Math.abs(outcome.playedS - outcome.watchedS), 1);
  assert(outcome.behindS.every((s) => s < 12), `${outcome.behindS}`);
  assertLess(outcome.startS, 5);
  assert(outcome.decoded > 300, `${outcome.decoded} frames`);
});

test("hls.js plays on through a restart of the broadcaster", async (t) => {
  const playing = play(manifest(), 20_000);
  await new Promise((resolve) => setTimeout(resolve, 5000));
  await air.restart(1000);
  const outcome = await playing;
  t.diagnostic(JSON.stringify(outcome));
  assertEquals(outcome.errors, []);
  assertEquals(outcome.loaded, outcome.loaded.map((_, i) => outcome.loaded[0]! + i));
  assertLess(outcome.watchedS - 4, outcome.playedS);
});

test("hls.js plays over gaps and discontinuities wherever they fall, to the end", async (t) => {
  const studio = await Studio.open();
  const stream = new LiveStream(studio, studio.clock, { limits: { windowMs: 600_000, maxBytes: 2 ** 30 } });
  for (let i = 0; i < 12; i++) {
    await studio.run(2000 + 100 * ((i * 7) % 30));
    studio.losing = i % 2 === 0;
    if (studio.losing) await studio.run(500);
    else await studio.publisher.sourceLost();
    studio.losing = false;
  }
  await studio.run(3000);
  await studio.publisher.end();
  await studio.silence(500);
  for (const segment of stream.segments) {
    const parts: Uint8Array[] = [];
    for await (const bytes of stream.readSegment(segment, null, new AbortController().signal)) parts.push(bytes);
    files.set(`/gaps/${segment.n}.ts`, concatBytes(parts));
  }
  const { segments, cuts } = stream;
  const playlist = {
    targetDurationS: cuts.announceTargetS(),
    segments,
    droppedDiscontinuities: 0,
    ended: true,
    startS: null,
  };
  files.set("/gaps/list.m3u8", renderLivePlaylist(playlist, (n) => `${n}.ts`));
  stream.close();
  const outcome = await page.evaluate(async () => {
    // deno-lint-ignore no-explicit-any
    const Hls = (globalThis as any).Hls;
    const video = document.createElement("video");
    video.muted = true;
    document.querySelector("video")!.replaceWith(video);
    const errors: string[] = [];
    const hls = new Hls({ enableWorker: false });
    // deno-lint-ignore no-explicit-any
    hls.on(Hls.Events.ERROR, (_: unknown, data: any) => errors.push(data.details));
    const ended = new Promise<boolean>((resolve) => {
      video.addEventListener("ended", () => resolve(true), { once: true });
      setTimeout(() => resolve(false), 120_000);
    });
    hls.loadSource("/gaps/list.m3u8");
    hls.attachMedia(video);
    video.playbackRate = 4;
    await video.play();
    const outcome = { ended: await ended, errors, time: video.currentTime, duration: video.duration };
    hls.destroy();
    return outcome;
  });
  t.diagnostic(JSON.stringify(outcome));
  assert(outcome.ended, `stopped at ${outcome.time} of ${outcome.duration}: ${outcome.errors}`);
  // At four times the speed the machine may be late; nothing may be unreadable.
  assertEquals(outcome.errors.filter((error) => /pars|append|load/i.test(error)), []);
  assert(segments.filter(({ discontinuity }) => discontinuity).length > 6);
});
