import { test } from "node:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { hasCode, MillraceError } from "../../src/errors.ts";
import { createDiskCache } from "../../src/storage/disk-cache.ts";
import { createSeedCache } from "../../src/storage/seed-cache.ts";
import type { PieceStore } from "../../src/storage/piece-store.ts";
import { until } from "../support/until.ts";
import { type Sample, sample, silent } from "./support.ts";

async function inDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "millrace-storage-"));
  try {
    await work(directory);
  } finally {
    fs.rmSync(directory, { recursive: true, force: true });
  }
}

async function fill(store: PieceStore, torrent: Sample): Promise<void> {
  await Promise.all(Array.from({ length: torrent.layout.pieceCount }, (_, i) => store.put(i, torrent.piece(i))));
}

for (const limitBytes of [0, 10_000_000]) {
  test(`createDiskCache() survives a restart on a real disk with limit ${limitBytes}`, () =>
    inDirectory(async (directory) => {
      const { files, clock } = await loadPorts();
      const options = { files, directory: `${directory}/cache`, limitBytes, clock, log: silent, windowBytes: 65_536 };
      const torrent = sample({ "s1/a.mkv": 1_200_000, "none": 0, "b.srt": 77, "c.mp4": 500_000 }, 65_536);
      const cache = await createDiskCache(options);
      await fill(await cache.open(torrent.layout), torrent);
      await cache.close();
      const again = await createDiskCache(options);
      assertEquals(again.usedBytes, torrent.layout.totalBytes);
      const store = await again.open(torrent.layout);
      await until("all of it is found", () => store.have.full);
      for (let piece = 0; piece < torrent.layout.pieceCount; piece++) {
        const expected = torrent.piece(piece);
        assertEquals(await store.read(piece, 1, expected.length - 1), expected.slice(1));
      }
      await again.close();
      if (limitBytes > 0) return;
      const root = `${directory}/cache/${torrent.layout.infohashHex}/pack`;
      assertEquals(new Uint8Array(fs.readFileSync(`${root}/s1/a.mkv`)), torrent.content.slice(0, 1_200_000));
      assertEquals(fs.statSync(`${root}/none`).size, 0);
    }));
}

test("createDiskCache() stores a far piece sparsely", () =>
  inDirectory(async (directory) => {
    const { files, clock } = await loadPorts();
    const torrent = sample({ "big.mkv": 32_000_000 }, 65_536);
    const cache = await createDiskCache({ files, directory, clock, log: silent });
    const store = await cache.open(torrent.layout);
    await store.put(400, torrent.piece(400));
    await cache.close();
    const { size, blocks } = fs.statSync(`${directory}/${torrent.layout.infohashHex}/pack/big.mkv`);
    assertEquals(size, 401 * 65_536);
    assert(blocks * 512 < 1_000_000);
  }));

test("open() detects deleted, truncated and changed files on a real disk", () =>
  inDirectory(async (directory) => {
    const { files, clock } = await loadPorts();
    const torrent = sample({ "a": 131_072, "b": 131_072, "c": 131_072, "d": 131_072 }, 65_536);
    const root = `${directory}/${torrent.layout.infohashHex}/pack`;
    const cache = await createDiskCache({ files, directory, clock, log: silent });
    await fill(await cache.open(torrent.layout), torrent);
    await cache.close();
    fs.rmSync(`${root}/a`);
    fs.truncateSync(`${root}/b`, 100_000);
    fs.writeFileSync(`${root}/c`, torrent.content.slice(262_144, 393_216).fill(0, 5, 9));
    const later = new Date(Date.now() + 5_000);
    for (const name of ["b", "c"]) fs.utimesSync(`${root}/${name}`, later, later);
    const again = await createDiskCache({ files, directory, clock, log: silent });
    const store = await again.open(torrent.layout);
    // On a disk used by others, open() does not wait for everything to be hashed.
    await until("what is good is found", () => store.have.has(2) && store.have.has(5));
    assertEquals([0, 1, 2, 3, 4, 5, 6, 7].filter((piece) => store.have.has(piece)), [2, 5, 6, 7]);
    await again.close();
  }));

test("read() hashes a piece when it first comes back from the disk", () =>
  inDirectory(async (directory) => {
    const { files, clock } = await loadPorts();
    const torrent = sample({ "a": 262_144 }, 65_536);
    const path = `${directory}/${torrent.layout.infohashHex}/pack/a`;
    const cache = await createDiskCache({ files, directory, clock, log: silent });
    await fill(await cache.open(torrent.layout), torrent);
    await cache.close();
    const earlier = new Date(Date.now() - 60_000);
    fs.writeFileSync(path, torrent.content.slice().fill(0, 70_000, 70_100));
    fs.utimesSync(path, earlier, earlier);
    const again = await createDiskCache({ files, directory, clock, log: silent });
    const store = await again.open(torrent.layout);
    const lost: number[] = [];
    store.onLost = (piece) => lost.push(piece);
    assertEquals(await store.read(0, 10, 100), torrent.piece(0).slice(10, 110));
    await assertRejects(() => store.read(1, 0, 65_536), MillraceError);
    assertEquals([lost, store.have.has(1)], [[1], false]);
    await again.close();
  }));

