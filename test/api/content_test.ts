import { readFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { METHODS } from "../../src/http/api/registry.ts";
import { contentId } from "../../src/metainfo/content-id.ts";
import { parseTransportFile } from "../../src/metainfo/transport-file.ts";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine } from "../support/engine.ts";
import { serveWeb, type TestWeb } from "../support/web.ts";
import { TOKEN, withEngine } from "./support.ts";

let seeder: SeededFiles;
let served: ServedEngine;
let web: TestWeb;
let webUrl: string;

before(async () => {
  const clip = new Uint8Array(await readFile(new URL("../fixtures/mp4-end.mp4", import.meta.url)));
  const text = new TextEncoder().encode("not media");
  seeder = await seedFiles(
    [{ path: "read me.txt", bytes: text }, { path: "season 1/a.mp4", bytes: clip }, { path: "sound.mp3", bytes: text }],
    { name: "pack" },
  );
  served = await serveEngine({ startTimeoutMs: 10_000, analysisTimeoutMs: 300 });
  web = await serveWeb((request, response) => {
    if (request.url === "/pack.torrent") response.end(seeder.transportFile);
    else if (request.url === "/page") response.end("<html></html>");
    else if (request.url === "/list.m3u") {
      response.end(gzipSync('#EXTM3U url-tvg="http://a/1.xml, https://b/2"\r\n#EXTINF:-1,x\r\nhttp://c/'));
    } else response.writeHead(404).end();
  });
  webUrl = web.base;
});
after(async () => {
  await served?.close();
  await seeder?.close();
  await web?.close();
});

/** One call over HTTP; a result is held to the registry's own schema, too. */
async function call(method: string, params: Record<string, string | string[]> = {}, init?: RequestInit) {
  const query = new URLSearchParams({ method });
  for (const [name, value] of Object.entries(params)) for (const one of [value].flat()) query.append(name, one);
  const response = await fetch(`${served.url}/server/api?${query}`, init);
  assertEquals(response.status, 200);
  const { result, error } = await response.json();
  if (error === null) METHODS.find(({ name }) => name === method)!.result.parse(result);
  return { result, error };
}

/** Section 2.6 by hand. */
const FULL = () => ({
  infohash: seeder.metainfo.infohashHex,
  name: "pack",
  type: "vod",
  transport_type: "bt",
  transport_file_cache_key: seeder.metainfo.infohashHex,
  files: [
    { index: 1, filename: "season 1/a.mp4", mime: "video/mp4", size: seeder.metainfo.files[1]!.sizeBytes },
    { index: 2, filename: "sound.mp3", mime: "audio/mpeg", size: 9 },
  ],
});

test("get_media_files takes every selector, and a posted transport file", async () => {
  const body = seeder.transportFile as Uint8Array<ArrayBuffer>;
  const form = new FormData();
  form.append("file", new File([body], "pack.torrent"));
  const calls: [Record<string, string>, RequestInit | undefined][] = [
    [{ magnet: seeder.magnet }, undefined],
    [{ infohash: seeder.metainfo.infohashHex }, undefined],
    [{ content_id: await contentId(seeder.metainfo) }, undefined],
    [{ url: `${webUrl}/pack.torrent` }, undefined],
    [{}, { method: "POST", body: form }],
    [{}, { method: "POST", body, headers: { "content-type": "application/x-bittorrent" } }],
  ];
  for (const [params, init] of calls) {
    assertEquals(await call("get_media_files", params, init), { result: FULL(), error: null }, JSON.stringify(params));
  }
});

test("get_media_files: brief lists indexes and names; dump_transport_file adds the file", async () => {
  const infohash = seeder.metainfo.infohashHex;
  const { result } = await call("get_media_files", { infohash, mode: "brief", dump_transport_file: "1" });
  const { transport_file_data, files, ...rest } = result;
  const { files: _files, ...expected } = FULL();
  assertEquals(rest, expected);
  assertEquals(files, [{ index: 1, filename: "season 1/a.mp4" }, { index: 2, filename: "sound.mp3" }]);
  const dumped = Uint8Array.from(atob(transport_file_data), (c) => c.charCodeAt(0));
  assertEquals((await parseTransportFile(dumped)).infohashHex, infohash);
});

