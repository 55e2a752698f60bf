/** What caches say they hold, and limits that change while they are open. */
import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import type { PieceCache } from "../../src/storage/piece-store.ts";
import { createRamCache } from "../../src/storage/ram-cache.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { fill, make } from "./disk-support.ts";
import { sample } from "./support.ts";

const LIMIT_BYTES = 10_000_000;
const first = sample({ "first.mkv": 100_000 });
const second = sample({ "second.mkv": 60_000 });
const shown = (cache: PieceCache) =>
  cache.torrents().map((
    { infohashHex, usedBytes, totalBytes, isOpen },
  ) => [infohashHex, usedBytes, totalBytes, isOpen]);

const CACHES: readonly [name: string, open: () => Promise<PieceCache>][] = [
  ["createDiskCache()", make(LIMIT_BYTES).open],
  ["createRamCache()", () => Promise.resolve(createRamCache({ limitBytes: LIMIT_BYTES, clock: new FakeClock() }))],
];

for (const [name, open] of CACHES) {
  test(`${name} lists what it holds, the newest first, and obeys a limit that changes, except for what is protected`, async () => {
    const cache = await open();
    const stores = [];
    for (const torrent of [first, second]) {
      const store = await cache.open(torrent.layout);
      await fill(store, torrent);
      stores.push(store);
    }
    const [one, two] = [first, second].map(({ layout }) => layout.infohashHex);
    assertEquals(shown(cache), [[two, 60_000, 60_000, true], [one, 100_000, 100_000, true]]);
    await assertRejects(() => cache.remove(one!), MillraceError, "in use");
    await stores[0]!.close();
    assertEquals(shown(cache), [[two, 60_000, 60_000, true], [one, 100_000, 100_000, false]]);
    stores[1]!.protect = () => true;
    await cache.setLimit(1);
    assertEquals([shown(cache), cache.limitBytes], [[[two, 60_000, 60_000, true]], 1]);
    await cache.setLimit(0);
    assertEquals(cache.usedBytes, 60_000);
    stores[1]!.protect = () => false;
    await cache.setLimit(30_000);
    assertEquals(cache.usedBytes <= 30_000, true, `${cache.usedBytes} bytes`);
    await stores[1]!.close();
    await cache.remove(two!);
    assertEquals(shown(cache), []);
    await cache.close();
  });
}

test("createDiskCache() lists what an earlier run left, those used last first", async () => {
  const { open, clock } = make();
  const earlier = await open();
  for (const torrent of [first, second]) {
    const store = await earlier.open(torrent.layout);
    await fill(store, torrent);
    await store.close();
    clock.advance(1000);
  }
  await earlier.close();
  const cache = await open();
  const [one, two] = [first, second].map(({ layout }) => layout.infohashHex);
  assertEquals(shown(cache), [[two, 60_000, 60_000, false], [one, 100_000, 100_000, false]]);
  await cache.close();
});
