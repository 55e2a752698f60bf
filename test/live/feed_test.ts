import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { FLAG_DISCONTINUITY, FLAG_END, FLAG_RANDOM_ACCESS } from "../../src/live/header.ts";
import type { LiveFeed } from "../../src/live/node/stream/feed.ts";
import { GENUINE } from "../simulation/live-network.ts";
import { type Neighbour, PIECE_BYTES, source, Stage } from "./support.ts";

/** What a feed gives now: numbers, and where a discontinuity is. */
function given(feed: LiveFeed, stage: Stage): [number, boolean][] {
  return feed.take(stage.clock.monotonic()).map(({ header, discontinuity }) => [header.seq, discontinuity]);
}

/** A reader of pieces 18 to 20, the last captured now and due in a second. */
function reader(): { stage: Stage; peer: Neighbour; feed: LiveFeed } {
  const { stage, peers: [peer] } = Stage.joined(1);
  const feed = stage.node.openFeed();
  stage.fill(peer!);
  assertEquals(given(feed, stage).map(([seq]) => seq), [18, 19, 20]);
  return { stage, peer: peer!, feed };
}

/** The header of the broadcaster's first piece after an absence, captured `afterMs` after piece 20. */
function comesBack(stage: Stage, from: Neighbour, seq: number, afterMs: number): void {
  const flags = FLAG_RANDOM_ACCESS | FLAG_DISCONTINUITY;
  const { bytes } = stage.headerOf(seq, { flags, ageMs: 500 * (seq - 20) - afterMs });
  stage.says(from, { type: "header", bytes });
}

test("LiveFeed waits at one place for a while when the edge moves on", () => {
  const { stage, peers: [peer] } = Stage.joined(1);
  const feed = stage.node.openFeed();
  stage.header(peer!, 18);
  const edges = new Map<number, number[]>();
  for (let edge = 21; edge <= 38; edge++) {
    stage.header(peer!, edge);
    edges.set(feed.oldestWanted, [...edges.get(feed.oldestWanted) ?? [], edge]);
  }
  // Of pieces of half a second, each is kept until it is more than 2 s behind the edge.
  assertEquals([...edges], [
    [18, [21, 22]],
    [22, [23, 24, 25, 26]],
    [26, [27, 28, 29, 30]],
    [30, [31, 32, 33, 34]],
    [34, [35, 36, 37, 38]],
  ]);
});

test("LiveFeed waits at a newer point that was there when it began to wait, unless the older one has come", () => {
  const waits = (hasCome: boolean) => {
    const { stage, peers: [peer, other] } = Stage.joined(2);
    const feed = stage.node.openFeed();
    assertEquals(feed.oldestWanted, 16);
    if (hasCome) stage.piece(peer!, 16);
    stage.header(other!, 18);
    const place = feed.oldestWanted;
    // 22 was captured after that: to begin there takes longer.
    stage.header(other!, 22);
    return [place, feed.oldestWanted];
  };
  assertEquals([waits(false), waits(true)], [[18, 18], [16, 22]]);
});

