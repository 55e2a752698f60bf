import { test } from "node:test";
import { createHash } from "node:crypto";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { BufferPool } from "../../src/storage/buffer-pool.ts";
import { diskComponent, diskPaths } from "../../src/storage/disk-names.ts";
import { HandleCache } from "../../src/storage/handle-cache.ts";
import { hashPiece, PieceHasher } from "../../src/storage/piece-hasher.ts";
import { extentPlacement, filePlacement } from "../../src/storage/placement.ts";
import { createRamCache } from "../../src/storage/ram-cache.ts";
import { createSeedCache } from "../../src/storage/seed-cache.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { MemoryFiles } from "./memory-files.ts";
import { sample, silent } from "./support.ts";

test("BufferPool hands a buffer to one owner at a time", () => {
  const pool = new BufferPool(100);
  const first = pool.acquire(60);
  pool.release(first);
  pool.release(first.subarray(3));
  pool.release(new Uint8Array(60));
  assertEquals(pool.idleBytes, 60);
  const second = pool.acquire(60);
  assert(second.buffer === first.buffer);
  assert(pool.acquire(60).buffer !== second.buffer);
});

test("BufferPool keeps a bounded number of idle bytes", () => {
  const pool = new BufferPool(100);
  for (const buffer of [10, 20, 30, 40, 50].map((size) => pool.acquire(size))) pool.release(buffer);
  assertEquals(pool.idleBytes, 90);
});

test("PieceHasher hashes everything, a few at once", async () => {
  const hasher = new PieceHasher(2);
  const data = Array.from({ length: 9 }, (_, i) => new Uint8Array(1000).fill(i));
  const hashes = await Promise.all(data.map((bytes) => hasher.hash(bytes)));
  hashes.forEach((hash, i) => assertEquals(hash, new Uint8Array(createHash("sha1").update(data[i]!).digest())));
  assertEquals(await hashPiece(data[0]!), hashes[0]!);
  const layout = { pieceLengthBytes: 1000, pieceHashes: new Uint8Array([...hashes[0]!, ...hashes[1]!]) };
  assert(await hasher.matches(data[1]!, layout, 1));
  assert(!await hasher.matches(data[1]!, layout, 0));
});

test("diskComponent() makes names that every file system accepts", () => {
  const cases: [string, string][] = [
    ["film.mkv", "film.mkv"],
    ["a:b?c*d", "a_b_c_d"],
    ["..", "_"],
    ["trailing. ", "trailing_"],
    ["CON.txt", "_CON.txt"],
    ["\ud800x", "_x"],
    ["", "_"],
  ];
  for (const [name, expected] of cases) assertEquals(diskComponent(name), expected);
  const long = diskComponent("ß".repeat(300) + ".mkv");
  assert(new TextEncoder().encode(long).length <= 200 && long.endsWith(".mkv"));
});

test("diskPaths() keeps paths distinct that a file system could confuse", () => {
  assertEquals(diskPaths(["A/x.txt", "a/X.txt", "a/X.txt", "A/y", "b:", "b?"]), [
    "A/x.txt",
    "a (1)/X.txt",
    "a (1)/X (2).txt",
    "A/y",
    "b_",
    "b_ (5)",
  ]);
  const paths = Array.from({ length: 50 }, (_, i) => "abcABC?:*"[i % 9]! + "/" + "xX"[i % 2]);
  const folded = diskPaths(paths).map((path) => path.toLowerCase());
  assertEquals(new Set(folded).size, 50);
});

test("placements locate every byte once", () => {
  const { layout } = sample({ "a": 20_000, "e": 0, "b": 1, "pad:p": 12_767, "c": 3_000_000 });
  for (const placement of [filePlacement(layout, "/d"), extentPlacement(layout, "/d")]) {
    for (const [offset, length] of [[0, layout.totalBytes], [19_999, 3], [20_001, 20_000], [5, 0]] as const) {
      const parts = placement.locate(offset, length);
      assertEquals(parts.reduce((sum, part) => sum + part.length, 0), length);
      for (const part of parts) assert(part.position + part.length <= placement.unitBytes(part.unit));
    }
  }
  assertEquals(filePlacement(layout, "/d").locate(19_999, 3).map((p) => [p.unit, p.position, p.length, p.at]), [
    [0, 19_999, 1, 0],
    [2, 0, 1, 1],
    [3, 0, 1, 2],
  ]);
});

test("HandleCache keeps a bounded number of files open and never closes one in use", async () => {
  const files = new MemoryFiles(new FakeClock());
  const handles = new HandleCache(files, 3);
  await handles.use("/x/kept", "write", async (kept) => {
    for (let i = 0; i < 10; i++) await handles.use(`/x/${i}`, "write", (file) => file.write(new Uint8Array(1), 0));
    await handles.settled();
    assertEquals(files.openHandles, 3);
    await kept.write(new Uint8Array(1), 0);
  });
  const opened = files.counts.open;
  await handles.use("/x/9", "read", (file) => file.read(new Uint8Array(1), 0));
  assertEquals(files.counts.open, opened);
  for (let i = 0; i < 10; i++) handles.forget(`/x/${i}`);
  handles.forget("/x/kept");
  await handles.settled();
  assertEquals(files.openHandles, 0);
});

test("createRamCache() keeps pieces under its limit", async () => {
  const cache = createRamCache({ limitBytes: 65_536, clock: new FakeClock() });
  const torrent = sample({ a: 200_000 });
  const store = await cache.open(torrent.layout);
  const lost: number[] = [];
  store.onLost = (piece) => lost.push(piece);
  store.protect = (piece) => piece === 0;
  for (let piece = 0; piece < 6; piece++) await store.put(piece, torrent.piece(piece));
  assertEquals([lost, cache.usedBytes], [[1, 2], 65_536]);
  assertEquals(await store.read(5, 1, 9), torrent.piece(5).slice(1, 10));
  assertEquals(store.peek(1, 0, 1), null);
  assertEquals((await assertRejects(() => store.read(1, 0, 1), MillraceError)).code, "not_found");
  assertEquals((await assertRejects(() => cache.open(torrent.layout), MillraceError)).code, "conflict");
  await store.close();
  assertEquals((await cache.open(torrent.layout)).have.count, 4);
});

test("createRamCache() without a limit forgets a torrent when it is closed", async () => {
  const cache = createRamCache({ limitBytes: 0, clock: new FakeClock() });
  const torrent = sample({ a: 200_000 });
  const store = await cache.open(torrent.layout);
  await store.put(3, torrent.piece(3));
  await store.close();
  assertEquals([cache.usedBytes, (await cache.open(torrent.layout)).have.count], [0, 0]);
});

test("createSeedCache() serves pieces with correct hashes and writes nothing", async () => {
  const clock = new FakeClock();
  const files = new MemoryFiles(clock);
  const torrent = sample({ "a": 40_000, "d/b": 60_000 });
  await files.writeFile("/media/pack/a", torrent.content.slice(0, 40_000));
  await files.writeFile("/media/pack/d/b", torrent.content.slice(40_000).fill(0, 50_000));
  const cache = createSeedCache({ files, directory: "/media", clock, log: silent });
  const store = await cache.open(torrent.layout);
  assertEquals([0, 1, 2, 3, 4, 5, 6].filter((piece) => store.have.has(piece)), [0, 1, 2, 3, 4]);
  assertEquals(await store.read(2, 0, 16384), torrent.piece(2));
  assertEquals((await assertRejects(() => store.put(6, torrent.piece(6)), MillraceError)).code, "io");
  await cache.close();
  assertEquals([files.nodes.size, files.openHandles, files.counts.write], [2, 0, undefined]);
});
