/** Section 4.4, by hand and over HTTP: each method with parameters of the documented kind, and the shape of its result. */
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { assertEquals } from "@std/assert";
import { METHODS } from "../../src/http/api/registry.ts";
import { type ServedEngine, serveEngine } from "../support/engine.ts";
import { assertDescribed } from "../support/described.ts";
import { assertShape, type Shape } from "./shape.ts";
import { TOKEN } from "./support.ts";

let served: ServedEngine;
before(async () => {
  served = await serveEngine({ accessToken: TOKEN, analysisTimeoutMs: 200 });
});
after(() => served?.close());

const ID = "0123456789abcdef0123456789abcdef01234567";
/** Section 2.7. */
const ANALYSIS: Shape = {
  content_type: "|transport_file|hls|hls_vode|direct_content|direct_stream|playlist",
  transport_type: "|bt|hls",
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
  file_index: "integer?",
};
const LISTED: Shape = { ...ITEM, icons: ["string"], hash: "string", hash_v2: "string", show_autosearch: "boolean" };
/** Section 2.9. */
const EXTERNAL: Shape = {
  id: "integer",
  type: "|content|broadcast",
  category: "string",
  name: "string",
  url: "string",
  login: "string",
  password: "string",
  user_agent: "string",
  max_connections: "integer",
  update_interval: "integer",
  updated_at: "integer",
  last_update: "integer",
  next_update: "integer",
  last_error: "string",
  last_error_code: "string",
};
const TASK: Shape = {
  task_id: "integer",
  kind: "|playlist_import|update_all_external_playlists|playlist_check",
  state: "|queued|running|done|failed|cancelled",
  done: "integer",
  total: "integer",
  skipped: "integer",
  errors: [{ line: "integer", message: "string" }],
  errors_total: "integer",
  error: "string?",
  error_code: "string?",
};
const OK = '="ok"';

