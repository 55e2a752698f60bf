/** `get_media_files` and `get_content_id` for HTTP addresses; torrents are in content_test.ts. */
import os from "node:os";
import { readFile, rm } from "node:fs/promises";
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { createLiveTransportFile } from "../../src/metainfo/live.ts";
import { type ServedEngine, serveEngine } from "../support/engine.ts";
import { until } from "../support/until.ts";
import { serveWeb, type TestWeb } from "../support/web.ts";
import { TOKEN, withEngine } from "./support.ts";

let served: ServedEngine;
let web: TestWeb;
let clip: Uint8Array;
let torrent: Uint8Array;
let live: Awaited<ReturnType<typeof createLiveTransportFile>>;
let isGone = false;
const directory = `${os.tmpdir()}/millrace-media-${crypto.randomUUID()}`;

const fixture = async (name: string) => new Uint8Array(await readFile(new URL(`../fixtures/${name}`, import.meta.url)));

before(async () => {
  clip = await fixture("mp4-front.mp4");
  torrent = await fixture("single.torrent");
  live = await createLiveTransportFile({ name: "Channel", publicKey: new Uint8Array(32), bytesPerS: 100_000 });
  served = await serveEngine({ stateDir: directory, startTimeoutMs: 500, accessToken: TOKEN });
  web = await serveWeb(({ url }, response) => {
    if (isGone) response.writeHead(404).end();
    else if (url === "/news/index.m3u8") response.end("#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\n0.ts\n");
    else if (url === "/a film.mp4".replace(" ", "%20")) response.setHeader("content-length", clip.length).end(clip);
    else if (url === "/endless") {
      const packet = new Uint8Array(188);
      packet[0] = 0x47;
      const send = () => response.writable && response.write(packet, () => setImmediate(send));
      send();
    } else if (url === "/list.m3u") {
      response.end("#EXTM3U\n#EXTINF:-1,One.mkv\nhttp://a/1\n#EXTINF:-1,Two\nhttp://a/2\n");
    } else if (url === "/single.torrent") response.end(torrent);
    else if (url === "/channel") response.end(live.bytes);
    else response.end("<html>");
  });
});
after(async () => {
  await served?.close();
  await web?.close();
  await rm(directory, { recursive: true, force: true });
});

/** One call over HTTP. */
async function call(method: string, params: Record<string, string> = {}, body?: Uint8Array) {
  const query = new URLSearchParams({ method, ...params });
  const init = body === undefined ? {} : { method: "POST", body: body as Uint8Array<ArrayBuffer> };
  return await (await fetch(`${served.url}/server/api?${query}`, init)).json();
}
const media = (params: Record<string, string>, body?: Uint8Array) => call("get_media_files", params, body);
const bytesOf = (base64: string) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

test("get_media_files says what an address that is no transport file leads to", async () => {
  const table: [string, string, string, unknown[]][] = [
    ["/news/index.m3u8", "news", "live", [
      { index: 0, filename: "news", mime: "application/vnd.apple.mpegurl", size: 0 },
    ]],
    ["/a%20film.mp4", "a film", "vod", [{ index: 0, filename: "a film", mime: "video/mp4", size: clip.length }]],
    ["/list.m3u", "list", "live", [
      { index: 0, filename: "One.mkv", mime: "video/x-matroska", size: 0 },
      { index: 1, filename: "Two", mime: "application/octet-stream", size: 0 },
    ]],
  ];
  for (const [path, name, type, files] of table) {
    const { result, error } = await media({ url: web.base + path });
    assertEquals(error, null);
    assertMatch(result.infohash, /^[0-9a-f]{40}$/);
    const { infohash: _, ...rest } = result;
    assertEquals(rest, { name, type, transport_type: "hls", transport_file_cache_key: null, files }, path);
  }
  const { error } = await media({ url: `${web.base}/page` });
  assertEquals(error.code, 3);
});

test("get_media_files: create_wrappers gives an address lasting ids, expand_wrapper lists its files", async () => {
  const url = `${web.base}/news/index.m3u8`;
  const { result } = await media({ url, create_wrappers: "1", dump_transport_file: "1" });
  const { transport_file_data, ...packed } = result;
  assertEquals(packed, {
    infohash: packed.infohash,
    name: "news",
    type: "live",
    transport_type: "wrapper",
    transport_file_cache_key: packed.infohash,
    files: [{ index: 0, filename: "news", mime: "application/vnd.apple.mpegurl", size: 0 }],
  });
  const file = bytesOf(transport_file_data);
  const { result: { content_id } } = await call("get_content_id", { infohash: packed.infohash });
  for (const [params, body] of [[{ infohash: packed.infohash }], [{ content_id }], [{}, file]] as const) {
    assertEquals((await media(params, body)).result, packed);
    const expanded = (await media({ ...params, expand_wrapper: "1", mode: "brief" }, body)).result;
    assertEquals(expanded, { ...packed, transport_type: "hls", files: [{ index: 0, filename: "news" }] });
  }
  // The same address again has the same ids, and both flags together look into it at once.
  const both = (await media({ url, create_wrappers: "1", expand_wrapper: "1" })).result;
  assertEquals([both.infohash, both.transport_type], [packed.infohash, "hls"]);
  const { result: analysis } = await call("analyze_content", { query: packed.infohash });
  assertEquals(analysis, {
    content_type: "transport_file",
    transport_type: "hls",
    content_id,
    infohash: packed.infohash,
    item_url: url,
    title: "news",
    is_live: 1,
    categories: [],
  });

  // Playback says what to do instead of looking for peers.
  const started = await (await fetch(`${served.url}/engine/getstream?format=json&infohash=${packed.infohash}`)).json();
  assertMatch(started.error, /open its own address in the player/);

  await served.close();
  served = await serveEngine({ stateDir: directory, startTimeoutMs: 500, accessToken: TOKEN });
  assertEquals((await media({ content_id })).result, packed);
  isGone = true;
  assertEquals((await media({ content_id })).result, packed);
  assertEquals((await media({ content_id, expand_wrapper: "1" })).error.code, 5);
  isGone = false;
});

