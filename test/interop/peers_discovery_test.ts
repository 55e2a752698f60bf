/** They and we find each other in one way only: a real tracker, the DHT, the local network, peer exchange. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { contentId } from "../../src/metainfo/content-id.ts";
import { startTracker } from "../support/tracker.ts";
import { until } from "../support/until.ts";
import { aria2, libtorrent, startDht } from "./peers/clients.ts";
import { assertFetched, assertSame, withContent } from "./peers/content.ts";
import { playAll, read, startPlayback, withOurSeeder, withPlayer } from "./peers/ours.ts";

for (const scheme of ["http", "udp"] as const) {
  test(`opentracker brings together them and us over ${scheme}, and forgets us when we leave`, async () => {
    await withContent({ filmMib: 2 }, async (content, cleanup) => {
      const tracker = await startTracker([content.metainfo.infohashHex]);
      cleanup(() => tracker.stop());
      const trackers = [tracker[scheme]];
      const listed = async () => {
        const { seeders, leechers } = await tracker.scrape(content.metainfo.infohash);
        return seeders + leechers;
      };
      let withUs = 0;
      await withOurSeeder(content, { torrentTrackers: trackers }, async (seeder) => {
        await seeder.announced();
        assertEquals(await tracker.scrape(content.metainfo.infohash), { seeders: 1, leechers: 0 });
        // aria2 asks no UDP tracker without the DHT.
        for (const startClient of scheme === "udp" ? [libtorrent] : [libtorrent, aria2]) {
          const fetcher = await startClient(content, { mode: "fetch", trackers });
          cleanup(() => fetcher.stop());
          await fetcher.done();
          await assertFetched(content, fetcher.directory);
          await fetcher.stop();
        }
        withUs = await listed();
      });
      // The fetchers were killed, and opentracker keeps peers that left without an announce.
      const withoutUs = await listed();
      assertEquals(withoutUs, withUs - 1);
      const seeder = await libtorrent(content, { mode: "seed", trackers });
      cleanup(() => seeder.stop());
      await until("libtorrent announced", async () => await listed() === withoutUs + 1);
      await withPlayer({}, (player) => playAll(player, content, { magnet: content.magnet({ trackers }) }));
      assertEquals(await listed(), withoutUs + 1);
    });
  });
}

test("a magnet finds other clients by the DHT only", async () => {
  const dht = await startDht();
  try {
    await withContent({ filmMib: 2 }, async (content, cleanup) => {
      const seeder = await libtorrent(content, { mode: "seed", dhtNode: dht.nodes[0]! });
      cleanup(() => seeder.stop());
      await withPlayer({ dht: true, dhtBootstrap: [dht.nodes[1]!] }, async (player) => {
        await playAll(player, content, { magnet: content.magnet() });
      });
    });
    await withContent(
      { filmMib: 2 },
      (content) =>
        withOurSeeder(content, { dht: true, dhtBootstrap: [dht.nodes[2]!] }, async () => {
          const fetcher = await libtorrent(content, {
            mode: "fetch",
            magnet: content.magnet(),
            dhtNode: dht.nodes[0]!,
          });
          try {
            await fetcher.done();
            await assertFetched(content, fetcher.directory);
          } finally {
            await fetcher.stop();
          }
        }),
    );
  } finally {
    await dht.stop();
  }
});

test("a content id is enough: one engine puts its record into the DHT, another resolves it", async () => {
  const dht = await startDht();
  try {
    await withContent({ filmMib: 2 }, async (content, cleanup) => {
      const seeder = await libtorrent(content, { mode: "seed", dhtNode: dht.nodes[0]! });
      cleanup(() => seeder.stop());
      const content_id = await contentId(content.metainfo);
      await withPlayer({ dht: true, dhtBootstrap: [dht.nodes[1]!] }, async (publisher) => {
        await startPlayback(publisher, "getfile", { magnet: content.magnet({ peers: [seeder.peer] }) });
        await withPlayer({ dht: true, dhtBootstrap: [dht.nodes[2]!] }, async (player) => {
          // The record travels in the background: ask until it is there.
          await until("the record is in the DHT", async () => {
            const answer = await fetch(`${player.url}/engine/getfile?format=json&_idx=1&content_id=${content_id}`);
            return (await answer.json()).error === null;
          });
          await playAll(player, content, { content_id });
        });
      });
    });
  } finally {
    await dht.stop();
  }
});

test("other clients are found by local service discovery only", async () => {
  await withContent({ filmMib: 2 }, async (content, cleanup) => {
    await withPlayer({ lsd: true, peerHost: "0.0.0.0" }, async (player) => {
      const seeder = await libtorrent(content, { mode: "seed", lsd: true });
      cleanup(() => seeder.stop());
      await playAll(player, content, { magnet: content.magnet() });
    });
  });
});

test("a peer that is only known from another's peer exchange is found and used", async () => {
  await withContent({ filmMib: 2 }, async (content, cleanup) => {
    const seeder = await libtorrent(content, { mode: "seed", pex: true });
    cleanup(() => seeder.stop());
    // This peer knows the seeder and has no pieces, so all data we get comes from the seeder.
    const between = await libtorrent(content, { mode: "idle", pex: true, peers: [seeder.peer] });
    cleanup(() => between.stop());
    await between.program.line(/^PEERS 1$/);
    await withPlayer({}, async (player) => {
      const url = await startPlayback(player, "getfile", { magnet: content.magnet({ peers: [between.peer] }) });
      assertSame(await read(url), content.files[0]!.bytes, "film");
    });
    await withPlayer({ pex: false, startTimeoutMs: 1_000 }, async (player) => {
      const selector = { magnet: content.magnet({ peers: [between.peer] }) };
      const query = new URLSearchParams({ ...selector, format: "json", _idx: "0" });
      await (await fetch(`${player.url}/engine/getfile?${query}`)).body?.cancel();
      assert(player.engine.swarms.list().every((swarm) => swarm.status().havePieces === 0));
    });
  });
});
