import { test } from "node:test";
import { assertEquals, assertLess } from "@std/assert";
import { hashPieces } from "../../src/metainfo/create.ts";
import { magnetLink } from "../../src/metainfo/live.ts";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { isServable, pieceBytes } from "../../src/swarm/data/layout.ts";
import type { PieceBank } from "../../src/swarm/data/piece-bank.ts";
import { UploadCache } from "../../src/swarm/upload/upload-cache.ts";
import { noise } from "../support/random.ts";
import { makeV2Torrent } from "../support/v2-torrent.ts";
import { badPeer, honest } from "./support/bad-peer.ts";
import { Lab, soon } from "./support/lab.ts";
import type { MemoryCache } from "./support/memory-cache.ts";

const FILES = { "a.mkv": 400_000, "b.srt": 20_000, c: 0, "d.mp4": 131_072, "e.nfo": 70_001 };

for (const encryption of ["accept", "prefer"] as const) {
  test(`TorrentSwarm downloads and seeds a torrent of version 2 with encryption "${encryption}"`, async () => {
    const torrent = await makeV2Torrent(FILES);
    const { metainfo, contents } = torrent;
    await Lab.run(async (lab) => {
      const seeder = await lab.seeder(torrent, { encryption });
      const { swarm } = (await lab.node({ encryption })).join({ metainfo });
      await swarm.metadata(soon());
      swarm.addPeer(seeder.address);
      const files = metainfo.files.filter((file) => !file.padding);
      const reader = swarm.openReader(files[4]!.index);
      assertEquals(await reader.read(60_000, 10_001, { signal: soon() }), contents[4]!.slice(60_000));
      swarm.setDownloadAll(true);
      await swarm.completed(soon());
      for (const [file, content] of contents.entries()) {
        if (content.length === 0) continue;
        const whole = await swarm.openReader(files[file]!.index).read(0, content.length, { signal: soon() });
        assertEquals(whole, content, files[file]!.path);
      }
      const { downloadedBytes, wastedBytes, failedPieces } = swarm.status();
      const bytes = contents.reduce((sum, content) => sum + content.length, 0);
      assertEquals([downloadedBytes, wastedBytes, failedPieces], [bytes, 0, 0]);
    });
  });
}

test("isServable() lets peers ask for the last block of a file of version 2 whole, and no further", async () => {
  const { metainfo } = await makeV2Torrent({ a: 20_000, b: 5 });
  assertEquals(isServable(metainfo, 0, 16_384, 3616), true);
  assertEquals(isServable(metainfo, 0, 16_384, 16_384), true);
  assertEquals(isServable(metainfo, 0, 32_768, 16_384), false);
  assertEquals(isServable(metainfo, 1, 0, 16_384), true);
  assertEquals(isServable(metainfo, 1, 16_384, 1), false);
  const { shortPieces: _, ...v1 } = metainfo;
  assertEquals(isServable(v1, 1, 0, 16_384), false);
});

test("UploadCache.read() sends zeros after the end of a file of version 2", async () => {
  const { metainfo, piece } = await makeV2Torrent({ a: 20_000, b: 5 });
  const bank = {
    read: (index: number, offset: number, length: number) =>
      Promise.resolve(piece(index).slice(offset, offset + length)),
  };
  const cache = new UploadCache(bank as unknown as PieceBank, 65_536, (index) => pieceBytes(metainfo, index));
  const expected = new Uint8Array(16_384);
  expected.set(piece(0).subarray(16_384));
  assertEquals(cache.holds(0, 16_384, 16_384), false);
  assertEquals(await cache.read(0, 16_384, 16_384), expected);
  assertEquals(await cache.read(0, 32_000, 768), new Uint8Array(768));
});

test("TorrentSwarmManager leads both names of a hybrid to one swarm, and peers may call it by either", async () => {
  const bytes = noise(200_000, 7);
  const pieceHashes = await hashPieces(
    200_000,
    65_536,
    (at, length) => Promise.resolve(bytes.subarray(at, at + length)),
  );
  const torrent = await makeV2Torrent({ "film.mp4": 200_000 }, 65_536, { pieceHashes });
  const magnet = parseMagnet(magnetLink(torrent.metainfo).replace(/xt=urn:btih:\w+&/, ""));
  await Lab.run(async (lab) => {
    const seeder = await lab.seeder(torrent);
    assertEquals(seeder.join({ magnet }).swarm, seeder.manager.list()[0]);
    const leecher = await lab.node();
    const { swarm } = leecher.join({ magnet });
    swarm.addPeer(seeder.address);
    assertEquals((await swarm.metadata(soon())).infohashHex, torrent.metainfo.infohashHex);
    assertEquals(leecher.join({ metainfo: torrent.metainfo }).swarm, swarm);
    assertEquals(await swarm.openReader(0).read(0, 200_000, { signal: soon() }), torrent.contents[0]);
    assertEquals((leecher.cache as MemoryCache).stores.has(torrent.metainfo.infohashHex), true);
  });
});

test("TorrentSwarm reads a torrent of version 2 by its magnet, whose metadata has no hashes of pieces", async () => {
  const torrent = await makeV2Torrent(FILES, 16_384);
  await Lab.run(async (lab) => {
    const seeder = await lab.seeder(torrent);
    const { swarm } = (await lab.node()).join({ magnet: parseMagnet(magnetLink(torrent.metainfo)) });
    swarm.addPeer(seeder.address);
    assertEquals(await swarm.metadata(soon()), torrent.metainfo);
    assertEquals(await swarm.openReader(0).read(0, 400_000, { signal: soon() }), torrent.contents[0]);
  });
});

test("TorrentSwarm fetches one block again, not the piece, when a peer of version 2 sent a wrong one", async () => {
  const torrent = await makeV2Torrent({ "film.mp4": 400_000 });
  await Lab.run(async (lab) => {
    const seeder = await lab.seeder(torrent);
    const liar = await badPeer(lab.ports, torrent, (request, answer) => {
      const block = honest(torrent, request).slice();
      if (request.piece === 2 && request.offset === 16_384) block[9]! ^= 1;
      answer(block);
    });
    try {
      const { swarm } = (await lab.node()).join({ metainfo: torrent.metainfo });
      await swarm.metadata(soon());
      swarm.addPeer(liar.address);
      const reader = swarm.openReader(0);
      assertEquals(await reader.read(0, 65_536, { signal: soon() }), torrent.contents[0]!.slice(0, 65_536));
      // It is asked for the hashes of the piece, too.
      swarm.addPeer(seeder.address);
      assertEquals(await reader.read(0, 400_000, { signal: soon() }), torrent.contents[0]);
      assertLess(swarm.status().wastedBytes, 65_536, "bytes thrown away");
    } finally {
      await liar.close();
    }
  });
});
