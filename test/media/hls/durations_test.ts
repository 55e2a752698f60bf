/** How long playlists say the fixtures are. */
import { test } from "node:test";
import { assertLess } from "@std/assert";
import { concatBytes } from "../../../src/bytes/hex.ts";
import { fixture, openBytes } from "../support/files.ts";

async function totalS(bytes: Uint8Array): Promise<number> {
  const { hls } = await openBytes(bytes);
  return hls.segments.reduce((sum, segment) => sum + segment.durationMs, 0) / 1000;
}

test("hls plan lasts as long as the longest track, from the earliest picture or sound on", async () => {
  for (
    const [name, seconds] of [
      ["mp4-audio-delay.mp4", 6.7],
      ["mp4-video-delay.mp4", 6.48],
      ["mp4-end.mp4", 6],
      ["audio-only.m4a", 6],
      ["mkv-cues.mkv", 6],
    ] as const
  ) assertLess(Math.abs(await totalS(fixture(name)) - seconds), 0.05, name);
});

test("hls plan of fragments without an index takes its end from the last fragment", async () => {
  const bytes = fixture("mp4-fragmented-bare.mp4");
  assertLess(Math.abs(await totalS(bytes) - 6.08), 0.001);
  // A box after it does no harm; the same name within media data is skipped.
  const decoy = new Uint8Array(24);
  decoy.set([0, 0, 0, 24, 0x66, 0x72, 0x65, 0x65, 0, 0, 0, 9, 0x6d, 0x6f, 0x6f, 0x66]);
  assertLess(Math.abs(await totalS(concatBytes([bytes, decoy])) - 6.08), 0.001);
  // Cut off within its last data: the fragment's header still states the duration.
  assertLess(Math.abs(await totalS(bytes.subarray(0, bytes.length - 500)) - 6.08), 0.001);
});
