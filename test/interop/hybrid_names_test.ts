/** We seed a hybrid by its transport file; libtorrent, which knows the name of version 2 alone, finds us in one way only. */
import { test } from "node:test";
import { secondName } from "../../src/metainfo/hash-trees.ts";
import { startTracker } from "../support/tracker.ts";
import { type ClientOptions, libtorrent, makeHybridTorrent, startDht } from "./peers/clients.ts";
import { assertFetched, type Content, withContent } from "./peers/content.ts";
import { type OurSeeder, withOurSeeder } from "./peers/ours.ts";

const HYBRID = { makeTorrent: makeHybridTorrent, filmMib: 2 };

async function fetchesByV2(content: Content, how: Partial<ClientOptions>): Promise<void> {
  const magnet = content.magnet().replace(/xt=urn:btih:\w+&/, "");
  const fetcher = await libtorrent(content, { mode: "fetch", magnet, ...how });
  try {
    await fetcher.done();
    await assertFetched(content, fetcher.directory);
  } finally {
    await fetcher.stop();
  }
}

test("libtorrent finds our hybrid by the name of version 2 alone, by a tracker that keeps both", async () => {
  await withContent(HYBRID, async (content, cleanup) => {
    const { metainfo } = content;
    const tracker = await startTracker([metainfo.infohashHex, secondName(metainfo)!]);
    cleanup(() => tracker.stop());
    const torrentTrackers = [tracker.http];
    await withOurSeeder(content, { torrentTrackers }, async (seeder: OurSeeder) => {
      await seeder.announced();
      await fetchesByV2(content, { trackers: torrentTrackers });
    });
  });
});

test("libtorrent finds our hybrid by the name of version 2 alone, by the DHT", async () => {
  const dht = await startDht();
  try {
    await withContent(HYBRID, (content) =>
      withOurSeeder(
        content,
        { dht: true, dhtBootstrap: [dht.nodes[2]!] },
        () => fetchesByV2(content, { dhtNode: dht.nodes[0]! }),
      ));
  } finally {
    await dht.stop();
  }
});
