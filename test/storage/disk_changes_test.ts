import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { check, fill, make } from "./disk-support.ts";
import { sample } from "./support.ts";

test("read() notices a file that another program deleted or changed", async () => {
  const { open, files, clock } = make();
  const torrent = sample({ "a": 163_840, "b": 163_840, "c": 163_840 });
  const store = await (await open()).open(torrent.layout);
  const root = `/cache/${torrent.layout.infohashHex}/pack`;
  const lost: [number, string][] = [];
  store.onLost = (piece, reason) => lost.push([piece, reason]);
  await fill(store, torrent);
  await clock.advanceAsync(8_000);
  files.nodes.delete(`${root}/a`);
  files.change(`${root}/b`, (bytes) => bytes.fill(9, 40_000, 40_001));
  assertEquals((await assertRejects(() => store.read(0, 0, 10), MillraceError)).code, "not_found");
  assertEquals(await store.read(10, 0, 16384), torrent.piece(10));
  const { code } = await assertRejects(() => store.read(12, 0, 10), MillraceError);
  assert(code === "corrupt" || code === "not_found", "found by this read or by the sweep before it");
  assertEquals(lost.filter(([, reason]) => reason === "io"), [[12, "io"]]);
  assertEquals(lost.filter(([, reason]) => reason === "deleted").map(([piece]) => piece), [
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
  ]);
  await fill(store, torrent, [0, 12]);
  assert((await check(store, torrent)).includes(12));
});

test("read() serves no bytes that were changed while the store wrote to the same file", async () => {
  for (const laterMs of [0, 8_000]) {
    const { open, files, clock } = make();
    const torrent = sample({ "a": 163_840, "b": 163_840 });
    const store = await (await open()).open(torrent.layout);
    const early = Array.from({ length: 19 }, (_, piece) => piece);
    await fill(store, torrent, early);
    await clock.advanceAsync(8_000);
    // All pieces have been read from disk once, and were good.
    assertEquals(await check(store, torrent), early);
    await fill(store, torrent, [19]);
    files.change(`/cache/${torrent.layout.infohashHex}/pack/b`, (bytes) => bytes.fill(9, 40_000, 40_001));
    await clock.advanceAsync(laterMs);
    const { code } = await assertRejects(() => store.read(12, 0, 10), MillraceError);
    assert(code === "corrupt" || code === "not_found", code);
    assertEquals(await store.read(11, 0, 16384), torrent.piece(11));
  }
});

test("read() serves no bytes that were changed just after another read of the same file, or during it", async () => {
  const { open, files, clock } = make();
  const torrent = sample({ "a": 163_840 });
  const store = await (await open()).open(torrent.layout);
  await fill(store, torrent);
  await clock.advanceAsync(8_000);
  const all = Array.from({ length: torrent.layout.pieceCount }, (_, piece) => piece);
  assertEquals(await check(store, torrent), all, "all pieces have been read from disk once, and were good");
  const path = `/cache/${torrent.layout.infohashHex}/pack/a`;
  const spoil = (piece: number) => files.change(path, (bytes) => bytes.fill(9, piece * 16_384, piece * 16_384 + 1));
  spoil(3);
  await clock.advanceAsync(10);
  const refused = async (piece: number) => {
    const { code } = await assertRejects(() => store.read(piece, 0, 10), MillraceError);
    assert(code === "corrupt" || code === "not_found", code);
  };
  await Promise.all([refused(3), refused(3)]);
  spoil(5);
  await clock.advanceAsync(10);
  const first = store.read(0, 0, 10);
  await Promise.all([refused(5), first]);
});
