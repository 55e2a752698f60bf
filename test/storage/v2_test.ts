import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { makeV2Torrent } from "../support/v2-torrent.ts";
import { check, fill, make } from "./disk-support.ts";

const FILES = { "a.mkv": 40_000, "b.srt": 200, c: 0, "d.mp4": 65_536, "e.nfo": 16_500 };

/** A torrent of version 2, whose pieces end with their files. */
async function sampleV2() {
  const { metainfo, data, contents, piece } = await makeV2Torrent(FILES, 16_384);
  return { layout: metainfo, content: data, contents, piece };
}

test("createDiskCache() writes the files of a torrent of version 2 without gaps, though small pieces go together", async () => {
  const { open, files } = make();
  const torrent = await sampleV2();
  const cache = await open();
  await fill(await cache.open(torrent.layout), torrent);
  await cache.close();
  for (const [index, name] of Object.keys(FILES).entries()) {
    const stored = files.nodes.get(`/cache/${torrent.layout.infohashHex}/pack/${name}`)?.bytes;
    assertEquals(stored, torrent.contents[index], name);
  }
});

for (const limit of [0, 10_000_000]) {
  test(`open() restores pieces of version 2 and hashes those that look changed, with limit ${limit}`, async () => {
    const { open, files, clock } = make(limit);
    const torrent = await sampleV2();
    const all = Array.from({ length: torrent.layout.pieceCount }, (_, i) => i);
    const cache = await open();
    await fill(await cache.open(torrent.layout), torrent);
    await cache.close();
    const again = await open();
    const bytes = torrent.contents.reduce((sum, content) => sum + content.length, 0);
    if (limit > 0) assertEquals(again.usedBytes, bytes);
    const store = await again.open(torrent.layout);
    assertEquals(await check(store, torrent), all);
    assertEquals(again.usedBytes, bytes);
    await again.close();
    clock.advance(60_000);
    for (const [path, node] of files.nodes) if (!path.endsWith(".resume")) node.modifiedMs = clock.now();
    const hashed = await (await open()).open(torrent.layout);
    assertEquals(await check(hashed, torrent), all);
  });
}
