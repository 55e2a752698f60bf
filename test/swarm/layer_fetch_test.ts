import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { TREE_HASH_BYTES } from "../../src/bytes/merkle.ts";
import { parseInfo } from "../../src/metainfo/info.ts";
import type { Metainfo } from "../../src/metainfo/types.ts";
import { HashServer } from "../../src/swarm/hashes/hash-server.ts";
import { type HashSource, LayerFetch, requestsFor } from "../../src/swarm/hashes/layer-fetch.ts";
import { Bitfield } from "../../src/bytes/bitfield.ts";
import type { HashRequest } from "../../src/wire/hash-messages.ts";
import { offenceOf } from "../../src/wire/offence.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { makeV2Torrent, sha256, type V2Torrent } from "../support/v2-torrent.ts";

/** A torrent of one long file whose layer takes several requests, a shorter one, a copy of it and one of a single piece. */
const torrent = makeV2Torrent({ a: 600 * 16_384 - 5, b: 40_000, c: 9 }, 16_384);

function serverOf({ metainfo, piece }: V2Torrent): HashServer {
  const have = Bitfield.allSet(metainfo.pieceCount);
  have.set(1, false);
  return new HashServer(
    metainfo,
    { have, read: (index) => Promise.resolve(piece(index)) },
    (index) => piece(index).length,
    sha256,
  );
}

/** A fetch, its peers and what it asked of each; `bare` is the torrent without layers. */
async function setUp(peers = 2) {
  const made = await torrent;
  const clock = new FakeClock();
  const bare = await parseInfo(made.metainfo.infoBytes);
  const asked: HashRequest[][] = [];
  const dropped: (Error | undefined)[][] = [];
  const sessions = Array.from({ length: peers }, (_, i): HashSource & { isReady: boolean } => {
    asked.push([]);
    dropped.push([]);
    const session = {
      isReady: true,
      link: { sendHash: (_id: number, request: HashRequest) => void asked[i]!.push(request) },
      drop: (error?: Error) => {
        session.isReady = false;
        dropped[i]!.push(error);
        fetch.pump();
      },
    };
    return session;
  });
  const fetch = new LayerFetch(clock, { sessions });
  const found: Metainfo[] = [];
  fetch.complete(bare, (whole) => found.push(whole));
  const server = serverOf(made);
  const answer = async (peer: number, request: HashRequest) => {
    await fetch.arrived(sessions[peer]!, request, (await server.answer(request))!);
  };
  return { made, clock, fetch, sessions, asked, dropped, found, answer };
}

test("LayerFetch asks for rows of 512 hashes, checks them and completes the torrent", async () => {
  const { made, asked, found, answer, clock } = await setUp(1);
  assertEquals(asked[0]!.map(({ level, index, count, proofLevels }) => [level, index, count, proofLevels]), [
    [0, 0, 4, 1],
    [0, 512, 512, 9],
    [0, 0, 512, 9],
  ]);
  for (const request of asked[0]!) await answer(0, request);
  assertEquals(found, [made.metainfo]);
  assertEquals(clock.pendingTimers, 0);
});

test("LayerFetch has nothing to ask when no layer is missing", async () => {
  const { metainfo } = await torrent;
  const found: Metainfo[] = [];
  new LayerFetch(new FakeClock(), { sessions: [] }).complete(metainfo, (whole) => found.push(whole));
  assertEquals(found, [metainfo]);
});

test("LayerFetch drops a peer that sends other hashes, and asks the next one", async () => {
  for (
    const spoil of [
      (bytes: Uint8Array) => bytes.fill(7, 40, 41),
      (bytes: Uint8Array) => bytes.subarray(TREE_HASH_BYTES),
    ]
  ) {
    const { fetch, sessions, asked, dropped, found, answer } = await setUp();
    const [first] = asked[0]!;
    const server = serverOf(await torrent);
    await fetch.arrived(sessions[0]!, first!, spoil((await server.answer(first!))!));
    assertEquals(dropped.map((errors) => errors.map(offenceOf)), [["lie"], []]);
    assertEquals(asked[1]!.length, 3);
    for (const request of asked[1]!) await answer(1, request);
    assertEquals(found.length, 1);
  }
});

