import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import * as scenarios from "./scenarios.ts";
import { SimSwarm } from "./sim-swarm.ts";
import { SimPlayer } from "./sim-player.ts";

const MiB = 1_048_576;
const MBIT = 125_000;

test("Scheduler splits the first piece over all peers and seeks within a piece of the physical limit", () => {
  const result = scenarios.fourSeeders();
  assert(result.startMs! < result.limitMs! + 60, `start ${result.startMs} ms, limit ${result.limitMs}`);
  // Round trip 50 ms, piece 105 ms, the rest is what peers had in their send buffers.
  assert(result.seekP95Ms! < 220, `seek ${result.seekP95Ms} ms`);
  assertEquals(result.stalls, 0);
  assert(result.duplicatePercent < 1, `duplicates ${result.duplicatePercent} %`);
});

test("Scheduler starts and seeks on thirty slow peers without holding up the head of the line", () => {
  const result = scenarios.slowPeers();
  assert(result.startMs! < 1400, `start ${result.startMs} ms`);
  assert(result.seekP95Ms! < 1400, `seek ${result.seekP95Ms} ms`);
  assertEquals(result.stalls, 0);
  assert(result.duplicatePercent < 1, `duplicates ${result.duplicatePercent} %`);
});

test("Scheduler plays on when one of four seeders freezes at 1.3 × the bitrate", () => {
  for (const seed of [1, 2, 3]) {
    const result = scenarios.freeze({}, seed);
    assert(result.startMs! < result.limitMs! + 250, `start ${result.startMs} ms, limit ${result.limitMs}`);
    assertEquals(result.stalls, 0);
    assert(result.players[0]!.done);
    assert(result.duplicatePercent < 1);
    assertEquals(result.swarm.dropped, [1]);
  }
});

test("Scheduler starts in time and plays on when links deliver in lumps and swallow all that is asked for", () => {
  const result = scenarios.bloatedFreeze();
  assert(result.startMs! < result.limitMs! + 400, `start ${result.startMs} ms, limit ${result.limitMs}`);
  assertEquals(result.stalls, 0);
  assert(result.players[0]!.done);
  assert(result.duplicatePercent < 1, `duplicates ${result.duplicatePercent} %`);
});

test("Scheduler keeps a loopback-fast peer and long routes busy", () => {
  const fast = scenarios.fastPeer();
  assert(fast.utilisation! > 0.98, `use ${fast.utilisation}`);
  const long = scenarios.longRoutes();
  assert(long.utilisation! > 0.94, `use ${long.utilisation}`);
  assert(long.duplicatePercent < 1);
});

test("Scheduler keeps a peer busy that answers every 500 ms only", () => {
  const result = scenarios.burstyPeer();
  assert(result.startMs! < 2500, `start ${result.startMs} ms`);
  assert(result.utilisation! > 0.55, `use ${result.utilisation}`);
  assert(result.duplicatePercent < 1);
});

test("Scheduler meets the deadlines of three players beside a copy at full speed", () => {
  const result = scenarios.manyReaders();
  assertEquals(result.stalls, 0);
  assert(result.startMs! < 1000, `start ${result.startMs} ms`);
  assert(result.duplicatePercent < 1);
});

test("Scheduler spreads the awaited piece over peers so slow that a block takes seconds", () => {
  const results = [1, 2, 3, 4, 5].map((seed) => scenarios.crawl({}, seed));
  const starts = results.map(({ startMs }) => startMs!).sort((a, b) => a - b);
  assert(starts[2]! < 1.15 * results[0]!.limitMs!, `${starts}`);
  assert(starts[4]! < 1.3 * results[0]!.limitMs!, `${starts}`);
  for (const { duplicatePercent } of results) assert(duplicatePercent < 15, `${duplicatePercent}`);
});

test("Scheduler shares a swarm that is too slow evenly among readers, whether they copy or play", () => {
  for (const pieceBytes of [65_536, MiB]) {
    for (const bytesPerSecond of [Number.POSITIVE_INFINITY, 4 * MBIT]) {
      const got = scenarios.lateReaders(pieceBytes, bytesPerSecond);
      assert(Math.max(...got) <= 1.3 * Math.min(...got), `${got}`);
    }
  }
});

