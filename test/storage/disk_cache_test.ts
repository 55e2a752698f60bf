import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import type { PieceCache, PieceStore } from "../../src/storage/piece-store.ts";
import { isCollected } from "../support/collected.ts";
import { settle } from "../support/fake-clock.ts";
import { seeded } from "../metainfo/support.ts";
import { check, fill, make } from "./disk-support.ts";
import { type Sample, sample } from "./support.ts";

const SMALL = { "a/one.mkv": 50_000, "empty": 0, "two.srt": 1_000, "pad:.pad/9": 14_536, "three.mp4": 100_000 };

async function reopen(cache: PieceCache, open: () => Promise<PieceCache>, torrent: Sample): Promise<PieceStore> {
  await cache.close();
  return await (await open()).open(torrent.layout);
}

test("put() serves from memory before the disk has it, and from disk after", async () => {
  const { open, files } = make();
  const torrent = sample({ ...SMALL, "big": 300_000 });
  const store = await (await open()).open(torrent.layout);
  const written = store.put(0, torrent.piece(0));
  assertEquals(store.peek(0, 0, 5), torrent.piece(0).slice(0, 5));
  assertEquals([store.have.has(0), store.pendingBytes], [true, 16384]);
  await written;
  await fill(store, torrent);
  assertEquals(store.pendingBytes, 0);
  assertEquals(store.peek(0, 0, 5), null);
  assertEquals((await check(store, torrent)).length, torrent.layout.pieceCount);
  assert((files.counts.write ?? 0) < torrent.layout.pieceCount);
});

test("createDiskCache() lays files out as in the torrent when there is no limit", async () => {
  const { open, files } = make();
  const torrent = sample(SMALL);
  const cache = await open();
  await fill(await cache.open(torrent.layout), torrent);
  await cache.close();
  const root = `/cache/${torrent.layout.infohashHex}`;
  assertEquals([...files.nodes.keys()].sort(), [
    `${root}.resume`,
    `${root}/pack/a/one.mkv`,
    `${root}/pack/empty`,
    `${root}/pack/three.mp4`,
    `${root}/pack/two.srt`,
  ]);
  assertEquals(files.nodes.get(`${root}/pack/three.mp4`)?.bytes, torrent.content.slice(65_536));
  assertEquals(files.openHandles, 0);
});

test("open() restores all pieces without reading those known to be good", async () => {
  for (const limit of [0, 10_000_000]) {
    const { open, files } = make(limit);
    const torrent = sample(SMALL);
    const cache = await open();
    await fill(await cache.open(torrent.layout), torrent, [0, 1, 2, 5, 9]);
    await cache.close();
    files.counts.read = 0;
    const store = await (await open()).open(torrent.layout);
    assertEquals(files.counts.read, 3, "what is kept, and the resume file by the scan and by open()");
    assertEquals(await check(store, torrent), [0, 1, 2, 5, 9]);
  }
});

test("open() drops pieces of missing or truncated files and hashes those of changed ones", async () => {
  const { open, files, clock } = make();
  const torrent = sample({ "a": 65_536, "b": 65_536, "c": 65_536, "d": 65_536 });
  const cache = await open();
  const root = `/cache/${torrent.layout.infohashHex}/pack`;
  await fill(await cache.open(torrent.layout), torrent);
  await cache.close();
  clock.advance(10);
  files.nodes.delete(`${root}/a`);
  files.change(`${root}/b`, (bytes) => bytes.slice(0, 40_000));
  files.change(`${root}/c`, (bytes) => bytes.fill(1, 20_000, 20_010));
  const store = await reopen(cache, open, torrent);
  assertEquals(await check(store, torrent), [4, 5, 8, 10, 11, 12, 13, 14, 15]);
});

