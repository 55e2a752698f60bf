/** Peers that encrypt, when we take no others. */
import { test } from "node:test";
import { libtorrent } from "./peers/clients.ts";
import { assertFetched, withContent } from "./peers/content.ts";
import { playAll, withOurSeeder, withPlayer } from "./peers/ours.ts";

test("with encryption require the engine plays what libtorrent seeds, and libtorrent that encrypts fetches from it", async () => {
  await withContent({ filmMib: 1 }, async (content, cleanup) => {
    const seeder = await libtorrent(content, { mode: "seed" });
    cleanup(() => seeder.stop());
    await withPlayer({ encryption: "require" }, async (player) => {
      await playAll(player, content, { magnet: content.magnet({ peers: [seeder.peer] }) });
    });
    await withOurSeeder(content, { encryption: "require" }, async (ours) => {
      const fetcher = await libtorrent(content, { mode: "fetch", peers: [ours.peer], encrypt: true });
      cleanup(() => fetcher.stop());
      await fetcher.done();
      await assertFetched(content, fetcher.directory);
    });
  });
});