test("playback distinguishes at once HTTP media from transport files", async () => {
  const table: [string, number, RegExp][] = [
    ["/news/index.m3u8", 415, /open its own address in the player/],
    ["/a%20film.mp4", 415, /open its own address in the player/],
    ["/list.m3u", 415, /open its own address in the player/],
    ["/endless", 415, /open its own address in the player/],
    ["/page", 400, /leads to something else/],
  ];
  for (const [path, status, message] of table) {
    for (const route of ["getstream", "manifest.m3u8"]) {
      const start = `${served.url}/engine/${route}?url=${encodeURIComponent(web.base + path)}`;
      const response = await fetch(start);
      assertEquals(response.status, status, path);
      assertMatch(await response.text(), message);
      const { response: started, error } = await (await fetch(`${start}&format=json`)).json();
      assertEquals(started, null);
      assertMatch(error, message);
    }
  }
});

test("get_media_files: without create_wrappers nothing is kept", async () => {
  const { result } = await media({ url: `${web.base}/a%20film.mp4` });
  assertEquals((await media({ infohash: result.infohash })).error.code, 6);
});

test("get_media_files: analyze_content adds the analysis of torrents, broadcasts, addresses and wrappers", async () => {
  const paths: [string, string, number][] = [
    ["/single.torrent", "transport_file", 0],
    ["/channel", "transport_file", 1],
    ["/news/index.m3u8", "hls", 1],
    ["/a%20film.mp4", "direct_content", 0],
    ["/list.m3u", "playlist", -1],
  ];
  for (const [path, content_type, is_live] of paths) {
    const url = web.base + path;
    const { result } = await media({ url, analyze_content: "1" });
    assertEquals([result.analysis.content_type, result.analysis.is_live], [content_type, is_live], path);
    assertEquals(result.analysis, (await call("analyze_content", { query: url })).result);
    assert(!("analysis" in (await media({ url })).result));
  }
  const url = `${web.base}/news/index.m3u8`;
  const { result } = await media({ url, create_wrappers: "1", analyze_content: "1" });
  assertEquals([result.transport_type, result.analysis.content_type], ["wrapper", "hls"]);
  assertEquals((await media({ infohash: result.infohash, analyze_content: "1" })).result.analysis, result.analysis);
});

test("get_media_files distinguishes broadcasts from torrents, posted or by address", async () => {
  const expected = {
    infohash: live.metainfo.infohashHex,
    name: "Channel",
    type: "live",
    transport_type: "bt",
    transport_file_cache_key: live.metainfo.infohashHex,
    files: [{ index: 0, filename: "Channel", mime: "video/mp2t", size: 0 }],
  };
  assertEquals((await media({ url: `${web.base}/channel` })).result, expected);
  assertEquals((await media({}, live.bytes)).result, expected);
  const { result } = await media({ infohash: live.metainfo.infohashHex, dump_transport_file: "1" });
  assertEquals(bytesOf(result.transport_file_data), live.bytes);
});

test("get_content_id answers for items that only name the address of a transport file, and for wrapped ones", async () => {
  const { result: { content_id } } = await call("get_content_id", { url: `${web.base}/single.torrent` });
  const { result: wrapper } = await media({ url: `${web.base}/list.m3u`, create_wrappers: "1" });
  const lines = [
    "#EXTM3U",
    `${web.base}/single.torrent`,
    `own:?infohash=${wrapper.infohash}`,
    `${web.base}/channel.ts`,
  ];
  const list = new TextEncoder().encode(lines.join("\n"));
  const { result: { task_id } } = await call("playlist_import", { token: TOKEN }, list);
  await until("the import", async () => {
    const { result } = await call("get_task", { task_id: String(task_id), token: TOKEN });
    return result.state === "done";
  });
  const { result: { playlist } } = await call("playlist_get", { token: TOKEN });
  const answers = await Promise.all(
    playlist.map(({ id }: { id: number }) => call("get_content_id", { playlist_item_id: String(id) })),
  );
  assertEquals(answers[0].result, { content_id });
  assertEquals(answers[1].result, (await call("get_content_id", { infohash: wrapper.infohash })).result);
  assertEquals(answers[2].error.code, 5);
});

test("get_content_id refuses addresses that are not wrapped", async () => {
  assertEquals((await call("get_content_id", { url: `${web.base}/news/index.m3u8` })).error.code, 3);
  assertEquals((await call("get_content_id", { url: `${web.base}/page` })).error.code, 3);
});

test("get_media_files: wrappers are no way into the private network", async () => {
  await withEngine(async (engine) => {
    const url = `${web.base}/news/index.m3u8`;
    const { result } = await engine.call("get_media_files", { url, create_wrappers: "1" });
    const { infohash } = result;
    const other = await engine.call("get_media_files", { infohash, expand_wrapper: "1" }, { from: "intranet" });
    assertEquals(other.error?.code, 4);
    const made = await engine.call("get_media_files", { url, create_wrappers: "1" }, { from: "intranet" });
    assertEquals(made.error?.code, 4);
  });
});
