/** `analyze_deferred_playlist_items` over HTTP. */
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import { METHODS } from "../../src/http/api/registry.ts";
import { parseTransportFile } from "../../src/metainfo/transport-file.ts";
import { type ServedEngine, serveEngine } from "../support/engine.ts";
import { serveWeb, type TestWeb } from "../support/web.ts";
import { TOKEN } from "./support.ts";

let served: ServedEngine;
let web: TestWeb;
before(async () => {
  served = await serveEngine({ accessToken: TOKEN, analysisTimeoutMs: 200 });
  const files: Record<string, string> = {
    "/live.m3u8": "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\n0.ts\n",
    "/vod.m3u8": "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\n0.ts\n#EXT-X-ENDLIST\n",
    "/page": "<html></html>",
  };
  web = await serveWeb((request, response) => void response.end(files[request.url ?? ""]));
});
after(async () => {
  await served?.close();
  await web?.close();
});

// deno-lint-ignore no-explicit-any -- the tests look into it
async function call(method: string, params: Record<string, string> = {}, init: RequestInit = {}): Promise<any> {
  const query = new URLSearchParams({ method, token: TOKEN, ...params });
  const { result, error } = await (await fetch(`${served.url}/server/api?${query}`, init)).json();
  if (error === null) METHODS.find(({ name }) => name === method)!.result.parse(result);
  return error ?? result;
}

const analyze = (ids: readonly number[], more = "") => {
  const query = ids.map((id) => `playlist_item_id=${id}`).join("&");
  return fetch(`${served.url}/server/api?method=analyze_deferred_playlist_items&${query}${more}`).then((response) =>
    response.json()
  );
};
// deno-lint-ignore no-explicit-any -- the tests look into it
const items = async (): Promise<any[]> => (await call("playlist_get")).playlist;

test("analyze_deferred_playlist_items stores what it finds and returns one element per item", async () => {
  const bytes = new Uint8Array(await readFile(new URL("../fixtures/multi-padded.torrent", import.meta.url)));
  const { infohashHex } = await parseTransportFile(bytes) as { infohashHex: string };
  const torrent = await call("playlist_add_item", { title: "Torrent", infohash: infohashHex });
  const live = await call("playlist_add_item", { title: "Channel HD", hls_manifest_url: `${web.base}/live.m3u8` });
  const vod = await call("playlist_add_item", { title: "Channel FHD", video_url: `${web.base}/vod.m3u8` });
  const page = await call("playlist_add_item", { title: "Page", video_url: `${web.base}/page` });
  const waiting = await call("playlist_add_item", { title: "Waiting", auto_search: "1" });
  const locked = await call("playlist_add_item", { title: "Locked", video_url: `${web.base}/vod.m3u8` });
  await call("playlist_item_set_locked", { id: String(locked), value: "1" });
  await call("get_media_files", {}, { method: "POST", body: bytes });
  const before = await items();
  const { result, error } = await analyze([torrent, live, page, waiting, locked]);
  assertEquals(error, null);
  assertEquals(result.map((one: { playlist_item_id: number }) => one.playlist_item_id), [
    torrent,
    live,
    page,
    waiting,
    locked,
  ]);
  const { content_id } = result[0].result;
  assertMatch(content_id, /^[0-9a-f]{40}$/);
  assertEquals([result[0].result.infohash, result[0].result.is_live, result[0].result.title], [
    infohashHex,
    0,
    "Torrent",
  ]);
  assertEquals([result[1].result.content_type, result[1].result.is_live], ["hls", 1]);
  assertEquals(result.slice(2).map((one: { error: { code: number } }) => one.error.code), [0, 0, 8]);
  const now = new Map((await items()).map((item) => [item.id, item]));
  assertEquals([now.get(torrent).content_id, now.get(torrent).is_live, now.get(torrent).content_type], [
    content_id,
    0,
    "vod",
  ]);
  assertEquals([now.get(live).is_live, now.get(live).content_type, now.get(live).transport_type], [1, "live", "hls"]);
  assertEquals([...now.values()].map((item) => item.hash), before.map((item) => item.hash));
  assertEquals(now.get(locked), before.find((item) => item.id === locked));
  assertEquals(now.get(vod).is_live, -1, "only what was named");
  const groups = await analyze([live], "&use_media_groups=1");
  assertEquals(groups.result.map((one: { playlist_item_id: number }) => one.playlist_item_id), [live, vod]);
  const after = new Map((await items()).map((item) => [item.id, item]));
  assertEquals([after.get(vod).is_live, after.get(vod).transport_type], [0, "hls"]);
  assertEquals(after.get(page).is_live, -1);
});

test("analyze_deferred_playlist_items refuses unknown items and pages of other origins", async () => {
  assertEquals((await analyze([9999])).error.code, 5);
  assertEquals((await analyze([])).error.code, 2);
  const response = await fetch(`${served.url}/server/api?method=analyze_deferred_playlist_items&playlist_item_id=1`, {
    headers: { origin: "http://evil.test" },
  });
  assertEquals((await response.json()).error.code, 4);
});