/** In an order in which each finds what it needs: items 1 to 3 are there after the third line of the playlist. */
const CALLS: readonly (readonly [string, string, Shape])[] = [
  ["get_api_access_token", "", { token: "string" }],
  ["set_allow_remote_access", "value=0", OK],
  ["set_allow_intranet_access", "value=1", OK],
  ["get_status", "", {
    playlist_loaded: "boolean",
    version: { version: "string", code: "integer", platform: "|linux|win32|android" },
  }],
  ["get_network_connection_status", "", { connected: "boolean" }],
  ["sign_out", "", OK],
  ["check_auth", "", {
    package_name: "string?",
    global_auth_level: "integer",
    auth_level: "integer",
    session_auth_level: "integer",
    purse_amount: "integer",
    bonus_amount: "integer",
    bonuses_updated_at: "integer",
    package_color: "=-1",
    package_days_left: "integer",
    token: "string?",
    login: "string?",
    method: '="none"',
    engine_auth_token: "string?",
  }],
  ["get_available_players", "content_id=any", {
    players: [{ id: "string", type: "|proxy|aircast", protocol: "string?", name: "string", icon: "string?" }],
  }],
  ["analyze_content", `query=${ID}&title=x`, ANALYSIS],
  ["analyze_content_multi", `query=${ID}&query=magnet:?xt=urn:btih:${ID}`, [{ result: ANALYSIS }]],
  ["analyze_content_multi", "query=nonsense", [{ error: { message: '="unknown protocol"', code: "=0" } }]],
  ["playlist_add_item", `title=a&content_id=${ID}&tags=["t"]`, "=1"],
  ["playlist_add_item", `title=b&infohash=${ID}&is_live=1&category=c&poster=http://x/p`, "=2"],
  ["playlist_add_item", "title=c&hls_manifest_url=http://x/y.m3u8", "=3"],
  ["get_content_id", "playlist_item_id=1", { content_id: "string" }],
  ["playlist_get", "", { total_items: "=3", playlist: [LISTED] }],
  ["playlist_get_version", "", { version: "number" }],
  ["playlist_get_categories", "owner=me", { categories: [{ name: '="c"', items: "=1" }] }],
  ["analyze_deferred_playlist_items", "playlist_item_id=1&use_media_groups=0", [{
    playlist_item_id: "=1",
    result: ANALYSIS,
  }]],
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
  ["playlist_get", "owner=me", { total_items: "=1", playlist: [LISTED] }],
  ["external_playlist_add", "type=content&category=c&name=n&url=http://x.test/&update_interval=60&update_now=0", "=1"],
  [
    "external_playlist_add",
    "type=broadcast&category=&name=&url=https://x.test/&update_interval=0&update_now=0&login=l&password=p",
    "=2",
  ],
  ["external_playlist_edit", "id=1&category=d&name=m&update_interval=3600&login=a&password=b", OK],
  ["external_playlist_get", "", { playlist: [EXTERNAL] }],
  ["external_playlist_get", "id=1", { playlist: [EXTERNAL] }],
  ["external_playlist_delete", "id=1", OK],
  ["external_playlist_delete", "id=2", OK],
  ["update_all_external_playlists", "", { task_id: "integer" }],
  ["get_playlist_url", "owner=me&category=c&output=hls", { url: "string" }],
  ["playlist_add_item", `title=Found&content_id=${ID}`, "integer"],
  ["search", "query=foun&page=0&page_size=10&category=&group_by_channels=1&show_epg=1", {
    total: "=1",
    time: "number",
    results: [{
      name: '="Found"',
      items: [{ ...LISTED, epg: { now: "=null", next: "=null" } }],
      epg: { tvg_id: "string", sources: ["string"], now: "=null", next: "=null" },
    }],
  }],
  ["epg_source_add", "url=http://127.0.0.1:1/g.xml&update_interval=0&update_now=0", "=1"],
  ["epg_sources", "", {
    sources: [{
      id: "integer",
      url: "string",
      from_list: "boolean",
      update_interval: "integer",
      last_update: "integer",
      next_update: "integer",
      last_error: "string",
      channels: "integer",
      programmes: "integer",
    }],
  }],
  ["epg_source_delete", "id=1", OK],
  ["epg_get", "playlist_item_id=4&from=0&to=100&language=de,en", {
    channels: [{ playlist_item_id: "=4", programmes: [] as never }],
  }],
  ["set_position", `infohash=${ID}&file_index=2&position=62&duration=120`, OK],
  ["get_position", `infohash=${ID}&file_index=2`, {
    infohash: `="${ID}"`,
    file_index: "=2",
    position: "=62",
    duration: "=120",
    updated_at: "integer",
  }],
  ["set_track_choices", `infohash=${ID}&file_index=2&sound=de&subtitles=Signs&subtitles_language=en`, OK],
  ["get_track_choices", `infohash=${ID}&file_index=2`, {
    infohash: `="${ID}"`,
    file_index: "=2",
    sound: '="de"',
    subtitles: '="Signs"',
    preferred_sound: '="de"',
    preferred_subtitles: '="en"',
  }],
  ["set_limits", "download=125000&upload=0", OK],
  ["set_cushion", "value=90", OK],
  ["storage_list", "first=0&count=50", {
    kind: '="ram"',
    limit: "integer",
    used: "=0",
    total: "=0",
    torrents: [] as never,
  }],
  ["storage_remove", "", { freed: "=0", in_use: "=0" }],
  ["storage_limit", "bytes=536870912", OK],
  ["get_settings", "", {
    version: { version: "string", code: "integer", platform: "string" },
    runtime: "string",
    access: { intranet: "boolean", internet: "boolean" },
    limits: { download: "=125000", upload: "=0", max_peers: "integer" },
    cushion: '="90"',
    cache: { kind: '="ram"', limit: "integer", used: "integer" },
    network: { connected: "boolean", peer_port: "integer", dht: "=false", lsd: "=false", pex: "=true" },
    swarms: "integer",
    peers: "integer",
    sessions: "integer",
  }],
  ["get_torrent_progress", `infohash=${ID}`, {
    is_running: "boolean",
    peers: "integer",
    known_peers: "integer",
    has_metadata: "=false",
    metadata: "=null",
    checking: "=null",
    trackers: [{ name: "string", peers: "integer", error: "string?" }],
    unread: [] as never,
  }],
  ["get_devices", "", { devices: [] as never }],
  ["get_tasks", "", { tasks: [TASK] }],
  ["get_log", "", { lines: [{ time: "integer", level: "|error|warn", message: "string", detail: "string" }] }],
  ["broadcast_list", "", { broadcasts: [] as never }],
  ["recording_list", "", { recordings: [] as never }],
  ["get_cast_senders", "", { key: "=null", allowed: [] as never, pending: [] as never }],
  ["playlist_check", "ids=2&owner=me&query=b&category=c", { task_id: "integer" }],
  ["playlist_get_checks", "ids=2,4", { checks: [] as never }],
];
/**
 * These need a file, a web server, an account, a player or a task: content_test.ts, icons_test.ts, players_test.ts,
 * imports_test.ts, external_test.ts, guide_test.ts, lists_test.ts, broadcasts_test.ts, recordings_test.ts, storage_test.ts,
 * ../account.
 */
const ELSEWHERE = [
  "get_media_files",
  "get_channel_icon",
  "parse_m3u_playlist",
  "sign_in",
  "remove_device",
  "open_in_player",
  "get_player_status",
  "control_player",
  "playlist_import",
  "get_task",
  "cancel_task",
  "external_playlist_update",
  "epg_source_update",
  "recording_start",
  "recording_stop",
  "recording_delete",
  "broadcast_start",
  "broadcast_stop",
  "set_cast_sender",
  "storage_keep",
];

test("every method answers over HTTP in the documented shape", async () => {
  for (const [method, query, shape] of CALLS) {
    const isPublic = METHODS.find(({ name }) => name === method)?.public;
    const url = `${served.url}/server/api?api_version=3&method=${method}&${encodeURI(query)}`;
    const response = await fetch(isPublic ? url : `${url}&token=${TOKEN}`);
    const body = await response.json();
    assertEquals([response.status, Object.keys(body)], [200, ["result", "error"]], method);
    assertEquals(body.error, null, `${method}?${query}`);
    assertDescribed(`/server/api/${method}`, body);
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
