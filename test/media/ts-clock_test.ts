/** HLS plans of transport streams whose clock breaks or whose bit rate changes. */
import { assert, assertEquals, assertLess } from "@std/assert";
import { test } from "node:test";
import { MemorySource } from "../support/memory-source.ts";
import { BreakFinder } from "../../src/media/ts-file/time-scan.ts";
import { renderVodPlaylist } from "../../src/media/hls/playlist.ts";
import type { IndexedPresentation } from "../../src/media/model/types.ts";
import { checkTs, ticksBetween } from "../support/ts-check.ts";
import { CountingSource, fixture } from "./mkv-support.ts";
import { gather, never, openTs, repeatTs } from "./ts-input-support.ts";
import { concatBytes } from "../../src/bytes/hex.ts";

/** A clip of 6 s. */
const CLIP = fixture("ts-188.ts");
const PERIOD_90K = 6 * 90_000;
const HOUR_90K = 3600 * 90_000;

/** `times` clips in a row that begin `shift90k` later than the clip does. */
function stretch(times: number, shift90k: number): Uint8Array {
  return repeatTs(repeatTs(concatBytes([CLIP]), 2, shift90k).subarray(CLIP.length), times, PERIOD_90K);
}

/** Segments in groups of one clock each: how many, and their time in seconds. */
function groups({ hls }: IndexedPresentation): { count: number; seconds: number }[] {
  const found: { count: number; seconds: number }[] = [];
  for (const { discontinuity, durationMs } of hls.segments) {
    if (discontinuity || found.length === 0) found.push({ count: 0, seconds: 0 });
    found.at(-1)!.count++;
    found.at(-1)!.seconds += durationMs / 1000;
  }
  return found;
}

const LARGE: readonly (readonly [name: string, parts: readonly (readonly [times: number, shift90k: number])[]])[] = [
  ["back to where it began", [[60, 0], [40, 0]]],
  ["ahead by an hour", [[30, 0], [70, HOUR_90K]]],
  ["back by an hour", [[85, HOUR_90K], [15, 0]]],
  ["twice, in different quarters", [[35, 2 * HOUR_90K], [30, 0], [35, HOUR_90K]]],
];

for (const [name, parts] of LARGE) {
  test(`hls plan of a large file marks the discontinuity where the clock goes ${name}`, async () => {
    const file = concatBytes(parts.map(([times, shift]) => stretch(times, shift)));
    const source = new CountingSource(new MemorySource(file));
    const presentation = await openTs(source);
    assertLess(source.bytesRead, 2.5 * 1024 * 1024 + 3 * 1024 * 1024 * (parts.length - 1));
    const found = groups(presentation);
    assertEquals(found.length, parts.length, JSON.stringify(found));
    for (const [i, [times]] of parts.entries()) assertLess(Math.abs(found[i]!.seconds - 6 * times), 1.5, `group ${i}`);
    assertLess(Math.abs(presentation.durationMs! - 600_000), 3000);
    // No segment has times of two clocks, and together they hold every picture.
    let pictures = 0;
    for (const { index, durationMs } of presentation.hls.segments) {
      const segment = checkTs(await gather(presentation.hls.readSegment(index, source, never)));
      const units = segment.streams.find(({ pid }) => pid === 256)!.units;
      pictures += units.length;
      const spread = units.map(({ pts }) => ticksBetween(pts, units[0]!.pts));
      assert(Math.max(...spread) - Math.min(...spread) < 90 * durationMs + 3 * 90_000, `segment ${index}`);
    }
    assertEquals(pictures, 150 * 100);
    const again = await openTs(file);
    assertEquals(again.hls.segments, presentation.hls.segments);
  });
}

test("hls plan of a small file marks the discontinuity exactly", async () => {
  const presentation = await openTs(concatBytes([stretch(2, HOUR_90K), stretch(1, 0)]), { segmentTargetMs: 2000 });
  assertEquals(
    presentation.hls.segments.map(({ durationMs, discontinuity }) => [Math.round(durationMs), discontinuity]),
    [
      ...Array.from({ length: 6 }, () => [2000, false]),
      [2000, true],
      [2000, false],
      [2000, false],
    ],
  );
  const lines = renderVodPlaylist(presentation.hls, (n) => `${n}.ts`).split("\n");
  assertEquals(lines.indexOf("#EXT-X-DISCONTINUITY") + 2, lines.indexOf("6.ts"));
  assertEquals(lines.filter((line) => line === "#EXT-X-DISCONTINUITY").length, 1);
});

test("hlsPlan has the right times when the bit rate changes", async () => {
  const thin = stretch(40, 0);
  const late = stretch(60, 40 * PERIOD_90K);
  // Three null packets after each packet of the later part.
  const padded = new Uint8Array(late.length * 4).fill(0xff);
  for (let at = 0; at < late.length; at += 188) {
    padded.set(late.subarray(at, at + 188), at * 4);
    for (let i = 1; i < 4; i++) padded.set([0x47, 0x1f, 0xff, 0x10], at * 4 + i * 188);
  }
  const presentation = await openTs(concatBytes([thin, padded]));
  assertEquals(groups(presentation).length, 1);
  assertLess(Math.abs(presentation.durationMs! - 600_000), 1000);
});

test("BreakFinder distinguishes a break from one wrong time and from pictures out of order", () => {
  const breaks = (...times: number[]) => {
    const finder = new BreakFinder();
    for (const [packet, seconds] of times.entries()) {
      finder.push({ packet, pts90k: (seconds * 90_000 + 2 ** 33) % 2 ** 33 });
    }
    return finder.breaks.map(({ before, after }) => [before.packet, after.packet]);
  };
  assertEquals(breaks(0, 1, 2, 3), []);
  assertEquals(breaks(0, 0.16, 0.08, 0.04, 0.12), []);
  assertEquals(breaks(0, 1, 500, 2, 3), []);
  assertEquals(breaks(0, 1, 500, 501, 502), [[1, 2]]);
  assertEquals(breaks(500, 501, 0.1, 0, 0.2, 1), [[1, 2]]);
  assertEquals(breaks(-1, 0, 1), []);
  assertEquals(breaks(0, 1, 500, 900, 2), []);
  assertEquals(breaks(0, 1, 500, 501, 0, 1), [[1, 2], [3, 4]]);
});
