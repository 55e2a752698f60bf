/** What stays in a cache, what is removed, and another limit; each on disk and in memory. */
import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { createDiskCache } from "../../src/storage/disk-cache.ts";
import type { PieceCache } from "../../src/storage/piece-store.ts";
import { createRamCache } from "../../src/storage/ram-cache.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { fill, make } from "./disk-support.ts";
import { type Sample, sample, silent } from "./support.ts";

const MIB = 1024 * 1024;
const films = [1, 2, 3, 4].map((seed) => sample({ "film.mkv": 2 * MIB }, 65_536, seed));
const [kept, second, third, fourth] = films as [Sample, Sample, Sample, Sample];

const opened: Record<string, (limitBytes: number) => Promise<PieceCache>> = {
  disk: (limitBytes) => make(limitBytes).open(),
  ram: (limitBytes) => Promise.resolve(createRamCache({ limitBytes, clock: new FakeClock() })),
};

async function played(cache: PieceCache, film: Sample): Promise<void> {
  const store = await cache.open(film.layout);
  await fill(store, film);
  await store.close();
}

const storedIn = (cache: PieceCache) =>
  Object.fromEntries(
    cache.torrents().map(({ infohashHex, usedBytes }) => [
      films.findIndex(({ layout }) => layout.infohashHex === infohashHex) + 1,
      usedBytes / MIB,
    ]),
  );

const refusedAs = async (code: string, work: () => Promise<unknown>) =>
  assertEquals((await assertRejects(work, MillraceError)).code, code);

for (const [kind, open] of Object.entries(opened)) {
  test(`keep() holds a torrent in a ${kind} cache while others make room`, async () => {
    const cache = await open(4 * MIB);
    await played(cache, kept);
    await cache.keep(kept.layout.infohashHex, true);
    for (const film of [second, third, fourth]) await played(cache, film);
    assertEquals(storedIn(cache), { 1: 2, 4: 2 });
    const { isKept, isOpen, totalBytes } = cache.torrents().find((one) => one.infohashHex === kept.layout.infohashHex)!;
    assertEquals([isKept, isOpen, totalBytes], [true, false, 2 * MIB]);
    await cache.keep(kept.layout.infohashHex, false);
    for (const film of [second, third]) await played(cache, film);
    assertEquals(storedIn(cache), { 2: 2, 3: 2 });
    await cache.close();
  });

  test(`keep() refuses in a ${kind} cache what is not there, and more than half of the limit`, async () => {
    const cache = await open(6 * MIB);
    await refusedAs("not_found", () => cache.keep(kept.layout.infohashHex, true));
    for (const film of [kept, second]) await played(cache, film);
    await cache.keep(kept.layout.infohashHex, true);
    await cache.keep(kept.layout.infohashHex, true);
    await refusedAs("too_large", () => cache.keep(second.layout.infohashHex, true));
    assertEquals(cache.torrents().filter(({ isKept }) => isKept).length, 1);
    await cache.close();
  });

  test(`setLimit() of a ${kind} cache evicts what is over it, and leaves room beside what is kept`, async () => {
    const cache = await open(8 * MIB);
    for (const film of films) await played(cache, film);
    await cache.keep(kept.layout.infohashHex, true);
    await cache.setLimit(5 * MIB);
    assertEquals([cache.limitBytes, cache.usedBytes <= 5 * MIB, storedIn(cache)[1]], [5 * MIB, true, 2]);
    await refusedAs("conflict", () => cache.setLimit(3 * MIB));
    assertEquals(cache.limitBytes, 5 * MIB);
    await cache.close();
  });

  test(`remove() of a ${kind} cache takes a kept torrent, and refuses one that is open`, async () => {
    const cache = await open(8 * MIB);
    await played(cache, kept);
    await cache.keep(kept.layout.infohashHex, true);
    const store = await cache.open(kept.layout);
    assertEquals(cache.torrents().map(({ isOpen, isKept }) => [isOpen, isKept]), [[true, true]]);
    await refusedAs("conflict", () => cache.remove(kept.layout.infohashHex));
    await store.close();
    await cache.remove(kept.layout.infohashHex);
    assertEquals([cache.torrents(), cache.usedBytes], [[], 0]);
    await played(cache, kept);
    assertEquals(cache.torrents().map(({ isKept }) => isKept), [false]);
    await cache.close();
  });
}

test("createDiskCache() keeps what an earlier run kept, and its limit until the option changes", async () => {
  const { open, files, clock } = make(8 * MIB);
  const first = await open();
  for (const film of [kept, second]) await played(first, film);
  await first.keep(kept.layout.infohashHex, true);
  await first.setLimit(5 * MIB);
  await first.close();
  const again = await open();
  assertEquals([again.limitBytes, again.torrents().map(({ isKept }) => isKept)], [5 * MIB, [false, true]]);
  for (const film of [third, fourth]) await played(again, film);
  assertEquals(storedIn(again)[1], 2);
  await again.close();
  const other = await createDiskCache({ files, directory: "/cache", limitBytes: 9 * MIB, clock, log: silent });
  assertEquals([other.limitBytes, other.torrents().filter(({ isKept }) => isKept).length], [9 * MIB, 1]);
  await other.close();
});

test("createDiskCache() opens with the options when the wishes are damaged, or of torrents that are gone", async () => {
  const gone = "ab".repeat(20);
  for (
    const text of ["", "[]", "null", '{"limit":[5,"8"],"kept":[1,["x",2]]}', `{"limit":[1],"kept":[["${gone}",9]]}`]
  ) {
    const { open, files } = make(8 * MIB);
    await files.writeFile("/cache/wishes.json", new TextEncoder().encode(text));
    const cache = await open();
    assertEquals([cache.limitBytes, cache.torrents()], [8 * MIB, []], text);
    await played(cache, kept);
    await cache.keep(kept.layout.infohashHex, true);
    await cache.close();
  }
});