test("LiveFeed begins at no random access point that it has given up, unless that is near the edge and all after it has come", () => {
  const begun = (edge: number, late: readonly number[]) => {
    const { stage, peers: [peer] } = Stage.joined(1);
    const feed = stage.node.openFeed();
    for (const seq of [18, 19]) stage.header(peer!, seq);
    for (let seq = 21; seq <= edge; seq++) {
      stage.header(peer!, seq);
      feed.take(stage.clock.monotonic());
    }
    for (const seq of late) stage.piece(peer!, seq);
    return [feed.oldestWanted, feed.take(stage.clock.monotonic()).map(({ header }) => header.seq)];
  };
  // Pieces of half a second: 18 is 2.5 s behind 23, and 3 s behind 24.
  assertEquals(begun(23, [18, 19, 20, 21]), [22, [18, 19, 20, 21]]);
  // What lies between is no longer fetched: a player would stand still after a second.
  assertEquals(begun(23, [18, 19, 20]), [22, []]);
  assertEquals(begun(24, [18, 19, 20, 21]), [22, []]);
  assertEquals(begun(24, [18, 19, 22, 23]), [22, [22, 23]]);
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

test("LiveFeed stands still for a late piece for as long as skipping it would lose", () => {
  const { stage, peer, feed } = reader();
  for (const seq of [21, 22, 23, 24]) stage.header(peer, seq);
  for (const seq of [23, 24]) stage.piece(peer, seq);
  // 21 is due after 1.5 s; 24, where playing could go on, was captured 1.5 s after it.
  stage.clock.advance(2900);
  assertEquals(given(feed, stage), []);
  for (const seq of [21, 22]) stage.piece(peer, seq);
  assertEquals(given(feed, stage), [[21, false], [22, false], [23, false], [24, false]]);
  assertEquals([feed.skippedPieces, feed.stalledMs], [0, 1400]);
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
  for (const seq of [23, 24]) stage.header(peer!, seq);
  assertEquals(feed.take(stage.clock.monotonic()), []);
  for (const seq of [22, 24]) stage.piece(peer!, seq);
  assertEquals(feed.take(stage.clock.monotonic()).map(({ header }) => header.seq), [24]);
  // 24 was due 2 s ago itself: the player stood still until now.
  assertEquals([feed.skippedPieces, feed.stalledMs], [2, 2400]);
});

test("LiveFeed waits for a late piece when the next random access point is far away", () => {
  const { stage, peer, feed } = reader();
  for (let seq = 21; seq <= 27; seq++) stage.header(peer, seq, { flags: 0 });
  // 21 was due 3.5 s ago: the player is further behind than it may wait otherwise.
  stage.clock.advance(5000);
  assertEquals(given(feed, stage), []);
  // 28, where playing could go on, was captured 3.5 s after 21: no more would be lost by waiting.
  stage.header(peer, 28);
  assertEquals(given(feed, stage), []);
  stage.piece(peer, 21);
  assertEquals(given(feed, stage), [[21, false]]);
  assertEquals([feed.skippedPieces, feed.stalledMs], [0, 3500]);
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
  stage.clock.advance(500);
  stage.piece(peer!, 22);
  assertEquals(feed.take(stage.clock.monotonic()).map(({ header }) => header.seq), [22]);
  // Once 22 is shown, 23 is waited for, and skipped when 24 is all that there is.
  stage.clock.advance(1000);
  assertEquals(feed.take(stage.clock.monotonic()).map(({ header }) => header.seq), [24]);
  assertEquals([feed.skippedPieces, feed.stalledMs], [2, 0]);
});

test("LiveFeed skips what a broadcaster that is back has never sent at once when no neighbour has it", () => {
  const { stage, peer, feed } = reader();
  // 21 to 31 were never used; of 21 the header came before the broadcaster was killed.
  stage.header(peer, 21);
  stage.clock.advance(2100);
  comesBack(stage, peer, 32, 2000);
  assertEquals(given(feed, stage), []);
  stage.piece(peer, 32);
  // It is due 900 ms from now.
  assertEquals(given(feed, stage), [[32, true]]);
  assertEquals([feed.skippedPieces, feed.stalledMs], [11, 0]);
});

test("LiveFeed goes on from the return of a broadcaster only once that can be played", () => {
  const { stage, peer, feed } = reader();
  stage.clock.advance(2100);
  comesBack(stage, peer, 32, 2000);
  // 34 is a random access point, too, and the one before it may come any moment.
  for (const seq of [33, 34]) stage.header(peer, seq, { ageMs: 4000 });
  stage.piece(peer, 34);
  assertEquals(given(feed, stage), []);
  stage.clock.advance(400);
  assertEquals(given(feed, stage), []);
  stage.piece(peer, 32);
  assertEquals(given(feed, stage), [[32, true]]);
});

test("LiveFeed waits until it is due for a piece from before a broadcaster's return when a neighbour has it", () => {
  const { stage, peer, feed } = reader();
  stage.window(peer, 10, 22);
  stage.clock.advance(2100);
  comesBack(stage, peer, 32, 2000);
  stage.piece(peer, 32);
  assertEquals(given(feed, stage), []);
  stage.clock.advance(800);
  assertEquals(given(feed, stage), []);
  stage.clock.advance(100);
  assertEquals(given(feed, stage), [[32, true]]);
});

test("LiveFeed gives a piece that was overtaken by a discontinuity the time that another parent may take for it", () => {
  const { stage, peer, feed } = reader();
  stage.clock.advance(600);
  comesBack(stage, peer, 22, 600);
  stage.piece(peer, 22);
  assertEquals(given(feed, stage), []);
  stage.clock.advance(900);
  assertEquals(given(feed, stage), []);
  stage.header(peer, 21);
  stage.piece(peer, 21);
  assertEquals(given(feed, stage), [[21, false], [22, true]]);
  assertEquals(feed.skippedPieces, 0);
});

test("LiveFeed ends with the broadcast", () => {
  const stage = source(8);
  const feed = stage.node.openFeed();
  stage.node.publish({ header: stage.headerOf(8, { flags: FLAG_END }), data: GENUINE.subarray(0, PIECE_BYTES) });
  feed.take(stage.clock.monotonic());
  assert(feed.ended);
});

test("LiveFeed goes on at once when its broadcaster is back with a clock that is hours ahead, and does not wait for them", () => {
  const { stage, peer, feed } = reader();
  stage.pass(1500);
  comesBack(stage, peer, 32, 3_600_000);
  stage.piece(peer, 32);
  stage.pass(2500);
  const at = given(feed, stage);
  assertEquals(at, [[32, true]]);
  const header = stage.node.window.newest!;
  assert(feed.dueMs(header) - stage.clock.monotonic() < 1000);
});

test("LiveFeed goes on near the edge at once when we stood still, and does not wait for what was due meanwhile", () => {
  const { stage, peer, feed } = reader();
  stage.clock.standStill(80_000);
  stage.window(peer, 150, 187);
  for (let seq = 176; seq <= 186; seq++) {
    stage.header(peer, seq);
    if (seq >= 180) stage.piece(peer, seq);
  }
  const seqs = given(feed, stage);
  assertEquals(seqs[0], [180, true]);
  assertEquals(seqs.at(-1), [186, false]);
});
