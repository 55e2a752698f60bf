/** qBittorrent both ways, with torrents of version 2 and hybrids. */
import { test } from "node:test";
import { makeHybridTorrent, makeV2Torrent } from "./peers/clients.ts";
import { assertFetched, withContent } from "./peers/content.ts";
import { learnPeer, playAll, startPlayback, withOurSeeder, withPlayer } from "./peers/ours.ts";
import { qbittorrent } from "./peers/qbittorrent.ts";

for (const [what, makeTorrent] of [["version 2", makeV2Torrent], ["both versions", makeHybridTorrent]] as const) {
  test(`plays a torrent of ${what} that qBittorrent seeds, by transport file and by magnet`, async () => {
    await withContent({ makeTorrent }, async (content, cleanup) => {
      const seeder = await qbittorrent(content, { mode: "seed" });
      cleanup(() => seeder.stop());
      await withPlayer({}, async (player) => {
        const started = startPlayback(player, "getfile", content.transportFile);
        learnPeer(player.engine, content, seeder.peer);
        await started;
        await playAll(player, content, content.transportFile);
      });
      await withPlayer({}, (player) => playAll(player, content, { magnet: content.magnet({ peers: [seeder.peer] }) }));
    });
  });

  test(`qBittorrent fetches a torrent of ${what} from us by transport file and by magnet`, async () => {
    await withContent({ makeTorrent }, async (content) => {
      await withOurSeeder(content, {}, async (seeder) => {
        for (const magnet of [undefined, content.magnet()]) {
          const fetcher = await qbittorrent(content, { mode: "fetch", peers: [seeder.peer], ...magnet && { magnet } });
          try {
            await fetcher.done();
            await assertFetched(content, fetcher.directory);
          } finally {
            await fetcher.stop();
          }
        }
      });
    });
  });
}
