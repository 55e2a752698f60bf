import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { FLAG_END } from "../../src/live/header.ts";
import { GENUINE } from "../simulation/live-network.ts";
import { PIECE_BYTES, source, Stage } from "./support.ts";

test("LiveFeed waits at one place for a while when the edge moves on, and at each next one for longer", () => {
  const { stage, peers: [peer] } = Stage.joined(1);
  const feed = stage.node.openFeed();
  const edges = new Map<number, number[]>();
  for (let edge = 21; edge <= 38; edge++) {
    stage.header(peer!, edge);
    edges.set(feed.oldestWanted, [...edges.get(feed.oldestWanted) ?? [], edge]);
  }
  // Of pieces of half a second, 20 is kept until it is 2 s behind the edge, 24 until 2.5 s, the next ones until 3 s.
  assertEquals([...edges], [
    [20, [21, 22, 23, 24]],
    [24, [25, 26, 27, 28, 29]],
    [28, [30, 31, 32, 33, 34]],
    [34, [35, 36, 37, 38]],
  ]);
});

test("LiveFeed begins at no random access point that it has given up, unless that is still near the edge", () => {
  const begun = (edge: number, late: readonly number[]) => {
    const { stage, peers: [peer] } = Stage.joined(1);
    const feed = stage.node.openFeed();
    for (let seq = 21; seq <= edge; seq++) {
      stage.header(peer!, seq);
      feed.take(stage.clock.monotonic());
    }
    for (const seq of late) stage.piece(peer!, seq);
    return [feed.oldestWanted, feed.take(stage.clock.monotonic()).map(({ header }) => header.seq)];
  };
  // Pieces of half a second: 20 is 2.5 s behind 25, and 3 s behind 26.
  assertEquals(begun(25, [20, 21, 22]), [24, [20, 21, 22]]);
  assertEquals(begun(26, [20, 21, 22]), [24, []]);
  assertEquals(begun(26, [20, 21, 22, 24, 25]), [24, [24, 25]]);
});

test("LiveFeed gives pieces in order, skips a gap when it is due and marks it", () => {
  const { stage, peers: [peer] } = Stage.joined(1);
  const feed = stage.node.openFeed();
  stage.fill(peer!);
  assertEquals(feed.take(stage.clock.monotonic()).map(({ header }) => header.seq), [18, 19, 20]);
  for (const seq of [21, 22, 23, 24]) stage.header(peer!, seq);
  for (const seq of [22, 23, 24]) stage.piece(peer!, seq);
  assertEquals(feed.take(stage.clock.monotonic()), []);
  stage.clock.advance(1500);
  const rest = feed.take(stage.clock.monotonic());
  assertEquals(rest.map(({ header, discontinuity }) => [header.seq, discontinuity]), [[22, true], [23, false], [
    24,
    false,
  ]]);
  assertEquals([feed.deliveredPieces, feed.skippedPieces, feed.ended], [6, 1, false]);
});

test("LiveFeed stands still for a piece that is late, and is behind by so much from then on", () => {
  const { stage, peers: [peer] } = Stage.joined(1);
  const feed = stage.node.openFeed();
  stage.fill(peer!);
  feed.take(stage.clock.monotonic());
  const lagMs = feed.lagMs(stage.clock.now(), stage.clock.monotonic())!;
  for (const seq of [21, 22]) stage.header(peer!, seq);
  // 21 is due after 1.5 s; neither it nor the next random access point is there.
  stage.clock.advance(1900);
  assertEquals(feed.take(stage.clock.monotonic()), []);
  stage.piece(peer!, 21);
  assertEquals(feed.take(stage.clock.monotonic()).map(({ header }) => header.seq), [21]);
  assertEquals([feed.skippedPieces, feed.stalledMs], [0, 400]);
  assertEquals(feed.lagMs(stage.clock.now() - 1900, stage.clock.monotonic() - 1900), lagMs + 400);
  // 22 is due after another 0.5 s: 3 s later the player would be too far behind.
  stage.clock.advance(3500);
  assertEquals(feed.take(stage.clock.monotonic()), []);
  stage.piece(peer!, 22);
  for (const seq of [23, 24]) stage.header(peer!, seq);
  stage.piece(peer!, 24);
  assertEquals(feed.take(stage.clock.monotonic()).map(({ header }) => header.seq), [24]);
  // 24 was due 2 s ago itself: the player stood still until now.
  assertEquals([feed.skippedPieces, feed.stalledMs], [2, 2400]);
});

test("LiveFeed skips no random access point that may still come in time", () => {
  const { stage, peers: [peer] } = Stage.joined(1);
  const feed = stage.node.openFeed();
  stage.fill(peer!);
  feed.take(stage.clock.monotonic());
  for (const seq of [21, 22, 23, 24]) stage.header(peer!, seq);
  stage.piece(peer!, 24);
  stage.clock.advance(1500);
  assertEquals(feed.take(stage.clock.monotonic()), []);
  stage.clock.advance(400);
  stage.piece(peer!, 22);
  assertEquals(feed.take(stage.clock.monotonic()).map(({ header }) => header.seq), [22]);
  // Once 22 is shown, 23 is waited for, and skipped when 24 is all that there is.
  stage.clock.advance(600);
  assertEquals(feed.take(stage.clock.monotonic()).map(({ header }) => header.seq), [24]);
  assertEquals([feed.skippedPieces, feed.stalledMs], [2, 0]);
});

test("LiveFeed ends with the broadcast", () => {
  const stage = source(8);
  const feed = stage.node.openFeed();
  stage.node.publish({ header: stage.headerOf(8, { flags: FLAG_END }), data: GENUINE.subarray(0, PIECE_BYTES) });
  feed.take(stage.clock.monotonic());
  assert(feed.ended);
});
