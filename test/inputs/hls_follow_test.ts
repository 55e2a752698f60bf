/** Which segments of a moving playlist come next. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import type { MediaList } from "../../src/content/hls-playlist.ts";
import { HlsFollower } from "../../src/inputs/hls-follow.ts";

/** A playlist of segments [first, end). */
function list(first: number, end: number, hasEnded = false, targetDurationS = 4): MediaList {
  const segments = Array.from({ length: end - first }, (_, i) => ({
    url: `https://h/${first + i}.ts`,
    durationS: 4,
    sequence: first + i,
    isDiscontinuity: false,
    range: null,
    map: null,
    isGap: false,
    key: null,
    unfit: null,
  }));
  return { kind: "media", targetDurationS, firstSequence: first, hasEnded, segments };
}

function taken(follower: HlsFollower): number[] {
  const numbers: number[] = [];
  for (let segment = follower.next(); segment !== null; segment = follower.next()) numbers.push(segment.sequence);
  return numbers;
}

test("HlsFollower joins a live playlist three segments before its end, a recording at its beginning", () => {
  const live = new HlsFollower();
  assertEquals(live.update(list(10, 20), 0), { lost: null, atMs: 0, reloadMs: 4000, hasEnded: false });
  assertEquals(taken(live), [17, 18, 19]);
  const recording = new HlsFollower();
  assertEquals(recording.update(list(10, 14, true), 0).hasEnded, true);
  assertEquals(taken(recording), [10, 11, 12, 13]);
});

test("HlsFollower takes each segment once, asks sooner when nothing is new, and reports missed segments", () => {
  const follower = new HlsFollower();
  follower.update(list(10, 20), 0);
  taken(follower);
  assertEquals(follower.update(list(10, 20), 4000).reloadMs, 2000);
  assertEquals(taken(follower), []);
  follower.update(list(11, 21), 6000);
  assertEquals(taken(follower), [20]);
  const { lost } = follower.update(list(25, 30), 10_000);
  assertEquals(lost, "4 segments were gone before they were read");
  assertEquals(taken(follower), [25, 26, 27, 28, 29]);
});

test("HlsFollower is not led astray by an old copy, and follows a server that began again", () => {
  const follower = new HlsFollower();
  follower.update(list(100, 110), 0);
  taken(follower);
  assertEquals(follower.update(list(95, 105), 4000).lost, null);
  assertEquals(taken(follower), []);
  follower.update(list(101, 111), 6000);
  assertEquals(taken(follower), [110]);
  for (const atMs of [10_000, 12_000]) assertEquals(follower.update(list(90, 100), atMs).lost, null);
  assertEquals(follower.update(list(91, 101), 14_000).lost, "the playlist began again");
  assertEquals(taken(follower), [98, 99, 100]);
  // Older than any copy could be.
  assertEquals(follower.update(list(0, 4), 18_000).lost, "the playlist began again");
  assertEquals(taken(follower), [1, 2, 3]);
});

test("HlsFollower reports when no segment came for three target durations", () => {
  const follower = new HlsFollower();
  follower.update(list(0, 3), 0);
  taken(follower);
  assertEquals(follower.update(list(0, 3), 10_000).lost, null);
  assertEquals(follower.isStale(12_001), true);
  assertEquals(follower.update(list(0, 3), 12_001).lost, "no new segment for 12 s");
  follower.update(list(0, 4), 13_000);
  assertEquals(follower.isStale(14_000), false);
  assertEquals(taken(follower), [3]);
});

test("HlsFollower asks when the last segment is over, although the playlist states a far longer one", () => {
  const follower = new HlsFollower();
  assertEquals(follower.update(list(10, 15, false, 60), 0).reloadMs, 4000);
  taken(follower);
  assertEquals(follower.update(list(10, 15, false, 60), 4000).reloadMs, 2000);
  assertEquals(follower.update(list(12, 17, false, 60), 6000).lost, null);
  assertEquals(taken(follower), [15, 16]);
});
