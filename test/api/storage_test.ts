/** What is cached, by the method API: torrents of real seeders. */
import { test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { seedFiles, temporaryDirectory } from "../support/engine.ts";
import { TOKEN, withEngine } from "./support.ts";

const token = { token: TOKEN };
const PIECE_BYTES = 65_536;

test("storage_list names what is cached; storage_remove and storage_limit make room, but not of what plays", async () => {
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
      for (const { metainfo, magnet } of seeders) {
        const { swarm } = engine.swarms.acquire({ metainfo, magnet: parseMagnet(magnet) });
        swarm.setDownloadAll(true);
        await swarm.completed(new AbortController().signal);
      }
      const { torrents, ...all } = (await call("storage_list", token)).result;
      assertEquals(all, { kind: "disk", limit: 64 * PIECE_BYTES, used: 8 * PIECE_BYTES, total: 2 });
      assertEquals(torrents, [
        { infohash: second, name: "second.bin", used: 3 * PIECE_BYTES, size: 3 * PIECE_BYTES, in_use: true },
        { infohash: first, name: "first.bin", used: 5 * PIECE_BYTES, size: 5 * PIECE_BYTES, in_use: true },
      ]);
      assertEquals((await call("storage_list", { ...token, first: "1", count: "1" })).result.torrents, [torrents[1]]);
      assertMatch((await call("storage_remove", { ...token, infohash: first! })).error!.message, /in use/);
      assertEquals((await call("storage_remove", token)).result, { freed: 0 });
    }, options);
    await withEngine(async ({ call }) => {
      const list = async () => (await call("storage_list", token)).result;
      const inUse = (await list()).torrents.map(({ in_use: inUse }: { in_use: boolean }) => inUse);
      assertEquals(inUse, [false, false]);
      assertEquals((await call("storage_limit", { ...token, bytes: String(6 * PIECE_BYTES) })).result, "ok");
      const { used, limit, torrents } = await list();
      assertEquals([used <= limit, limit], [true, 6 * PIECE_BYTES]);
      assertMatch((await call("storage_limit", { ...token, bytes: "-1" })).error!.message, /bytes/);
      const { infohash, used: freed } = torrents[0];
      assertEquals((await call("storage_remove", { ...token, infohash })).result, { freed });
      const gone = await call("storage_remove", { ...token, infohash });
      assertMatch(gone.error!.message, /nothing of this torrent is cached/);
      assertEquals((await call("storage_remove", token)).result, { freed: used - freed });
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
      assertMatch((await call("storage_limit", { ...token, bytes: "1" })).error!.message, /your own files/);
    }, { cache: "seed", cacheDir: directory.path });
  } finally {
    await directory.remove();
  }
});