test("open() starts empty when the resume file is damaged or belongs to another torrent", async () => {
  for (const damage of ["", "{}", "[1]", '{"version":1,"layout":"files"}', "\0\0"]) {
    const { open, files } = make();
    const torrent = sample(SMALL);
    const cache = await open();
    await fill(await cache.open(torrent.layout), torrent);
    await cache.close();
    files.change(`/cache/${torrent.layout.infohashHex}.resume`, () => new TextEncoder().encode(damage));
    assertEquals((await reopen(cache, open, torrent)).have.count, 0);
  }
});

test("open() throws conflict when the torrent is open, but not after it was closed", async () => {
  const { open } = make();
  const torrent = sample(SMALL);
  const cache = await open();
  const store = await cache.open(torrent.layout);
  assertEquals((await assertRejects(() => cache.open(torrent.layout), MillraceError)).code, "conflict");
  assertEquals((await assertRejects(() => cache.remove(torrent.layout.infohashHex), MillraceError)).code, "conflict");
  await store.close();
  await (await cache.open(torrent.layout)).close();
});

test("remove() deletes a torrent and the record of its space", async () => {
  for (const limit of [0, 1_000_000]) {
    const { open, files } = make(limit);
    const torrent = sample(SMALL);
    const cache = await open();
    const store = await cache.open(torrent.layout);
    await fill(store, torrent);
    assertEquals(cache.usedBytes, torrent.layout.totalBytes);
    await store.close();
    assertEquals(cache.usedBytes, torrent.layout.totalBytes);
    await cache.remove(torrent.layout.infohashHex);
    assertEquals([cache.usedBytes, files.nodes.size], [0, 0]);
  }
});

test("put() evicts the least recently used under the limit, never protected pieces", async () => {
  const { open, files } = make(4 * 1_048_576);
  const torrent = sample({ a: 8 * 1_048_576 }, 1_048_576);
  const cache = await open();
  const store = await cache.open(torrent.layout);
  const lost: [number, string][] = [];
  store.onLost = (piece, reason) => lost.push([piece, reason]);
  store.protect = (piece) => piece === 1;
  await fill(store, torrent, [0, 1, 2, 3]);
  await store.read(0, 0, 10);
  await store.put(4, torrent.piece(4));
  await store.put(5, torrent.piece(5));
  assertEquals(lost, [[2, "evicted"], [3, "evicted"]]);
  assertEquals(await check(store, torrent), [0, 1, 4, 5]);
  assertEquals(cache.usedBytes, 4 * 1_048_576);
  await settle();
  assertEquals([...files.nodes.keys()].filter((path) => path.endsWith(".extent")).length, 4);
});

test("put() exceeds the limit by a bounded amount when everything is protected", async () => {
  const { open, clock } = make(1_048_576);
  const torrent = sample({ a: 80 * 1_048_576 }, 1_048_576);
  const store = await (await open()).open(torrent.layout);
  store.protect = () => true;
  for (let piece = 0; piece < 65; piece++) {
    await store.put(piece, torrent.piece(piece));
    clock.advance(1_000);
  }
  assertEquals((await assertRejects(() => store.put(66, torrent.piece(66)), MillraceError)).code, "disk_full");
  assertEquals([store.have.count, store.have.has(66)], [65, false]);
  store.protect = () => false;
  clock.advance(1_000);
  await store.put(66, torrent.piece(66));
  assertEquals(store.have.count, 1);
});

test("createDiskCache() evicts torrents that are not open, least recently used first", async () => {
  const { open, clock } = make(400_000);
  const torrents = [1, 2, 3].map((seed) => sample({ a: 200_000 }, 65_536, seed));
  let cache = await open();
  for (const torrent of torrents.slice(0, 2)) {
    const store = await cache.open(torrent.layout);
    await fill(store, torrent);
    await store.close();
    clock.advance(1_000);
  }
  await cache.close();
  cache = await open();
  assertEquals(cache.usedBytes, 400_000);
  await fill(await cache.open(torrents[2]!.layout), torrents[2]!);
  assert(cache.usedBytes <= 400_000);
  assertEquals((await cache.open(torrents[0]!.layout)).have.count, 0);
  assertEquals((await cache.open(torrents[1]!.layout)).have.count, 4);
});

