import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { firstTarget90k, planCuts, segmentDurations, targetDurationS } from "../../../src/media/layout/segment-plan.ts";
import { renderVodPlaylist } from "../../../src/media/hls/playlist.ts";
import type { HlsPlan } from "../../../src/media/model/types.ts";

test("planCuts() takes the candidate nearest the target, not the next one", () => {
  const cases: [number[], number, number, number[]][] = [
    [[0, 2, 4, 6, 8, 10, 12], 5, 14, [0, 2, 4, 6]],
    [[0, 4.9, 5.2, 10], 5, 15, [0, 1, 3]],
    [[0, 9, 18], 5, 27, [0, 1, 2]],
    [[0, 1, 20], 5, 25, [0, 1, 2]],
    [[0, 5, 10], 5, 10.5, [0, 1, 2]],
    [[0, 5, 8], 5, 9, [0, 1]],
    [[0, 0, 0, 5], 5, 10, [0, 3]],
    // Every picture of a film that reorders them: the last of those that count as one.
    [[0, 3, 1, 2, 6, 4, 5, 9], 5, 12, [0, 6]],
    [[3], 5, 9, [0]],
    [[], 5, 0, []],
  ];
  for (const [times, target, end, expected] of cases) assertEquals(planCuts(times, target, end), expected);
});

test("planCuts() lets segments grow from a short first one, no faster than 1.3 times the bitrate brings them", () => {
  const everySecond = Array.from({ length: 60 }, (_, i) => i * 90_000);
  const starts = planCuts(everySecond, 5 * 90_000, 60 * 90_000, firstTarget90k(5 * 90_000, true));
  assertEquals(starts, [0, 2, 4, 7, 11, 16, 21, 26, 31, 36, 41, 46, 51, 56]);
  const everyTwoSeconds = Array.from({ length: 12 }, (_, i) => i * 180_000);
  const sparse = planCuts(everyTwoSeconds, 5 * 90_000, 24 * 90_000, firstTarget90k(5 * 90_000, true));
  assertEquals(sparse, [0, 1, 2, 3, 5, 7, 9, 11]);
  // A player that plays once it has the first segment: each next one arrives in time, or a quarter of a second later.
  for (const [cuts, lengthS] of [[starts, 1], [sparse, 2]] as const) {
    const ends = cuts.slice(1).map((cut) => cut * lengthS);
    for (const [i, endS] of ends.slice(1).entries()) {
      const waitS = endS / 1.3 - (ends[0]! / 1.3 + ends[i]!);
      assert(waitS < 0.25, `it waits for ${waitS} s at ${ends[i]} s`);
    }
  }
});

test("firstTarget90k() is two seconds for films, never more than the target, and leaves sound alone", () => {
  assertEquals([firstTarget90k(450_000, true), firstTarget90k(90_000, true), firstTarget90k(450_000, false)], [
    180_000,
    90_000,
    450_000,
  ]);
});

test("segmentDurations() ends the last segment at the end", () => {
  assertEquals(segmentDurations([0, 5, 11], 12), [5, 6, 1]);
  assertEquals(segmentDurations([0, 5], 4), [5, 0]);
  assertEquals(targetDurationS([4999, 5001]), 6);
  assertEquals(targetDurationS([]), 1);
});

test("renderVodPlaylist() renders the whole playlist", () => {
  const plan = {
    segments: [{ index: 0, startMs: 0, durationMs: 5000 }, { index: 1, startMs: 5000, durationMs: 1234.5678 }],
    targetDurationS: 5,
  } as unknown as HlsPlan;
  assertEquals(
    renderVodPlaylist(plan, (n) => `http://h/engine/c/ih/${n}.ts`),
    "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:5\n#EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-PLAYLIST-TYPE:VOD\n" +
      "#EXTINF:5.000000,\nhttp://h/engine/c/ih/0.ts\n#EXTINF:1.234568,\nhttp://h/engine/c/ih/1.ts\n#EXT-X-ENDLIST\n",
  );
});

test("renderVodPlaylist() of players that ignore where to begin has nothing before that", () => {
  const segments = Array.from({ length: 4 }, (_, index) => ({ index, startMs: index * 5000, durationMs: 5000 }));
  const plan = { segments, targetDurationS: 5 } as unknown as HlsPlan;
  const cut = (fromMs: number) => {
    const list = renderVodPlaylist(plan, String, fromMs, true);
    assert(!list.includes("EXT-X-START"));
    return [/SEQUENCE:(\d+)/.exec(list)![1], list.match(/^\d+$/gm)!.join()];
  };
  assertEquals(cut(0), ["0", "0,1,2,3"]);
  assertEquals(cut(9999), ["1", "1,2,3"]);
  assertEquals(cut(10_000), ["2", "2,3"]);
  assertEquals(cut(3_600_000), ["3", "3"]);
});
