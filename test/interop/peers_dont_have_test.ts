/** Pieces that fall out of our cache, as another client learns of it (BEP 54). */
import { test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import { libtorrent } from "./peers/clients.ts";
import { withContent } from "./peers/content.ts";
import { learnPeer, read, startPlayback, withOurSeeder, withPlayer } from "./peers/ours.ts";
import { until } from "../support/until.ts";

test("libtorrent forgets the pieces that our cache evicted", async () => {
  await withContent(
    {},
    (content) =>
      withOurSeeder(content, {}, (seeder) =>
        withPlayer({ cacheLimitBytes: 2 * 2 ** 20 }, async (player) => {
          const url = await startPlayback(player, "getfile", { magnet: content.magnet({ peers: [seeder.peer] }) });
          const watcher = await libtorrent(content, { mode: "idle" });
          try {
            learnPeer(player.engine, content, watcher.peer);
            const told = () =>
              [...watcher.program.output().matchAll(/^HAS (\d+)$/gm)].map(([, count]) => Number(count));
            const held = () => player.engine.swarms.list()[0]!.status().havePieces;
            await until("libtorrent is connected", () => /^PEERS 1$/m.test(watcher.program.output()));
            await read(url);
            assertLess(held(), content.metainfo.pieceCount / 2);
            await until("libtorrent counts what we have", () => told().at(-1) === held(), 10_000);
            assert(Math.max(...told()) >= held());
            assertEquals(told().at(-1), held());
          } finally {
            await watcher.stop();
          }
        })),
  );
});