test("LayerFetch asks others when a peer refuses, and others as well when it is silent", async () => {
  const { fetch, sessions, asked, found, answer, clock } = await setUp();
  const counts = () => asked.map((requests) => requests.length);
  assertEquals(counts(), [2, 1]);
  fetch.refused(sessions[0]!, asked[0]![0]!);
  assertEquals(counts(), [2, 2]);
  clock.advance(1_000);
  assertEquals(counts(), [2, 3]);
  for (const request of asked[1]!) await answer(1, request);
  assertEquals(found.length, 1);
});

test("LayerFetch asks the only peer again after it was silent, and a newcomer first", async () => {
  const { sessions, asked, found, answer, clock } = await setUp();
  sessions[1]!.isReady = false;
  clock.advance(4_000);
  assertEquals([asked[0]!.length, asked[1]!.length], [3, 1]);
  clock.advance(3_000);
  assertEquals(asked[0]!.length, 6);
  sessions[1]!.isReady = true;
  clock.advance(1_000);
  assertEquals(asked[1]!.length, 4);
  for (const request of asked[1]!.slice(1)) await answer(1, request);
  assertEquals(found.length, 1);
});

test("LayerFetch ignores hashes that nobody asked for, and is silent after close()", async () => {
  const { fetch, sessions, asked, found, answer, clock, dropped } = await setUp(1);
  const [first] = asked[0]!;
  await fetch.arrived(sessions[0]!, { ...first!, index: 4 }, new Uint8Array(128));
  fetch.close();
  for (const request of asked[0]!) await answer(0, request);
  assertEquals([found.length, dropped[0]!.length, clock.pendingTimers], [0, 0, 0]);
});

test("HashServer.answer() sends the leaves of a piece that is here, proven to the root", async () => {
  const made = await makeV2Torrent({ a: 200_000, b: 20_000 }, 65_536);
  const server = serverOf(made);
  const [tree, single] = made.metainfo.trees!;
  const [row] = requestsFor(tree!, 65_536);
  assertEquals((await server.answer(row!))!.subarray(0, 128), tree!.layer);
  const leaves = { root: tree!.root, level: 0, index: 8, count: 4, proofLevels: 3 };
  assertEquals((await server.answer(leaves))!.length, 6 * TREE_HASH_BYTES);
  assertEquals((await server.answer({ root: single!.root, level: 0, index: 0, count: 2, proofLevels: 0 }))!.length, 64);
});

test("HashServer.answer() refuses what it lacks and what no tree has", async () => {
  const made = await makeV2Torrent({ a: 200_000, b: 20_000 }, 65_536);
  const server = serverOf(made);
  const { root } = made.metainfo.trees![0]!;
  const good = { root, level: 2, index: 0, count: 4, proofLevels: 0 };
  const refused: Record<string, Partial<HashRequest>> = {
    "another tree": { root: new Uint8Array(32) },
    "one hash": { count: 1 },
    "three hashes": { count: 3 },
    "more hashes than the level has": { count: 8 },
    "more hashes than a message holds": { level: 0, count: 1024 },
    "an index between rows": { index: 2 },
    "a row after the end": { index: 4 },
    "a level above the root": { level: 9 },
    "a proof above the root": { proofLevels: 2 },
    "leaves of a piece that is not here": { level: 0, index: 4 },
    "leaves of two pieces": { level: 0, count: 8 },
    "the largest numbers": { level: 0xffffffff, index: 0xffffffff, count: 0x80000000, proofLevels: 0xffffffff },
  };
  assertEquals((await server.answer(good))!.length, 128);
  for (const [what, change] of Object.entries(refused)) {
    assertEquals(await server.answer({ ...good, ...change }), null, what);
  }
});
