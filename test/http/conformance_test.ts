/** Sections 2.1 to 2.4 by hand and over HTTP: starting, stat, commands and the version. */
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { assertShape, type Shape } from "../api/shape.ts";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";

let seeder: SeededFiles;
let served: ServedEngine;
before(async () => {
  seeder = await seedFiles([{ path: "clip.mp4", bytes: clip("mp4-end.mp4") }]);
  served = await serveEngine();
});
after(async () => {
  await served?.close();
  await seeder?.close();
});

/** Section 2.2; VOD that is not encrypted. */
const START: Shape = {
  playback_url: "string",
  stat_url: "string",
  command_url: "string",
  infohash: "string",
  playback_session_id: "string",
  is_live: "=0",
  is_encrypted: "=0",
  client_session_id: "integer",
};
/** Section 2.3 with our additions; `livepos` is only for broadcasts. */
const STAT: Shape = {
  status: "|prefuf|dl",
  peers: "integer",
  speed_down: "integer",
  speed_up: "integer",
  downloaded: "integer",
  uploaded: "integer",
  network_monitor_status: "integer",
  network_monitor_started: "boolean",
  debug_level: "integer",
  disk_cache_stats: {
    avail: "integer",
    disk_cache_limit: "integer",
    inactive_inuse: "integer",
    active_inuse: "integer",
  },
  selected_stream_index: "integer",
  selected_file_index: "integer",
  total_progress: "integer",
  stream_status: "integer",
  client_session_id: "=7",
  manifest_access_mode: "integer",
  playback_session_id: "string",
  is_encrypted: "=0",
  is_live: "=0",
  infohash: "string",
  progress: "integer",
  cushion_wait_s: "integer?",
  cushion_play_s: "integer?",
  stall_reason: "string?",
  error_message: "string?",
};

async function json(url: string): Promise<{ response: never; error: unknown; result: never }> {
  const response = await fetch(url);
  assertEquals(response.status, 200, url);
  return await response.json();
}

test("a start, stat and stop answer the fields of sections 2.1 to 2.3 with their types", async () => {
  for (const path of ["getstream", "manifest.m3u8"]) {
    const query = new URLSearchParams({
      magnet: seeder.magnet,
      format: "json",
      client_session_id: "7",
      use_api_events: "1",
      pid: path,
    });
    const started = await json(`${served.url}/engine/${path}?${query}`);
    assertEquals([Object.keys(started), started.error], [["response", "error"], null]);
    assertShape(started.response, { ...START, event_url: "string" }, path);
    const { stat_url, command_url, playback_url, infohash, playback_session_id } = started.response as Record<
      string,
      string
    >;
    assertMatch(infohash!, /^[0-9a-f]{40}$/);
    for (const url of [stat_url, command_url, playback_url]) assert(URL.canParse(url!), url);
    await (await fetch(playback_url!)).body?.cancel();
    const stat = await json(stat_url!);
    assertEquals([Object.keys(stat), stat.error], [["response", "error"], null]);
    assertShape(stat.response, STAT, "stat");
    const told = stat.response as Record<string, unknown>;
    assertEquals([told["infohash"], told["playback_session_id"]], [infohash, playback_session_id]);
    assertEquals(await json(`${command_url}?method=stop`), { response: "ok", error: null } as never);
    assertEquals(await json(stat_url!), { response: null, error: "unknown playback session id" } as never);
  }
});

test("get_version answers the flat object of sections 2.4 and 4.3", async () => {
  const version = await json(`${served.url}/webui/api/service?method=get_version`);
  assertEquals([Object.keys(version), version.error], [["result", "error"], null]);
  assertShape(version.result, { version: "string", code: "integer", platform: "|linux|win32|android" }, "get_version");
});
