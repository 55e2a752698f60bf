/** Section 4.4, by hand and over HTTP: each method with parameters of the documented kind, and the shape of its result. */
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { METHODS } from "../../src/http/api/registry.ts";
import { type ServedEngine, serveEngine } from "../support/engine.ts";
import { TOKEN } from "./support.ts";

let served: ServedEngine;
before(async () => {
  served = await serveEngine({ accessToken: TOKEN });
});
after(() => served?.close());

/** A shape: a type's name, a literal after `=`, a list of one shape, or fields; `?` allows null. */
type Shape = string | readonly [Shape] | { readonly [field: string]: Shape };

function assertShape(value: unknown, shape: Shape, where: string): void {
  if (Array.isArray(shape)) {
    assert(Array.isArray(value), `${where}: a list`);
    value.forEach((item, i) => assertShape(item, shape[0], `${where}[${i}]`));
  } else if (typeof shape === "object") {
    assert(typeof value === "object" && value !== null, `${where}: an object`);
    assertEquals(Object.keys(value).sort(), Object.keys(shape).sort(), where);
    for (const [name, inner] of Object.entries(shape)) {
      assertShape((value as Record<string, unknown>)[name], inner, `${where}.${name}`);
    }
  } else if (shape.startsWith("=")) assertEquals(value, JSON.parse(shape.slice(1)), where);
  else if (shape.endsWith("?") && value === null) return;
  else if (shape.startsWith("integer")) assert(Number.isSafeInteger(value), `${where}: an integer`);
  else assertEquals(typeof value, shape.replace("?", ""), where);
}

const ID = "0123456789abcdef0123456789abcdef01234567";
const ANALYSIS: Shape = {
  content_type: "string",
  transport_type: "string",
  content_id: "string?",
  infohash: "string?",
  item_url: "string?",
  title: "string",
  is_live: "integer",
  categories: ["string"],
};
const ITEM: Shape = {
  id: "integer",
  title: "string",
  display_title: "string?",
  description: "string",
  poster: "string",
  tvg_id: "string",
  tvg_name: "string",
  tvg_logo: "string",
  subcategory: "string",
  category: "string?",
  languages: "string?",
  countries: "string?",
  url: "string?",
  content_id: "string?",
  infohash: "string",
  tags: ["string"],
  content_type: "string",
  transport_type: "string",
  is_live: "integer",
  is_favorite: "boolean",
  is_multi_vod: "boolean",
  is_multi_tfile: "boolean",
  locked: "boolean",
  is_deleted: "boolean",
  auto_search: "boolean",
  enabled: "boolean",
  is_wrapped_url: "integer",
  external_playlist_id: "integer",
  created_at: "integer",
  updated_at: "integer",
};
const LISTED: Shape = { ...ITEM, icons: ["string"], hash: "string", hash_v2: "string", show_autosearch: "boolean" };
const OK = '="ok"';

/** In an order in which each finds what it needs: items 1 to 3 are there after the third line of the playlist. */
const CALLS: readonly (readonly [string, string, Shape])[] = [
  ["get_api_access_token", "", { token: "string" }],
  ["set_allow_remote_access", "value=0", OK],
  ["set_allow_intranet_access", "value=1", OK],
  ["get_status", "", {
    playlist_loaded: "boolean",
    version: { version: "string", code: "integer", platform: "string" },
  }],
  ["get_network_connection_status", "", { connected: "boolean" }],
  ["get_available_players", "content_id=any", {
    players: [{ id: "string", type: "string", protocol: "string?", name: "string", icon: "string?" }],
  }],
  ["analyze_content", `query=${ID}&title=x`, ANALYSIS],
  ["analyze_content_multi", `query=${ID}&query=magnet:?xt=urn:btih:${ID}`, [{ result: ANALYSIS }]],
  ["analyze_content_multi", "query=nonsense", [{ error: { message: '="unknown protocol"', code: "=0" } }]],
  ["playlist_add_item", `title=a&content_id=${ID}&tags=["t"]`, "=1"],
  ["playlist_add_item", `title=b&infohash=${ID}&is_live=1&category=c&poster=http://x/p`, "=2"],
  ["playlist_add_item", "title=c&hls_manifest_url=http://x/y.m3u8", "=3"],
  ["get_content_id", "playlist_item_id=1", { content_id: "string" }],
  ["playlist_get", "", { total_items: "=3", playlist: [LISTED] }],
  ["playlist_update_item", "id=1&title=A&tags=[]&auto_search=1&is_favorite=1&use_media_groups=1", "=true"],
  ["playlist_item_set_favorite", "id=1&value=0&use_media_groups=0", "=true"],
  ["playlist_item_set_enabled", "id=1&value=0", "=true"],
  ["playlist_items_set_enabled", "ids=1,2,3&value=1", "=true"],
  ["playlist_item_set_locked", "id=3&value=1", "=true"],
  ["playlist_item_set_locked", "id=3&value=0", "=true"],
  ["playlist_item_set_auto_search", "id=1&value=1&owner=me", OK],
  ["playlist_delete_item", "id=1", OK],
  ["playlist_delete_items", "owner=me&ids=2,3", OK],
  ["playlist_trash_get", "owner=me", { data: [ITEM] }],
  ["playlist_restore_item", "owner=me&id=2", OK],
  ["playlist_trash_clear", "owner=me", OK],
  ["playlist_clear", "owner=me", OK],
  ["playlist_get", "owner=me", { total_items: "=0", playlist: [LISTED] }],
];
/** These need a file or a web server: content_test.ts, icons_test.ts. */
const ELSEWHERE = ["get_media_files", "get_channel_icon", "parse_m3u_playlist"];

test("every method answers over HTTP in the documented shape", async () => {
  for (const [method, query, shape] of CALLS) {
    const isPublic = METHODS.find(({ name }) => name === method)?.public;
    const url = `${served.url}/server/api?api_version=3&method=${method}&${encodeURI(query)}`;
    const response = await fetch(isPublic ? url : `${url}&token=${TOKEN}`);
    const body = await response.json();
    assertEquals([response.status, Object.keys(body)], [200, ["result", "error"]], method);
    assertEquals(body.error, null, `${method}?${query}`);
    assertShape(body.result, shape, method);
  }
  const tried = new Set([...CALLS.map(([method]) => method), ...ELSEWHERE]);
  assertEquals(METHODS.map(({ name }) => name).filter((name) => !tried.has(name)), []);
});

test("get_media_files answers a posted transport file over HTTP in the documented shape", async () => {
  const body = new Uint8Array(await readFile(new URL("../fixtures/single.torrent", import.meta.url)));
  const response = await fetch(`${served.url}/service/api?method=get_media_files&dump_transport_file=1`, {
    method: "POST",
    body,
  });
  assertShape((await response.json()).result, {
    infohash: "string",
    name: "string",
    type: '="vod"',
    transport_type: '="bt"',
    transport_file_cache_key: "string?",
    files: [{ index: "integer", filename: "string", mime: "string", size: "integer" }],
    transport_file_data: "string",
  }, "get_media_files");
});