test("createDiskCache() rejects when the directory cannot be created", () =>
  inDirectory(async (directory) => {
    const { files, clock } = await loadPorts();
    fs.writeFileSync(`${directory}/file`, "x");
    const error = await assertRejects(
      () => createDiskCache({ files, directory: `${directory}/file/cache`, clock, log: silent }),
      MillraceError,
    );
    assert(!hasCode(error, "internal"));
  }));

test("createSeedCache() serves a download made by another program", () =>
  inDirectory(async (directory) => {
    const { files, clock } = await loadPorts();
    const torrent = sample({ "x/a": 300_000, "b": 200_000 }, 65_536);
    fs.mkdirSync(`${directory}/pack/x`, { recursive: true });
    fs.writeFileSync(`${directory}/pack/x/a`, torrent.content.slice(0, 300_000));
    fs.writeFileSync(`${directory}/pack/b`, torrent.content.slice(300_000));
    const cache = createSeedCache({ files, directory, clock, log: silent });
    const store = await cache.open(torrent.layout);
    await until("all of it is found", () => store.have.full);
    assertEquals(await store.read(4, 30_000, 20_000), torrent.piece(4).slice(30_000, 50_000));
    await cache.close();
  }));

test("createSeedCache() reports its progress while it hashes existing files", () =>
  inDirectory(async (directory) => {
    const { files, clock } = await loadPorts();
    const torrent = sample({ a: 500_000, b: 500_000 }, 65_536);
    fs.mkdirSync(`${directory}/pack`, { recursive: true });
    fs.writeFileSync(`${directory}/pack/a`, torrent.content.slice(0, 500_000));
    fs.writeFileSync(`${directory}/pack/b`, torrent.content.slice(500_000));
    let open = () => {};
    const gate = new Promise<void>((resolve) => open = resolve);
    // The disk is slow: nothing is read before the test says so.
    const over = <T extends object>(target: T, own: Partial<T>): T =>
      new Proxy(target, {
        get: (_, name) => {
          const value = Reflect.get(own, name) ?? Reflect.get(target, name);
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
    const slow = over(files, {
      open: async (...args) => {
        const handle = await files.open(...args);
        return over(handle, { read: (...where) => gate.then(() => handle.read(...where)) });
      },
    });
    const cache = createSeedCache({ files: slow, directory, clock, log: silent });
    // The clock's own timers keep no process alive.
    const alive = setInterval(() => {}, 1000);
    const store = await cache.open(torrent.layout).finally(() => clearInterval(alive));
    assertEquals(store.checking, { done: 0, total: 16 });
    open();
    await until("all of it is found", () => store.have.full);
    await until("nothing is left to hash", () => store.checking === null);
    await cache.close();
  }));

test("createSeedCache() finds files under names that other file systems refuse, or under the names millrace gives them", () =>
  inDirectory(async (directory) => {
    const { files, clock } = await loadPorts();
    const torrent = sample(
      { "x<y>/a": 100_000, 'e"f': 100_000, "A\u0308.mkv": 50_000, "con": 10_000, "q?": 70_000 },
      65_536,
    );
    const root = `${directory}/pack`;
    const parts = ["x<y>/a", 'e"f', "\u00c4.mkv", "con", "q_"];
    let at = 0;
    for (const [i, { sizeBytes }] of torrent.layout.files.entries()) {
      fs.mkdirSync(path.dirname(`${root}/${parts[i]}`), { recursive: true });
      fs.writeFileSync(`${root}/${parts[i]}`, torrent.content.slice(at, at + sizeBytes));
      at += sizeBytes;
    }
    const cache = createSeedCache({ files, directory, clock, log: silent });
    const store = await cache.open(torrent.layout);
    await until("all of it is found", () => store.have.full);
    await cache.close();
  }));

test("createSeedCache() finds a file whose name a transport file has to change", () =>
  inDirectory(async (directory) => {
    const { files, clock } = await loadPorts();
    const name = "AC\\DC_live";
    const torrent = sample({ "AC_DC_live": 100_000 }, 65_536);
    fs.mkdirSync(`${directory}/pack`);
    fs.writeFileSync(`${directory}/pack/${name}`, torrent.content);
    const cache = createSeedCache({ files, directory, clock, log: silent });
    const store = await cache.open(torrent.layout);
    await until("all of it is found", () => store.have.full);
    await cache.close();
  }));
