/** Torrents of version 2 (BEP 52) that libtorrent makes: we play what it seeds, and it fetches from us. */
import { test } from "node:test";
import { assertEquals, assertLess } from "@std/assert";
import { libtorrent, makeHybridTorrent, makeV2Torrent } from "./peers/clients.ts";
import { assertFetched, type Content, withContent } from "./peers/content.ts";
import { learnPeer, playAll, startPlayback, withOurSeeder, withPlayer } from "./peers/ours.ts";

/** As in the tests of version 1. */
const MAX_WASTED_SHARE = 0.1;

test("plays a torrent of version 2 that libtorrent made and seeds, by transport file and by magnet", async () => {
  await withContent({ makeTorrent: makeV2Torrent }, async (content, cleanup) => {
    const seeder = await libtorrent(content, { mode: "seed" });
    cleanup(() => seeder.stop());
    await withPlayer({}, async (player) => {
      const started = startPlayback(player, "getfile", content.transportFile);
      learnPeer(player.engine, content, seeder.peer);
      await started;
      await playAll(player, content, content.transportFile);
      const { wastedBytes } = player.engine.swarms.list()[0]!.status();
      assertLess(wastedBytes, content.metainfo.totalBytes * MAX_WASTED_SHARE);
    });
    await withPlayer({}, (player) => playAll(player, content, { magnet: content.magnet({ peers: [seeder.peer] }) }));
  });
});

test("libtorrent fetches a torrent of version 2 from us by transport file and by magnet", async () => {
  await withContent({ makeTorrent: makeV2Torrent }, async (content) => {
    await fetches(content, {});
    await fetches(content, { magnet: content.magnet() });
    await fetches(content, { encrypt: true });
  });
});

test("plays a hybrid that libtorrent seeds by the name of version 2 alone, and then by that of version 1 from the same swarm", async () => {
  await withContent({ makeTorrent: makeHybridTorrent }, async (content, cleanup) => {
    const seeder = await libtorrent(content, { mode: "seed" });
    cleanup(() => seeder.stop());
    await withPlayer({}, async (player) => {
      await playAll(player, content, { magnet: v2Alone(content.magnet({ peers: [seeder.peer] })) });
      await playAll(player, content, { infohash: content.metainfo.infohashHex });
      assertEquals(player.engine.swarms.list().length, 1);
    });
  });
});

test("libtorrent fetches a hybrid from us by the name of version 2 alone and by transport file", async () => {
  await withContent({ makeTorrent: makeHybridTorrent }, async (content) => {
    await fetches(content, { magnet: v2Alone(content.magnet()) });
    await fetches(content, { magnet: v2Alone(content.magnet()), encrypt: true });
    await fetches(content, {});
  });
});

function v2Alone(magnet: string): string {
  return magnet.replace(/xt=urn:btih:\w+&/, "");
}

async function fetches(content: Content, options: { magnet?: string; encrypt?: boolean }): Promise<void> {
  await withOurSeeder(content, {}, async (seeder) => {
    const fetcher = await libtorrent(content, { mode: "fetch", peers: [seeder.peer], ...options });
    try {
      await fetcher.done();
      await assertFetched(content, fetcher.directory);
    } finally {
      await fetcher.stop();
    }
  });
}
