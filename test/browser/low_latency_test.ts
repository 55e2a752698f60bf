/** hls.js in headless Chromium plays low-latency HLS of a broadcast nearer to its edge than ordinary HLS, without a stop. */
import { after, before, test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import { type OnAir, onAir } from "../support/live.ts";
import { joinAsPlayer, openPlayerPage, type PlayerPage } from "./support.ts";

let air: OnAir;
let player: PlayerPage;
before(async () => {
  player = await openPlayerPage(() => false);
  air = await onAir({ viewer: { allowOrigins: [player.origin], lowLatency: true } });
  await joinAsPlayer(air.viewer.url, air.magnet);
});
after(async () => {
  await player?.close();
  await air?.close();
});

interface Outcome {
  readonly errors: readonly string[];
  /** Seconds between the clock and the date of the picture, second by second. */
  readonly behindS: readonly number[];
  readonly stalls: number;
  readonly playedS: number;
  readonly watchedS: number;
  readonly parts: number;
  readonly segments: number;
  readonly playlists: number;
}

function play(format: Record<string, string>, ms: number): Promise<Outcome> {
  const query = new URLSearchParams({ magnet: air.magnet, pid: crypto.randomUUID(), ...format });
  return player.page.evaluate(async ([address, watchMs]) => {
    // deno-lint-ignore no-explicit-any
    const Hls = (globalThis as any).Hls;
    const video = document.createElement("video");
    video.muted = true;
    document.querySelector("video")!.replaceWith(video);
    const hls = new Hls({ enableWorker: false });
    const errors: string[] = [];
    const counts = { parts: 0, segments: 0, playlists: 0 };
    let stalls = 0;
    // deno-lint-ignore no-explicit-any
    hls.on(Hls.Events.ERROR, (_: unknown, data: any) => errors.push(`${data.details}: ${data.error?.message}`));
    // deno-lint-ignore no-explicit-any
    hls.on(Hls.Events.FRAG_BUFFERED, (_: unknown, data: any) => data.part ? counts.parts++ : counts.segments++);
    hls.on(Hls.Events.LEVEL_LOADED, () => counts.playlists++);
    hls.loadSource(address);
    hls.attachMedia(video);
    const playing = new Promise((resolve) => video.addEventListener("playing", resolve, { once: true }));
    await video.play();
    await playing;
    const behindS: number[] = [];
    const from = video.currentTime;
    const since = performance.now();
    video.addEventListener("waiting", () => stalls++);
    while (performance.now() - since < watchMs) {
      await new Promise((resolve) => setTimeout(resolve, 1000));
      behindS.push((Date.now() - (hls.playingDate?.getTime() ?? NaN)) / 1000);
    }
    const outcome = {
      errors,
      behindS,
      stalls,
      playedS: video.currentTime - from,
      watchedS: (performance.now() - since) / 1000,
      ...counts,
    };
    hls.destroy();
    return outcome;
  }, [`${air.viewer.url}/engine/manifest.m3u8?${query}`, ms] as const);
}

const middle = (all: readonly number[]) => [...all].sort((a, b) => a - b)[all.length >> 1]!;

test("hls.js plays low-latency HLS of a broadcast seconds nearer to its edge", async (t) => {
  const low = await play({ playlist_output_format_live: "fmp4" }, 10_000);
  t.diagnostic(`low latency: ${JSON.stringify(low)}`);
  const ordinary = await play({}, 4000);
  t.diagnostic(`ordinary: ${JSON.stringify(ordinary)}`);
  // Sound and pictures never begin at the very same time: hls.js may say that it jumps to where both are there.
  assertEquals(low.errors.filter((error) => !error.startsWith("bufferSeekOverHole")), []);
  assert(low.parts > 15, `${low.parts} parts`);
  assertLess(Math.abs(low.playedS - low.watchedS), 1);
  assertLess(middle(low.behindS) + 1.5, middle(ordinary.behindS));
});
