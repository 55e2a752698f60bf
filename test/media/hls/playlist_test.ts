import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { planCuts, segmentDurations, targetDurationS } from "../../../src/media/hls/plan.ts";
import { renderVodPlaylist } from "../../../src/media/hls/playlist.ts";
import type { HlsPlan } from "../../../src/media/types.ts";

test("planCuts() takes the candidate nearest the target, not the next one", () => {
  const cases: [number[], number, number, number[]][] = [
    [[0, 2, 4, 6, 8, 10, 12], 5, 14, [0, 2, 4, 6]],
    [[0, 4.9, 5.2, 10], 5, 15, [0, 1, 3]],
    [[0, 9, 18], 5, 27, [0, 1, 2]],
    [[0, 1, 20], 5, 25, [0, 1, 2]],
    [[0, 5, 10], 5, 10.5, [0, 1, 2]],
    [[0, 5, 8], 5, 9, [0, 1]],
    [[0, 0, 0, 5], 5, 10, [0, 3]],
    [[3], 5, 9, [0]],
    [[], 5, 0, []],
  ];
  for (const [times, target, end, expected] of cases) assertEquals(planCuts(times, target, end), expected);
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
