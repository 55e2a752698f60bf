/** Torrents of version 2 and hybrids through the whole engine: how they are named, shown, listed and played. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { toHex } from "../../src/bytes/hex.ts";
import { secondName } from "../../src/metainfo/hash-trees.ts";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { magnetLink } from "../../src/metainfo/live.ts";
import type { TorrentFormat } from "../../src/metainfo/create-from-files.ts";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine } from "../support/engine.ts";
import { TOKEN } from "../api/support.ts";
import { noise } from "../support/random.ts";

const FILES = [
  { path: "one.mkv", bytes: noise(70_001, 1) },
  { path: "sub/three.mkv", bytes: noise(20_000, 3) },
  { path: "two.mkv", bytes: noise(90_000, 2) },
];

async function withPlayer(
  format: TorrentFormat,
  body: (player: ServedEngine, seeded: SeededFiles) => Promise<void>,
): Promise<void> {
  const seeded = await seedFiles(FILES, { name: "pack", format });
  const player = await serveEngine({ startTimeoutMs: 60_000, accessToken: TOKEN });
  try {
    await body(player, seeded);
  } finally {
    await player.close();
    await seeded.close();
  }
}

// deno-lint-ignore no-explicit-any -- the tests look into it
async function call(player: ServedEngine, method: string, params: Record<string, string> = {}): Promise<any> {
  const query = new URLSearchParams({ method, token: TOKEN, ...params });
  const { result, error } = await (await fetch(`${player.url}/server/api?${query}`)).json();
  assertEquals(error, null, method);
  return result;
}

async function bytesOf(player: ServedEngine, params: Record<string, string>): Promise<Uint8Array> {
  const response = await fetch(`${player.url}/engine/getfile?${new URLSearchParams(params)}`);
  assertEquals(response.status, 200);
  return new Uint8Array(await response.arrayBuffer());
}

/** The link by version 2 alone. */
const byV2 = ({ metainfo, peer }: SeededFiles) =>
  `${magnetLink(metainfo).replace(/xt=urn:btih:\w+&/, "")}&x.pe=${peer}`;

for (const format of ["v2", "hybrid"] as const) {
  test(`a ${format} torrent is shown, listed and played by the magnet of version 2, then by 40 digits of each name`, async () => {
    await withPlayer(format, async (player, seeded) => {
      const { infohashHex, files } = seeded.metainfo;
      const magnet = byV2(seeded);
      // Waits for the metadata as long as it takes, where the methods may not.
      await player.engine.swarms.acquire({ magnet: parseMagnet(magnet) }).swarm.metadata(AbortSignal.timeout(60_000));
      const media = await call(player, "get_media_files", { magnet });
      assertEquals([media.infohash, media.name], [infohashHex, "pack"]);
      assertEquals(media.infohash_v2, toHex(seeded.metainfo.infohashV2!));
      const real = files.filter(({ padding }) => !padding);
      assertEquals(media.files.map((file: { index: number }) => file.index), real.map(({ index }) => index));
      const analysis = await call(player, "analyze_content", { query: magnet });
      assertEquals([analysis.infohash, analysis.title], [infohashHex, "pack"]);
      // Numbers count padding files, as elsewhere.
      const last = real[2]!;
      assertEquals([last.path, last.index], ["two.mkv", 4]);
      assertEquals(await bytesOf(player, { magnet: `${magnet}&so=${real[0]!.index}` }), FILES[0]!.bytes);
      for (const infohash of new Set([infohashHex, secondName(seeded.metainfo) ?? infohashHex])) {
        assertEquals(await bytesOf(player, { infohash, _idx: String(last.index) }), FILES[2]!.bytes);
      }
      assertEquals(player.engine.swarms.list().length, 1);
      const id = await call(player, "playlist_add_item", { title: "Film", magnet });
      const [item] = (await call(player, "playlist_get")).playlist;
      assertEquals([item.id, item.infohash, item.url], [id, infohashHex, magnet]);
      assertEquals(await bytesOf(player, { item: String(id), _idx: "0" }), FILES[0]!.bytes);
    });
  });
}

test("two players that open a hybrid by one name each, at once, share one swarm and get the same file", async () => {
  await withPlayer("hybrid", async (player, seeded) => {
    const { infohashHex } = seeded.metainfo;
    const named = { v1: `magnet:?xt=urn:btih:${infohashHex}`, v2: byV2(seeded) };
    // Only one of them names a peer.
    const [one, two] = await Promise.all(
      Object.values(named).map((magnet) => bytesOf(player, { magnet, _idx: "2" })),
    );
    assertEquals([one, two], [FILES[1]!.bytes, FILES[1]!.bytes]);
    assertEquals(player.engine.swarms.list().map(({ infohashHex }) => infohashHex.length), [40]);
  });
});
