import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { BLOCK_BYTES, FakeHost } from "./fake-host.ts";

test("WebRuns.reserve() gives a web seed runs that nobody else is fetching, over pieces", () => {
  const host = new FakeHost(4, 8);
  const { webRuns } = host.scheduler;
  host.scheduler.addWebSeed(9, 0);
  assertEquals(webRuns.reserve(9, 100 * BLOCK_BYTES, 0), null);
  host.read(1, 0);
  const first = webRuns.reserve(9, 3 * BLOCK_BYTES + 5, 0);
  assertEquals(first, { piece: 0, offset: 0, length: 3 * BLOCK_BYTES });
  const second = webRuns.reserve(9, 9 * BLOCK_BYTES, 0)!;
  assertEquals(second, { piece: 0, offset: 3 * BLOCK_BYTES, length: 9 * BLOCK_BYTES });
  host.peer(0);
  assert(host.asked.every((ask) => ask.piece > 0 && ask.peer === 0));
  assert(host.deliver({ peer: 9, piece: 0, offset: 0, length: BLOCK_BYTES }));
  assertEquals(webRuns.isWanted(9, second), true);
  webRuns.giveBack(9, second, 0);
  assertEquals([webRuns.isWanted(9, second), webRuns.isWanted(9, first!)], [false, true]);
  // The web seed failed: what it reserved is free again.
  host.scheduler.removePeer(9, 0);
  host.deliverPiece(0);
  assertEquals(host.senders.get(0)?.toSorted(), [0, 0, 0, 0, 0, 0, 0, 9]);
});

test("WebRuns.reserve() keeps to the order of the torrent when nobody reads, and to what the web seed has", () => {
  const host = new FakeHost(64, 2);
  const { webRuns } = host.scheduler;
  host.scheduler.addWebSeed(9, 0);
  host.scheduler.setBackground({ firstPiece: 0, endPiece: 64 }, 0);
  const first = webRuns.reserve(9, 5 * BLOCK_BYTES, 0)!;
  const second = webRuns.reserve(9, 5 * BLOCK_BYTES, 0)!;
  assert(first.piece < 59, "the random first piece is not near the end");
  assertEquals(second, { piece: first.piece + 2, offset: BLOCK_BYTES, length: 5 * BLOCK_BYTES });
  const have = new Uint8Array(8);
  const other = first.piece < 32 ? 40 : 8;
  have[other >> 3] = 0xc0;
  host.scheduler.peerBitfield(9, have, 0);
  const rest = [1, 2, 3].map(() => webRuns.reserve(9, 20 * BLOCK_BYTES, 0)?.length ?? 0);
  assertEquals(rest.reduce((sum, length) => sum + length), 4 * BLOCK_BYTES);
});

test("WebRuns.reserveBlock() takes a block that is missing, and none twice", () => {
  const host = new FakeHost(4, 2);
  host.scheduler.addWebSeed(9, 0);
  const { webRuns } = host.scheduler;
  assertEquals(webRuns.reserveBlock(9, 2, BLOCK_BYTES, 0), true);
  assertEquals(webRuns.reserveBlock(9, 2, BLOCK_BYTES, 0), false);
  assert(host.deliver({ peer: 9, piece: 2, offset: BLOCK_BYTES, length: BLOCK_BYTES }));
  assertEquals(webRuns.reserveBlock(9, 2, BLOCK_BYTES, 0), false);
  assertEquals(webRuns.reserveBlock(8, 2, 0, 0), false);
});
