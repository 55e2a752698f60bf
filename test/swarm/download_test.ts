import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import type { Magnet } from "../../src/metainfo/types.ts";
import { badPeer, honest } from "./support/bad-peer.ts";
import { hurried, Lab, soon } from "./support/lab.ts";
import { makeTorrent, type TestTorrent } from "./support/torrent.ts";

function magnetOf(torrent: TestTorrent, peers: readonly { host: string; port: number }[] = []): Magnet {
  return {
    infohash: torrent.metainfo.infohash,
    infohashHex: torrent.metainfo.infohashHex,
    name: null,
    trackers: [],
    peers: peers.map((p) => `${p.host}:${p.port}`),
    webSeeds: [],
    selectOnly: null,
  };
}

test("TorrentSwarm downloads everything from one seeder", async () => {
  const torrent = await makeTorrent({ bytes: 3_000_001 });
  await Lab.run(async (lab) => {
    const seeder = await lab.seeder(torrent);
    const leecher = await lab.node();
    const { swarm } = leecher.join({ metainfo: torrent.metainfo });
    await swarm.metadata(soon());
    swarm.setDownloadAll(true);
    swarm.addPeer(seeder.address);
    await swarm.completed(soon());
    const status = swarm.status();
    assertEquals(status.downloadedBytes, 3_000_001);
    assertEquals(status.havePieces, torrent.metainfo.pieceCount);
    const reader = swarm.openReader(0);
    assertEquals(await reader.read(0, 3_000_001, { signal: soon() }), torrent.data);
    assert(status.wastedBytes === 0, `wasted ${status.wastedBytes}`);
  });
});

for (const pieceLength of [1024, 8192, 25_344, 100_000, 270_544, 700_001]) {
  test(`TorrentSwarm downloads and seeds pieces of ${pieceLength} bytes`, async () => {
    const torrent = await makeTorrent({ bytes: 700_001, pieceLength, files: [300_000, 1, 400_000] });
    await Lab.run(async (lab) => {
      const seeder = await lab.seeder(torrent);
      const leecher = await lab.node();
      const { swarm } = leecher.join({ metainfo: torrent.metainfo });
      await swarm.metadata(soon());
      swarm.addPeer(seeder.address);
      const reader = swarm.openReader(2);
      const part = torrent.data.slice(300_001 + 111_111, 300_001 + 333_333);
      assertEquals(await reader.read(111_111, 222_222, { signal: soon() }), part);
      swarm.setDownloadAll(true);
      await swarm.completed(soon());
      assertEquals(await reader.read(0, 400_000, { signal: soon() }), torrent.data.slice(300_001));
      assertEquals(swarm.status().wastedBytes, 0);
    });
  });
}

for (const encryption of ["off", "accept", "prefer"] as const) {
  test(`TorrentSwarm joins by magnet and reads when encryption is "${encryption}"`, async () => {
    const torrent = await makeTorrent({ bytes: 500_000, pieceLength: 32768 });
    await Lab.run(async (lab) => {
      const seeder = await lab.seeder(torrent, { encryption });
      const leecher = await lab.node({ encryption });
      const { swarm } = leecher.join({ magnet: magnetOf(torrent, [seeder.address]) });
      const metainfo = await swarm.metadata(soon());
      assertEquals(metainfo.infohashHex, torrent.metainfo.infohashHex);
      const reader = swarm.openReader(0);
      assertEquals(await reader.read(123_456, 100_000, { signal: soon() }), torrent.data.slice(123_456, 223_456));
    });
  });
}

test("TorrentSwarm falls back when the peer refuses the encryption that we prefer", async () => {
  const torrent = await makeTorrent({ bytes: 200_000 });
  await Lab.run(async (lab) => {
    const seeder = await lab.seeder(torrent, { encryption: "off" });
    const leecher = await lab.node({ encryption: "prefer" });
    const { swarm } = leecher.join({ metainfo: torrent.metainfo });
    await swarm.metadata(soon());
    swarm.addPeer(seeder.address);
    const reader = swarm.openReader(0);
    assertEquals(await reader.read(0, 200_000, { signal: soon() }), torrent.data);
  });
});

test("TorrentSwarm.metadata() rejects with the signal's reason when nobody has it", async () => {
  const torrent = await makeTorrent({ bytes: 100_000 });
  await Lab.run(async (lab) => {
    const leecher = await lab.node();
    const { swarm } = leecher.join({ magnet: magnetOf(torrent) });
    const abort = new AbortController();
    const wait = swarm.metadata(abort.signal);
    abort.abort(new MillraceError("start_timeout", "too late"));
    await assertRejects(() => wait, MillraceError, "too late");
  });
});

test("TorrentSwarm spreads a torrent over leechers that find each other by PEX", async () => {
  const torrent = await makeTorrent({ bytes: 2_000_000, pieceLength: 32768 });
  await Lab.run(async (lab) => {
    const ports = hurried(lab.ports, 20);
    const seeder = await lab.seeder(torrent, { uploadLimitBytesPerSecond: 100_000, ports });
    const leechers = [await lab.node({ ports }), await lab.node({ ports }), await lab.node({ ports })];
    const swarms = leechers.map((node) => node.join({ metainfo: torrent.metainfo }).swarm);
    for (const swarm of swarms) {
      swarm.setDownloadAll(true);
      swarm.addPeer(seeder.address);
    }
    await Promise.all(swarms.map((swarm) => swarm.completed(soon(30_000))));
    const shared = swarms.reduce((sum, swarm) => sum + swarm.status().uploadedBytes, 0);
    assert(shared > 0, "leechers exchanged nothing");
  });
});