test("close() releases the store, which the cache does not need to count and evict its extents", async () => {
  for (const limit of [0, 400_000]) {
    const { open, clock } = make(limit);
    const cache = await open();
    const played = async (seed: number) => {
      const torrent = sample({ a: 300_000 }, 65_536, seed);
      const store = await cache.open(torrent.layout);
      await fill(store, torrent);
      await store.close();
      clock.advance(1_000);
      return new WeakRef(store);
    };
    const first = await played(1);
    assert(await isCollected(first));
    assertEquals(cache.usedBytes, 300_000);
    await played(2);
    assert(limit === 0 ? cache.usedBytes === 600_000 : cache.usedBytes <= 400_000);
  }
});

test("createDiskCache() removes extents that no resume file claims", async () => {
  const { open, files } = make(1_000_000);
  await files.makeDirectory(`/cache/${"a".repeat(40)}`);
  await (await files.open(`/cache/${"a".repeat(40)}/7.extent`, "write")).write(new Uint8Array(9), 0);
  await files.writeFile(`/cache/${"a".repeat(40)}/holiday.jpg`, new Uint8Array(9));
  await files.writeFile(`/cache/${"b".repeat(40)}.resume.123.tmp`, new Uint8Array(9));
  await open();
  assertEquals([...files.nodes.keys()], [`/cache/${"a".repeat(40)}/holiday.jpg`]);
});

test("put() rejects with disk_full, clears the bit and works again later", async () => {
  const { open, files } = make();
  const torrent = sample(SMALL);
  const store = await (await open()).open(torrent.layout);
  await store.put(0, torrent.piece(0));
  files.hook = (operation) => {
    if (operation === "write") throw new MillraceError("disk_full", "no space");
  };
  assertEquals((await assertRejects(() => store.put(1, torrent.piece(1)), MillraceError)).code, "disk_full");
  assertEquals([store.have.has(0), store.have.has(1), store.pendingBytes], [true, false, 0]);
  files.hook = () => {};
  await store.put(1, torrent.piece(1));
  assertEquals(await check(store, torrent), [0, 1]);
});

test("put() frees space and tries again when the disk is full below the limit", async () => {
  const { open, files } = make(50 * 1_048_576);
  const torrent = sample({ a: 4 * 1_048_576 }, 1_048_576);
  const store = await (await open()).open(torrent.layout);
  await fill(store, torrent, [0, 1]);
  files.hook = (operation) => {
    const extents = [...files.nodes.keys()].filter((path) => path.endsWith(".extent"));
    if (operation === "write" && extents.length > 2) throw new MillraceError("disk_full", "no space");
  };
  await store.put(2, torrent.piece(2));
  assertEquals(await check(store, torrent), [2]);
});

test("read() rejects with io once, calls onLost and forgets the piece when the medium fails", async () => {
  const { open, files } = make();
  const torrent = sample({ a: 400_000 });
  const store = await (await open()).open(torrent.layout);
  await fill(store, torrent);
  const lost: [number, string][] = [];
  store.onLost = (piece, reason) => lost.push([piece, reason]);
  files.hook = (operation) => {
    if (operation === "read") throw new Error("EIO");
  };
  assertEquals((await assertRejects(() => store.read(0, 0, 10), MillraceError)).code, "io");
  assertEquals((await assertRejects(() => store.read(0, 0, 10), MillraceError)).code, "not_found");
  assertEquals(lost, [[0, "io"]]);
  files.hook = () => {};
  await store.put(0, torrent.piece(0));
  assertEquals((await check(store, torrent)).length, torrent.layout.pieceCount);
});

