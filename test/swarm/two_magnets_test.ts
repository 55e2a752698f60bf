/** Two magnets of one hybrid, one for each version, opened before anybody knows that they name the same torrent. */
import { test } from "node:test";
import { assertEquals, assertThrows } from "@std/assert";
import { hashPieces } from "../../src/metainfo/create.ts";
import { magnetLink } from "../../src/metainfo/live.ts";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { MillraceError } from "../../src/errors.ts";
import { noise } from "../support/random.ts";
import { until } from "../support/until.ts";
import { makeV2Torrent, type V2Torrent } from "../support/v2-torrent.ts";
import { Lab, soon } from "./support/lab.ts";
import type { MemoryCache } from "./support/memory-cache.ts";

const BYTES = 200_000;

async function hybrid(): Promise<V2Torrent> {
  const bytes = noise(BYTES, 7);
  const read = (at: number, length: number) => Promise.resolve(bytes.subarray(at, at + length));
  const pieceHashes = await hashPieces(BYTES, 65_536, read);
  return await makeV2Torrent({ "film.mp4": BYTES }, 65_536, { pieceHashes });
}

/** One magnet by each name; `peer`: whom a magnet names. */
function magnetsOf({ metainfo }: V2Torrent, peer: { readonly host: string; readonly port: number } | null) {
  const link = magnetLink(metainfo) + (peer === null ? "" : `&x.pe=${peer.host}:${peer.port}`);
  return {
    v1: parseMagnet(link.replace(/&xt=urn:btmh:\w+/, "")),
    v2: parseMagnet(link.replace(/xt=urn:btih:\w+&/, "")),
  };
}

for (const first of ["v1", "v2"] as const) {
  test(`TorrentSwarmManager joins two magnets of a hybrid once that of ${first} has its metadata`, async () => {
    const torrent = await hybrid();
    await Lab.run(async (lab) => {
      const seeder = await lab.seeder(torrent);
      const leecher = await lab.node();
      const magnets = magnetsOf(torrent, null);
      const leases = { v1: leecher.join({ magnet: magnets.v1 }), v2: leecher.join({ magnet: magnets.v2 }) };
      assertEquals(leecher.manager.list().length, 2);
      const waiting = [leases.v1.swarm.metadata(soon()), leases.v2.swarm.metadata(soon())];
      leases[first].swarm.addPeer(seeder.address);
      const names = (await Promise.all(waiting)).map(({ infohashHex }) => infohashHex);
      assertEquals(names, [torrent.metainfo.infohashHex, torrent.metainfo.infohashHex]);
      assertEquals(leases.v1.swarm, leases.v2.swarm);
      assertEquals(leecher.manager.list(), [leases.v1.swarm]);
      for (const { swarm } of Object.values(leases)) {
        assertEquals(await swarm.openReader(0).read(0, BYTES, { signal: soon() }), torrent.contents[0]);
      }
      assertEquals(leases.v1.swarm.status().downloadedBytes, BYTES);
      assertEquals([...(leecher.cache as MemoryCache).stores.keys()], [torrent.metainfo.infohashHex]);
      leases.v1.release({ atOnce: true });
      assertEquals(leecher.manager.list().length, 1);
      leases.v2.release({ atOnce: true });
      assertEquals(leecher.manager.list().length, 0);
    });
  });
}

test("TorrentSwarmManager keeps the peers that the other magnet named", async () => {
  const torrent = await hybrid();
  await Lab.run(async (lab) => {
    const [seeder, other] = [await lab.seeder(torrent), await lab.seeder(torrent)];
    const leecher = await lab.node();
    const { swarm } = leecher.join({ magnet: magnetsOf(torrent, null).v1 });
    const second = leecher.join({ magnet: magnetsOf(torrent, other.address).v2, withoutPeers: true });
    swarm.addPeer(seeder.address);
    await second.swarm.metadata(soon());
    assertEquals(second.swarm, swarm);
    const third = leecher.join({ magnet: magnetsOf(torrent, other.address).v2 });
    assertEquals(third.swarm, swarm);
    await until("both seeders are known", () => swarm.peers.book.size === 2);
  });
});

test("TorrentSwarmManager gives a transport file to the magnet of version 2 that waits for its metadata", async () => {
  const torrent = await hybrid();
  await Lab.run(async (lab) => {
    const leecher = await lab.node();
    const waiting = leecher.join({ magnet: magnetsOf(torrent, null).v2 });
    const metadata = waiting.swarm.metadata(soon());
    assertEquals(leecher.join({ metainfo: torrent.metainfo }).swarm, waiting.swarm);
    assertEquals((await metadata).infohashHex, torrent.metainfo.infohashHex);
  });
});

test("TorrentSwarm that another one took over is closed, and says so", async () => {
  const torrent = await hybrid();
  await Lab.run(async (lab) => {
    const leecher = await lab.node();
    const magnets = magnetsOf(torrent, null);
    const lease = leecher.join({ magnet: magnets.v1 });
    const { swarm } = lease;
    const second = leecher.join({ magnet: magnets.v2 });
    second.swarm.learn({ metainfo: torrent.metainfo });
    await swarm.metadata(soon());
    assertEquals([swarm.ending.aborted, lease.swarm.ending.aborted], [true, false]);
    assertThrows(() => swarm.openReader(0), MillraceError, "closed");
  });
});

test("MagnetFacts keeps few magnets whole, and none once the metadata is known", async () => {
  const torrent = await hybrid();
  await Lab.run(async (lab) => {
    const leecher = await lab.node();
    const { v2: magnet } = magnetsOf(torrent, null);
    for (let n = 0; n < 9; n++) leecher.join({ magnet });
    const { swarm } = leecher.join({ magnet });
    assertEquals(swarm.named.targets.length, 4);
    leecher.join({ metainfo: torrent.metainfo, magnet });
    leecher.join({ magnet });
    assertEquals(swarm.named.targets.length, 0);
  });
});