test("get_media_files and get_content_id say what is wrong", async () => {
  const table: [string, Record<string, string>, number][] = [
    ["get_media_files", {}, 2],
    ["get_media_files", { infohash: "" }, 2],
    ["get_media_files", { content_id: "x", infohash: seeder.metainfo.infohashHex }, 3],
    ["get_media_files", { infohash: "x" }, 3],
    ["get_media_files", { magnet: "magnet:?dn=x" }, 3],
    ["get_media_files", { url: "ftp://x/" }, 3],
    ["get_media_files", { url: `${webUrl}/page` }, 3],
    ["get_media_files", { url: `${webUrl}/gone` }, 5],
    ["get_media_files", { infohash: seeder.metainfo.infohashHex, mode: "half" }, 3],
    ["get_content_id", {}, 2],
    ["get_content_id", { infohash: "x" }, 3],
  ];
  for (const [method, params, code] of table) {
    assertEquals((await call(method, params)).error?.code, code, JSON.stringify(params));
  }
});

test("get_content_id agrees for an infohash and for the URL of its transport file", async () => {
  const expected = { result: { content_id: await contentId(seeder.metainfo) }, error: null };
  assertEquals(await call("get_content_id", { infohash: seeder.metainfo.infohashHex }), expected);
  assertEquals(await call("get_content_id", { url: `${webUrl}/pack.torrent` }), expected);
});

test("analyze_content reads ids, magnet links, URIs of any scheme and transport file URLs", async () => {
  const infohash = seeder.metainfo.infohashHex;
  const id = await contentId(seeder.metainfo);
  await call("get_content_id", { url: `${webUrl}/pack.torrent` });
  const known = { content_id: id, infohash, title: "pack", is_live: 0 };
  const stranger = "0123456789abcdef0123456789abcdef01234567";
  const unknown = { content_id: stranger, infohash: null, title: stranger, is_live: -1 };
  const strangeMagnet = `magnet:?xt=urn:btih:${stranger}&dn=Some+film`;
  const table: [string, Record<string, unknown>][] = [
    [id, known],
    [` ${id.toUpperCase()} `, known],
    [`anything:?content_id=${id}`, known],
    [`some-scheme:?infohash=${infohash}`, known],
    [`scheme2://${id}`, known],
    [`scheme2://${id}/`, known],
    [`http://127.0.0.1:6878/engine/getstream?id=${id}&infohash=x`, known],
    [`https://box.example/sub/alias/manifest.m3u8?infohash=${infohash.toUpperCase()}`, known],
    [stranger, unknown],
    [`x:?content_id=${stranger}&y=1`, unknown],
    [`x:?infohash=${stranger}`, { ...unknown, content_id: null, infohash: stranger }],
    [strangeMagnet, { content_id: null, infohash: stranger, title: "Some film", is_live: -1, item_url: strangeMagnet }],
    [seeder.magnet, { ...known, item_url: seeder.magnet }],
    [
      `http://box/engine/getstream?magnet=${encodeURIComponent(seeder.magnet)}`,
      { ...known, item_url: seeder.magnet },
    ],
    [`${webUrl}/pack.torrent`, { ...known, item_url: `${webUrl}/pack.torrent` }],
  ];
  for (const [query, expected] of table) {
    const common = { content_type: "transport_file", transport_type: "bt", item_url: null, categories: [] };
    assertEquals(await call("analyze_content", { query }), { result: { ...common, ...expected }, error: null }, query);
  }
  assertEquals((await call("analyze_content", { query: id, title: "My film" })).result.title, "My film");
});

test("analyze_content returns `unknown protocol`, code 0, for content it does not recognise", async () => {
  const table = [
    "",
    "hello",
    "abc123",
    "a".repeat(41),
    "ftp://example.com/x",
    "x:?content_id=short",
    "http://",
    `${webUrl}/page`,
  ];
  for (const query of table) {
    assertEquals((await call("analyze_content", { query })).error, { message: "unknown protocol", code: 0 }, query);
  }
  assertEquals((await call("analyze_content")).error?.code, 2);
  assertEquals((await call("analyze_content", { query: "magnet:?dn=x" })).error?.code, 3);
  assertEquals((await call("analyze_content", { query: `${webUrl}/gone` })).error?.code, 5);
});

test("analyze_content_multi answers each query in its place (section 7)", async () => {
  const id = "0123456789abcdef0123456789abcdef01234567";
  const { result } = await call("analyze_content_multi", { query: [id, "nonsense", `x://${id}`] });
  assertEquals(result.length, 3);
  assertEquals(result[1], { error: { message: "unknown protocol", code: 0 } });
  assertEquals(result[0], result[2]);
  assertEquals(result[0].result.content_id, id);
  assertEquals((await call("analyze_content_multi")).error?.code, 2);
  assertEquals((await call("analyze_content_multi", { query: Array(201).fill("x") })).error?.code, 3);
});

