/** What is cached, by the method API: torrents of real seeders. */
import { test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { seedFiles, temporaryDirectory } from "../support/engine.ts";
import { TOKEN, withEngine } from "./support.ts";

const token = { token: TOKEN };
const PIECE_BYTES = 65_536;
const LIMIT_BYTES = 40 * 1024 * 1024;

test("storage_list names what is cached; storage_remove makes room, but not of what plays or is kept; the limit lasts", async () => {
  const directory = await temporaryDirectory();
  const seeders: Awaited<ReturnType<typeof seedFiles>>[] = [];
  const options = { cache: "disk", cacheDir: directory.path, cacheLimitBytes: 64 * PIECE_BYTES } as const;
  try {
    for (const [path, pieces] of [["first.bin", 5], ["second.bin", 3]] as const) {
      const bytes = new Uint8Array(pieces * PIECE_BYTES).map((_, n) => n * 7 + pieces);
      seeders.push(await seedFiles([{ path, bytes }], { pieceLengthBytes: PIECE_BYTES }));
    }
    const [first, second] = seeders.map(({ metainfo }) => metainfo.infohashHex);
    await withEngine(async ({ engine, call }) => {
      const leases = [];
      for (const { metainfo, magnet } of seeders) {
        const lease = engine.swarms.acquire({ metainfo, magnet: parseMagnet(magnet) });
        lease.swarm.setDownloadAll(true);
        await lease.swarm.completed(AbortSignal.timeout(30_000));
        leases.push(lease);
      }
      const playing = { in_use: true, kept: false };
      const { torrents, ...all } = (await call("storage_list", token)).result;
      assertEquals(all, { kind: "disk", limit: 64 * PIECE_BYTES, used: 8 * PIECE_BYTES, total: 2 });
      assertEquals(torrents, [
        { infohash: second, name: "second.bin", used: 3 * PIECE_BYTES, size: 3 * PIECE_BYTES, ...playing },
        { infohash: first, name: "first.bin", used: 5 * PIECE_BYTES, size: 5 * PIECE_BYTES, ...playing },
      ]);
      assertEquals((await call("storage_list", { ...token, first: "1", count: "1" })).result.torrents, [torrents[1]]);
      assertMatch((await call("storage_remove", { ...token, infohash: first! })).error!.message, /in use/);
      assertEquals((await call("storage_remove", token)).result, { freed: 0, in_use: 2 });
      assertEquals((await call("storage_keep", { ...token, infohash: first!, value: "1" })).result, "ok");
      // Their swarms linger from here on.
      for (const lease of leases) lease.release();
      assertEquals((await call("storage_remove", token)).result, { freed: 3 * PIECE_BYTES, in_use: 0 });
      const lease = engine.swarms.acquire({ metainfo: seeders[1]!.metainfo, magnet: parseMagnet(seeders[1]!.magnet) });
      lease.swarm.setDownloadAll(true);
      await lease.swarm.completed(AbortSignal.timeout(30_000));
      const tooSmall = (await call("storage_limit", { ...token, bytes: String(6 * PIECE_BYTES) })).error!.message;
      assertMatch(tooSmall, /bytes: at least 33554432 \(32 MiB\)/);
      assertEquals((await call("storage_limit", { ...token, bytes: String(LIMIT_BYTES) })).result, "ok");
    }, options);
    await withEngine(async ({ call }) => {
      const list = async () => (await call("storage_list", token)).result;
      const { limit, torrents } = await list();
      assertEquals(limit, LIMIT_BYTES, "it lasted");
      // Both were closed by the end of the engine: which of them first is not said.
      const states = torrents.map((one: Record<string, unknown>) => [one.infohash, [one.in_use, one.kept]]);
      assertEquals(Object.fromEntries(states), { [second!]: [false, false], [first!]: [false, true] });
      assertMatch((await call("storage_limit", { ...token, bytes: "-1" })).error!.message, /bytes/);
      assertEquals((await call("storage_remove", token)).result, { freed: 3 * PIECE_BYTES, in_use: 0 });
      const infohash = first!;
      assertEquals((await call("storage_remove", { ...token, infohash })).result, {
        freed: 5 * PIECE_BYTES,
        in_use: 0,
      });
      const gone = await call("storage_remove", { ...token, infohash });
      assertMatch(gone.error!.message, /nothing of this torrent is cached/);
      assertMatch((await call("storage_keep", { ...token, infohash, value: "1" })).error!.message, /nothing of this/);
      assertEquals((await list()).torrents, []);
    }, options);
  } finally {
    for (const seeder of seeders) await seeder.close();
    await directory.remove();
  }
});

test("storage_remove and storage_limit leave the user's own files alone", async () => {
  const directory = await temporaryDirectory();
  try {
    await withEngine(async ({ call }) => {
      assertMatch((await call("storage_remove", token)).error!.message, /your own files/);
      assertMatch((await call("storage_limit", { ...token, bytes: "0" })).error!.message, /your own files/);
    }, { cache: "seed", cacheDir: directory.path });
  } finally {
    await directory.remove();
  }
});
