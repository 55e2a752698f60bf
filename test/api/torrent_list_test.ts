/** `/engine/playlist.m3u` with a stream: one torrent as a list. */
import { after, before, test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import { readM3u } from "../../src/playlist/m3u/read.ts";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine } from "../support/engine.ts";

const FILES = [
  { path: "Season 1/Show E10.mkv", bytes: new Uint8Array(9000).fill(1) },
  { path: "Season 1/Show E2.mkv", bytes: new Uint8Array(9000).fill(2) },
  { path: "Season 1/Show E1, the first.mp4", bytes: new Uint8Array(9000).fill(3) },
  { path: "Season 1/old.avi", bytes: new Uint8Array(9000).fill(4) },
  { path: "readme.txt", bytes: new Uint8Array(100).fill(5) },
];

let seeder: SeededFiles;
let served: ServedEngine;
before(async () => {
  seeder = await seedFiles(FILES, { name: "The Show" });
  served = await serveEngine();
});
after(async () => {
  await served?.close();
  await seeder?.close();
});

const get = (query: Record<string, string>, init?: RequestInit) =>
  fetch(`${served.url}/engine/playlist.m3u?${new URLSearchParams(query)}`, init);

async function entriesOf(response: Response): Promise<{ title: string; group: string; url: URL }[]> {
  assertEquals(response.status, 200);
  assertMatch(response.headers.get("content-type")!, /^audio\/x-mpegurl/);
  const entries: { title: string; group: string; url: URL }[] = [];
  for await (const event of readM3u(response.body!)) {
    if (event.kind !== "entry") continue;
    const { title, attributes, url } = event.entry;
    entries.push({ title, group: attributes["group-title"] ?? "", url: new URL(url) });
  }
  return entries;
}

test("playlist.m3u of a torrent lists its episodes in natural order, each with an address that plays it", async () => {
  const entries = await entriesOf(await get({ magnet: seeder.magnet }));
  assertEquals(entries.map(({ title }) => title), ["old", "Show E1, the first", "Show E2", "Show E10"]);
  for (const [at, { url, group }] of entries.entries()) {
    assertEquals([url.origin, url.pathname, group], [served.url, "/engine/getstream", "The Show"]);
    assertEquals(url.searchParams.get("magnet"), seeder.magnet);
    assertEquals(url.searchParams.get("_idx"), ["3", "2", "1", "0"][at]);
  }
  const files = await entriesOf(await get({ magnet: seeder.magnet, output: "file" }));
  assertEquals(files.map(({ title }) => title), ["old", "Show E1, the first", "Show E2", "Show E10"]);
  const inVlc = await entriesOf(await get({ magnet: seeder.magnet }, { headers: { "user-agent": "VLC/3.0.18" } }));
  assertEquals(inVlc, files);
  const played = await fetch(files[2]!.url);
  assertEquals(new Uint8Array(await played.arrayBuffer()), FILES[1]!.bytes);
  const hls = await entriesOf(await get({ infohash: seeder.metainfo.infohashHex, output: "hls" }));
  assertEquals(hls[0]!.url.href, `${served.url}/engine/manifest.m3u8?infohash=${seeder.metainfo.infohashHex}&_idx=3`);
});

test("playlist.m3u of a torrent reports what is wrong with a request, and refuses pages of other origins", async () => {
  assertEquals((await get({ magnet: seeder.magnet, output: "avi" })).status, 400);
  assertEquals((await get({ infohash: "xyz" })).status, 400);
  assertEquals((await get({ magnet: seeder.magnet }, { headers: { origin: "https://page.example" } })).status, 403);
});

test("HEAD on playlist.m3u of a torrent says what GET would", async () => {
  const impatient = await serveEngine({ startTimeoutMs: 300 });
  try {
    const table: [ServedEngine, Record<string, string>, number][] = [
      [served, { magnet: seeder.magnet }, 200],
      [served, { magnet: seeder.magnet, output: "avi" }, 400],
      [served, { infohash: "xyz" }, 400],
      [impatient, { infohash: "f".repeat(40) }, 504],
    ];
    for (const [{ url }, query, status] of table) {
      const answers = ["GET", "HEAD"].map(async (method) => {
        const answer = await fetch(`${url}/engine/playlist.m3u?${new URLSearchParams(query)}`, { method });
        const text = await answer.text();
        return [answer.status, answer.headers.get("content-type"), text !== ""];
      });
      const [whole, head] = await Promise.all(answers);
      assertEquals([whole![0], whole![2]], [status, true], JSON.stringify(query));
      assertEquals(head, [status, whole![1], false], JSON.stringify(query));
    }
  } finally {
    await impatient.close();
  }
});