test("private addresses are only for callers on this machine, not for the pages that may play", async () => {
  const url = `${webUrl}/pack.torrent`;
  await withEngine(async (engine) => {
    assertEquals((await engine.call("get_media_files", { url })).error, null);
    const denied = [
      await engine.call("get_media_files", { url }, { from: "intranet" }),
      await engine.call("analyze_content", { query: url }, { from: "intranet" }),
      await engine.call("get_media_files", { url }, { headers: { origin: "https://tv.example" } }),
      await engine.call("get_media_files", { url }, { headers: { referer: "https://tv.example/" } }),
    ];
    for (const { error } of denied) {
      assertEquals(error?.code, 4);
      assertMatch(error!.message, /private network/);
    }
  }, { allowOrigins: ["https://tv.example"] });
});

test("--allow-private-fetch lets callers elsewhere name private addresses, allowed pages too", async () => {
  const url = `${webUrl}/pack.torrent`;
  await withEngine(async (engine) => {
    const calls = [
      await engine.call("get_media_files", { url }, { from: "intranet" }),
      await engine.call("get_content_id", { url }, { from: "intranet" }),
      await engine.call("analyze_content", { query: url }, { from: "intranet" }),
      await engine.call("get_media_files", { url }, { headers: { origin: "https://tv.example" } }),
    ];
    for (const { error } of calls) assertEquals(error, null);
  }, { allowPrivateFetch: true, allowOrigins: ["https://tv.example"] });
});

test("a search for unknown content ends at the deadline with code 6", async () => {
  await withEngine(async (engine) => {
    const { error } = await engine.call("get_media_files", { infohash: "b".repeat(40) });
    assertEquals(error?.code, 6);
    assertEquals(engine.engine.swarms.list().every((swarm) => swarm.metainfo === null), true);
  }, { startTimeoutMs: 200 });
});

test("get_network_connection_status says connected while a peer is", async () => {
  await withEngine(async (engine) => {
    assertEquals((await engine.call("get_network_connection_status")).result, { connected: false });
    await engine.call("get_media_files", { magnet: seeder.magnet });
    const [swarm] = engine.engine.swarms.list();
    assert(swarm !== undefined && swarm.status().peers > 0);
    assertEquals((await engine.call("get_network_connection_status")).result, { connected: true });
  });
});

test("get_content_id knows the items of the playlist", async () => {
  await withEngine(async ({ call }) => {
    const content_id = "0123456789abcdef0123456789abcdef01234567";
    const add = async (params: Record<string, string>) =>
      String((await call("playlist_add_item", { ...params, token: TOKEN })).result);
    const playlist_item_id = await add({ content_id });
    assertEquals((await call("get_content_id", { playlist_item_id })).result, { content_id });
    const video = await add({ video_url: "http://x/" });
    assertEquals((await call("get_content_id", { playlist_item_id: video })).error?.code, 5);
    assertEquals((await call("get_content_id", { playlist_item_id: "99" })).error?.code, 5);
  });
});

test("parse_m3u_playlist answers the guides that a list names", async () => {
  const answer = await call("parse_m3u_playlist", { url: `${webUrl}/list.m3u` });
  assertEquals(answer, { result: { epg_sources: ["http://a/1.xml", "https://b/2"] }, error: null });
  assertEquals((await call("parse_m3u_playlist", { url: `${webUrl}/page` })).error?.code, 3);
  assertEquals((await call("parse_m3u_playlist", { url: `${webUrl}/gone` })).error?.code, 5);
  assertEquals((await call("parse_m3u_playlist")).error?.code, 2);
});

test("get_available_players answers a list", async () => {
  for (const hasDesktop of [true, false]) {
    await withEngine(
      async ({ call }) => {
        assertEquals((await call("get_available_players", { content_id: "any" })).result, { players: [] });
        const { result } = await call("get_available_players", { with_reason: "1" });
        assertEquals(result, hasDesktop ? { players: [] } : { players: [], no_screen: true });
      },
      {},
      (ports) => ({ ...ports, programs: { ...ports.programs, hasDesktop: () => hasDesktop } }),
    );
  }
});