test("TorrentSwarm maps files to pieces by the torrent's file layout", async () => {
  const torrent = await makeTorrent({ bytes: 300_000, pieceLength: 32768, files: [100_000, 50_000, 150_000] });
  await Lab.run(async (lab) => {
    const seeder = await lab.seeder(torrent);
    const leecher = await lab.node();
    const { swarm } = leecher.join({ metainfo: torrent.metainfo });
    await swarm.metadata(soon());
    swarm.addPeer(seeder.address);
    const reader = swarm.openReader(1, { readAheadBytes: 0 });
    assertEquals(await reader.read(0, 50_000, { signal: soon() }), torrent.data.slice(100_000, 150_000));
    assertEquals(reader.availableFrom(0, 1_000_000), 50_000);
    assertEquals(reader.availableFrom(49_000, 10), 10);
    // The file begins 1696 bytes into a piece.
    assertEquals([reader.pieceEnd(0), reader.pieceEnd(31_072), reader.pieceEnd(40_000)], [31_072, 50_000, 50_000]);
    // Only what was read, in whole pieces.
    assertEquals(swarm.status().havePieces, 2);
    await assertRejects(() => reader.read(40_000, 10_001, { signal: soon() }), MillraceError, "outside the file");
  });
});

test("TorrentSwarm bans the peer that corrupts blocks and completes", async () => {
  const torrent = await makeTorrent({ bytes: 4_000_000, pieceLength: 262_144 });
  await Lab.run(async (lab) => {
    const seeders = [
      await lab.seeder(torrent, { peerHost: "127.0.0.2" }),
      await lab.seeder(torrent, { peerHost: "127.0.0.3" }),
    ];
    const liar = await badPeer(lab.ports, torrent, (request, answer) => {
      const bytes = honest(torrent, request);
      bytes[request.length >> 1]! ^= 0xff;
      answer(bytes);
    }, { host: "127.0.0.4" });
    try {
      const leecher = await lab.node();
      const { swarm } = leecher.join({ metainfo: torrent.metainfo });
      await swarm.metadata(soon());
      await swarm.metadata(soon());
      swarm.addPeer(liar.address);
      for (const seeder of seeders) swarm.addPeer(seeder.address);
      swarm.setDownloadAll(true);
      await swarm.completed(soon());
      assertEquals(leecher.manager.banned(liar.address.host), true);
      for (const seeder of seeders) assertEquals(leecher.manager.banned(seeder.address.host), false);
      const reader = swarm.openReader(0);
      assertEquals(await reader.read(0, 4_000_000, { signal: soon() }), torrent.data);
    } finally {
      await liar.close();
    }
  });
});

test("TorrentSwarm continues when a peer freezes in the middle of a block", async () => {
  const torrent = await makeTorrent({ bytes: 1_000_000, pieceLength: 65536 });
  await Lab.run(async (lab) => {
    let answered = 0;
    const frozen = await badPeer(lab.ports, torrent, (request, answer) => {
      if (answered++ < 3) answer(honest(torrent, request));
    });
    try {
      const seeder = await lab.seeder(torrent);
      const leecher = await lab.node();
      const { swarm } = leecher.join({ metainfo: torrent.metainfo });
      await swarm.metadata(soon());
      await swarm.metadata(soon());
      const reader = swarm.openReader(0);
      swarm.addPeer(frozen.address);
      const wait = reader.read(0, 1_000_000, { signal: soon() });
      swarm.addPeer(seeder.address);
      assertEquals(await wait, torrent.data);
    } finally {
      await frozen.close();
    }
  });
});

test("TorrentReader.read() follows seeks, and close() ends reads with `closed`", async () => {
  const torrent = await makeTorrent({ bytes: 8_000_000, pieceLength: 65536 });
  await Lab.run(async (lab) => {
    const seeder = await lab.seeder(torrent, { uploadLimitBytesPerSecond: 2_000_000 });
    const leecher = await lab.node();
    const { swarm } = leecher.join({ metainfo: torrent.metainfo });
    await swarm.metadata(soon());
    swarm.addPeer(seeder.address);
    const reader = swarm.openReader(0);
    for (const at of [0, 7_900_000, 4_000_000, 100_000]) {
      assertEquals(await reader.read(at, 50_000, { signal: soon() }), torrent.data.slice(at, at + 50_000));
    }
    assert(swarm.status().havePieces < torrent.metainfo.pieceCount, "seeks fetched everything");
    const other = swarm.openReader(0);
    const pending = assertRejects(() => other.read(6_000_000, 60_000, { signal: soon() }), MillraceError, "closed");
    other.close();
    await pending;
    await assertRejects(() => other.read(0, 1, { signal: soon() }), MillraceError, "closed");
  });
});

test("SwarmManager shares one swarm per infohash and leaves it after the linger", async () => {
  const torrent = await makeTorrent({ bytes: 100_000 });
  await Lab.run(async (lab) => {
    const node = await lab.node({ lingerMs: 0 });
    const a = node.join({ metainfo: torrent.metainfo });
    const b = node.join({ magnet: magnetOf(torrent) });
    assertEquals(a.swarm === b.swarm, true);
    a.release();
    a.release();
    assertEquals(node.manager.list().length, 1);
    const ended = assertRejects(() => b.swarm.completed(soon()), MillraceError, "closed");
    b.release();
    await ended;
    assertEquals(node.manager.list().length, 0);
    // Joining again opens the store again.
    const again = node.join({ metainfo: torrent.metainfo });
    await again.swarm.metadata(soon());
    again.release();
  });
});