test("read() and put() reject pieces and ranges that do not fit", async () => {
  const { open } = make();
  const torrent = sample(SMALL);
  const store = await (await open()).open(torrent.layout);
  await store.put(0, torrent.piece(0));
  for (const [piece, offset, length] of [[0, -1, 5], [0, 0, 20_000], [0, 16_384, 1]] as const) {
    assertEquals(
      (await assertRejects(() => store.read(piece, offset, length), MillraceError)).code,
      "invalid_argument",
    );
  }
  for (const [piece, size] of [[99, 16384], [-1, 16384], [0.5, 16384], [1, 5]] as const) {
    const error = await assertRejects(() => store.put(piece, new Uint8Array(size)), MillraceError);
    assertEquals(error.code, "invalid_argument");
  }
  await store.close();
  assertEquals((await assertRejects(() => store.put(1, torrent.piece(1)), MillraceError)).code, "closed");
  assertEquals((await assertRejects(() => store.read(0, 0, 1), MillraceError)).code, "closed");
});

test("returned bytes never change when buffers are reused", async () => {
  const { open } = make();
  const cache = await open();
  const torrent = sample({ a: 1_000_000 });
  const store = await cache.open(torrent.layout);
  const answers: { piece: number; bytes: Uint8Array }[] = [];
  for (let piece = 0; piece < torrent.layout.pieceCount; piece++) {
    const bytes = torrent.piece(piece);
    const buffer = cache.buffers!.acquire(bytes.length);
    buffer.set(bytes);
    const written = store.put(piece, buffer);
    answers.push({ piece, bytes: store.peek(piece, 0, bytes.length)! });
    await written;
    const earlier = piece >> 1;
    answers.push({ piece: earlier, bytes: await store.read(earlier, 0, 16384) });
  }
  for (const { piece, bytes } of answers) assertEquals(bytes, torrent.piece(piece));
});

test("a crash at any step never makes a store claim a wrong piece", async () => {
  const torrent = sample({ "x/a": 700_000, "b": 3_000, "c": 1_200_000 }, 131_072);
  const expected = torrent.layout.pieceCount;
  for (const limit of [0, 1_400_000]) {
    let finished = false;
    let restored = 0;
    for (let step = 1; !finished; step++) {
      const random = seeded(step);
      const { clock, files, open } = make(limit);
      let count = 0;
      let crashed = false;
      let crash = () => {};
      const crashing = new Promise<void>((resolve) => crash = resolve);
      files.hook = () => {
        if (++count < step) return;
        crashed = true;
        crash();
        return new Promise<void>(() => {});
      };
      const life = (async () => {
        const store = await (await open()).open(torrent.layout);
        for (let round = 0; round < 30 && !crashed; round++) {
          const piece = Math.floor(random() * expected);
          store.put(piece, torrent.piece(piece)).catch(() => {});
          if (random() < 0.5) await settle();
          if (random() < 0.3) await clock.advanceAsync(3_000);
        }
        await store.close();
        finished = !crashed;
      })();
      await Promise.race([life, crashing]);
      clock.advance(50);
      const after = files.afterCrash(random);
      const store = await (await open(after)).open(torrent.layout);
      restored += (await check(store, torrent)).length;
      await store.close();
    }
    assert(restored > 50, "the crashes left too few pieces to restore");
  }
});

test("open() of a disk cache waits for a removal of the same torrent, so that nothing new is removed", async () => {
  const { open, files } = make(8 * 1024 * 1024);
  const torrent = sample({ "film.mkv": 200_000 });
  const removal = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const remove = files.remove.bind(files);
  files.remove = async (path) => {
    begun.resolve();
    await removal.promise;
    await remove(path);
  };
  const cache = await open();
  const before = await cache.open(torrent.layout);
  await fill(before, torrent);
  await before.close();
  const removing = cache.remove(torrent.layout.infohashHex);
  await begun.promise;
  const filled = cache.open(torrent.layout).then(async (store) => {
    await fill(store, torrent);
    await store.close();
  });
  await settle();
  removal.resolve();
  await Promise.all([removing, filled]);
  await cache.close();
  assertEquals((await check(await (await open()).open(torrent.layout), torrent)).length, torrent.layout.pieceCount);
});