test("Scheduler plays among liars, corrupting, choking, rejecting and leaving peers", () => {
  const starts: number[] = [];
  for (let seed = 1; seed <= 5; seed++) {
    const result = scenarios.adversaries({}, seed);
    starts.push(result.startMs!);
    assertEquals(result.stalls, 0, `seed ${seed}`);
    assert(result.players[0]!.done);
    assertEquals(result.swarm.banned, [6], `seed ${seed}`);
  }
  assert(Math.max(...starts) < 3000, `starts ${starts}`);
  assert(starts.sort((a, b) => a - b)[2]! < 520, `starts ${starts}`);
});

test("Scheduler starts, plays and seeks in bad swarms: three of eight peers never unchoke, one forges half of its blocks", () => {
  const result = scenarios.badSwarms(20);
  assert(result.startP95Ms < 1800, `start ${result.startP95Ms} ms, limit ${result.startLimitP95Ms}`);
  assert(result.seekP95Ms < 560, `seek ${result.seekP95Ms} ms, limit ${result.seekLimitP95Ms}`);
  assert(result.stalledPercent <= 0.1, `stalled ${result.stalledPercent} %`);
  assertEquals(result.bans, 20);
});

test("Scheduler downloads everything rarest first when nobody reads", () => {
  const result = scenarios.background();
  assertEquals(result.swarm.haveCount, result.swarm.pieceCount);
  assert(result.utilisation! > 0.97, `use ${result.utilisation}`);
  assert(result.duplicatePercent < 1);
});

test("Scheduler runs are the same every time", () => {
  const figures = [1, 2].map(() => {
    const { startMs, duplicatePercent, swarm } = scenarios.adversaries({}, 4);
    return [startMs, duplicatePercent, swarm.requests, swarm.nowMs];
  });
  assertEquals(figures[0], figures[1]);
});

test("Scheduler names the reason when nobody has a piece, and goes on when somebody comes", () => {
  const lacks = (piece: number): boolean => piece === 5;
  const swarm = new SimSwarm({
    totalBytes: 20 * MiB,
    pieceBytes: MiB,
    peers: [{ rate: 20 * MBIT, rttMs: 50, lacks }, { rate: 20 * MBIT, rttMs: 50, joinAtMs: 20_000 }],
  });
  const player = new SimPlayer(swarm, { id: 1, bytesPerSecond: 8 * MBIT });
  swarm.queue.run(12_000);
  assertEquals(player.position, 5 * MiB);
  assertEquals(swarm.scheduler.stallReason(1, swarm.nowMs), "missing_piece");
  assertEquals(swarm.haveCount, 19); // all the others
  swarm.queue.run(60_000, () => player.done);
  assert(player.done);
  assertEquals(swarm.scheduler.stallReason(1, swarm.nowMs), null);
});

test("Scheduler asks for nothing more when its only reader is gone, and for evicted pieces when one comes back", () => {
  const peers = [{ rate: 20 * MBIT, rttMs: 50 }, { rate: 20 * MBIT, rttMs: 50 }];
  const swarm = new SimSwarm({ totalBytes: 100 * MiB, pieceBytes: MiB, peers });
  const player = new SimPlayer(swarm, { id: 1, bytesPerSecond: 8 * MBIT });
  swarm.queue.run(1500);
  player.close();
  const asked = swarm.requests;
  const received = swarm.receivedBytes;
  swarm.queue.run(10_000);
  assertEquals(swarm.requests, asked);
  assert(swarm.receivedBytes - received < MiB, "what was in the pipes");
  const had = swarm.haveCount;
  assert(had > 2);
  for (let piece = 0; piece < had; piece++) swarm.evict(piece);
  const again = new SimPlayer(swarm, { id: 2, bytesPerSecond: 8 * MBIT });
  swarm.queue.run(200_000, () => again.done);
  assert(again.done);
  assertEquals(again.stalls, 0);
});

test("Scheduler survives its own process being stopped for a while", () => {
  const peers = [{ rate: 5 * MBIT, rttMs: 50 }, { rate: 5 * MBIT, rttMs: 50 }];
  const swarm = new SimSwarm({ totalBytes: 40 * MiB, pieceBytes: MiB, peers, pauses: [{ atMs: 4000, endMs: 9000 }] });
  const player = new SimPlayer(swarm, { id: 1, bytesPerSecond: 4 * MBIT });
  swarm.queue.run(200_000, () => player.done);
  assert(player.done);
  assertEquals(swarm.dropped, []);
  assert(swarm.duplicatePercent < 1, `duplicates ${swarm.duplicatePercent} %`);
});
