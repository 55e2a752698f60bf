/** Sections 2.2, 2.3, 4.1 and 4.2 of the HTTP API for files, and the engine's decisions where they are silent. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import { settle } from "../support/fake-clock.ts";
import { fixture } from "../media/support/files.ts";
import { ALLOWED_PAGE, INFOHASH, playbackApp } from "./playback-app.ts";

const FILM = { name: "film.ts", bytes: fixture("ts-188.ts") };
const EXTRA = { name: "extra.mkv", bytes: fixture("mkv-no-cues.mkv").subarray(0) };
const GONE = { response: null, error: "unknown playback session id" };

/** Lets the prebuffering end. */
async function prebuffered(app: ReturnType<typeof playbackApp>, started: Record<string, string>): Promise<void> {
  for (let i = 0; i < 100; i++) {
    const { response } = await app.json(`${started.stat_url}?skip_player_activity=1`);
    if (response.status === "dl") return;
    await settle();
  }
  throw new Error("it never came to dl");
}

test("an unknown session gets the exact text from stat, cmd and event, 404 from playback", async () => {
  const app = playbackApp([FILM]);
  const id = "f".repeat(32);
  for (const path of [`stat/${INFOHASH}/${id}`, `cmd/${INFOHASH}/${id}?method=stop`, `event/${INFOHASH}/${id}`]) {
    const response = await app.get(`/engine/${path}`);
    assertEquals([response.status, await response.json()], [200, GONE], path);
  }
  for (
    const path of [`r/${INFOHASH}/${id}`, `m/${INFOHASH}/${id}.m3u8`, `c/${INFOHASH}/0.ts`, `f/${INFOHASH}/${id}/x`]
  ) {
    const response = await app.get(`/engine/${path}`);
    assertEquals([response.status, (await response.text()).trim()], [404, GONE.error], path);
  }
});

test("bytes, playlists, segments and stat keep a session, stat with skip_player_activity=1 does not", async () => {
  const app = playbackApp([FILM]);
  const hls = await app.start("/engine/manifest.m3u8", "pid=hls");
  await prebuffered(app, hls);
  const lines = (await (await app.get(hls.playback_url!)).text()).split("\n");
  const segment = lines.find((line) => line.startsWith("http"))!;
  const alive = async () => (await app.json(`${hls.stat_url}?skip_player_activity=1`)).error === null;
  const uses: readonly (() => Promise<unknown>)[] = [
    () => app.get(hls.playback_url!),
    async () => await (await app.get(segment)).arrayBuffer(),
    () => app.json(hls.stat_url!),
    () => app.start("/engine/manifest.m3u8", "pid=hls"),
  ];
  for (const use of uses) {
    app.clock.advance(55_000);
    assert(await alive());
    await use();
    app.clock.advance(55_000);
    assert(await alive());
    await use();
  }
  for (let i = 0; i < 65; i++) {
    await app.json(`${hls.stat_url}?skip_player_activity=1`);
    app.clock.advance(1000);
  }
  assertEquals([await alive(), app.swarms.leases], [false, 0]);
});

test("use_api_stop lifts the limit to an hour, set_player_activity_timeout sets it", async () => {
  const app = playbackApp([FILM]);
  const patient = await app.start("/engine/getstream", "pid=a&use_api_stop=1");
  const plain = await app.start("/engine/getstream", "pid=b");
  const told = await app.json(`${plain.command_url}?method=set_player_activity_timeout&timeout=300`);
  assertEquals(told, { response: "ok", error: null });
  const alive = async (one: Record<string, string>) =>
    (await app.json(`${one.stat_url}?skip_player_activity=1`)).error === null;
  app.clock.advance(299_000);
  assertEquals([await alive(patient), await alive(plain)], [true, true]);
  app.clock.advance(3000);
  assertEquals([await alive(patient), await alive(plain)], [true, false]);
  app.clock.advance(3_290_000);
  assertEquals(await alive(patient), true);
  app.clock.advance(10_000);
  assertEquals(await alive(patient), false);
});

test("cmd answers every command, and unknown method to all others", async () => {
  const app = playbackApp([FILM]);
  const started = await app.start("/engine/getstream");
  const timeout = "invalid timeout: 1 to 86400 seconds";
  const variant = "invalid stream_index: the stream has one variant, 0";
  const cases: readonly (readonly [string, unknown, string | null])[] = [
    ["", null, "missing parameter: method"],
    ["method=", null, "missing parameter: method"],
    ["method=pause", null, "unknown method: pause"],
    ["method=liveseek&pos=-1", null, "liveseek: the stream is not live"],
    ["method=set_stream&stream_index=0", "ok", null],
    ["method=play_now", "ok", null],
    ["method=set_stream&stream_index=1", null, variant],
    ["method=set_stream", null, variant],
    ["method=set_player_activity_timeout&timeout=10", "ok", null],
    ["method=set_player_activity_timeout&timeout=0", null, timeout],
    ["method=set_player_activity_timeout&timeout=x", null, timeout],
    ["method=set_player_activity_timeout", null, timeout],
    ["method=stop", "ok", null],
    ["method=stop", null, GONE.error],
  ];
  for (const [query, response, error] of cases) {
    assertEquals(await app.json(`${started.command_url}?${query}`), { response, error }, query);
  }
});

test("event_url is returned on request, and a poll lasts at most 15 s", async () => {
  const app = playbackApp([FILM]);
  for (const [query, has] of [["", false], ["use_api_events=1", true], ["use_stop_notifications=1", true]] as const) {
    const started = await app.start("/engine/getstream", `pid=${query.length}&${query}`);
    assertEquals("event_url" in started, has, query);
  }
  const started = await app.start("/engine/getstream", "pid=x&use_api_events=1");
  await prebuffered(app, started);
  const names: string[] = [];
  for (let name = ""; name !== "playing"; names.push(name)) {
    const { response, error } = await app.json(started.event_url!);
    assertEquals([error, Object.keys(response).sort()], [null, ["name", "params"]]);
    name = response.name;
  }
  assertEquals(new Set(names.slice(0, -1)), new Set(names.length > 1 ? ["prebuffering"] : []));
  const poll = app.json(started.event_url!);
  await settle();
  app.clock.advance(14_999);
  app.clock.advance(2);
  assertEquals(await poll, { response: null, error: null });
  // download_stopped is sent only on request; here the queue just ends.
  const last = app.json(started.event_url!);
  await settle();
  await app.json(`${started.command_url}?method=stop`);
  assertEquals(await last, { response: null, error: null });
});

test("stat has exactly the fields of section 2.3 with these values, and our additions", async () => {
  const app = playbackApp([FILM, EXTRA]);
  const started = await app.start("/engine/getstream", "client_session_id=77&_idx=0");
  await prebuffered(app, started);
  const { response, error } = await app.json(started.stat_url!);
  assertEquals(error, null);
  assertEquals(response, {
    // The six of the table.
    status: "dl",
    peers: 3,
    speed_down: 200,
    speed_up: 1,
    downloaded: 5000,
    uploaded: 70,
    // The others that the object carries.
    network_monitor_status: -1,
    debug_level: 0,
    disk_cache_stats: { avail: 600, disk_cache_limit: 1000, inactive_inuse: 0, active_inuse: 400 },
    network_monitor_started: false,
    selected_stream_index: -1,
    total_progress: Math.floor(100 / Math.ceil((FILM.bytes.length + EXTRA.bytes.length) / 16384)),
    stream_status: -1,
    client_session_id: 77,
    manifest_access_mode: -1,
    playback_session_id: started.playback_session_id,
    is_encrypted: 0,
    is_live: 0,
    infohash: INFOHASH,
    selected_file_index: 0,
    // Our additions; livepos is of broadcasts.
    progress: 100,
    cushion_wait_s: null,
    cushion_play_s: null,
    stall_reason: null,
    error_message: null,
  });
  const idOf = async (more: string) => {
    const { client_session_id, stat_url } = await app.start("/engine/getstream", more);
    const { response } = await app.json(stat_url!);
    assertEquals(client_session_id as unknown, response.client_session_id);
    return response.client_session_id;
  };
  assertEquals(await idOf("pid=other"), -1);
  // A start that joins the session names its own.
  assertEquals(await idOf("pid=other&client_session_id=8"), 8);
  assertEquals(await idOf("pid=other"), 8);
});

test("stat says prefuf while prebuffering, prebuf under an alias, and dl after", async () => {
  const app = playbackApp([FILM]);
  const ready = await app.start("/tv/getfile", "pid=ready");
  await prebuffered(app, ready);
  app.swarm.silentReads = true;
  const words: unknown[] = [];
  for (const prefix of ["engine", "tv"]) {
    const started = await app.start(`/${prefix}/getfile`, `pid=${prefix}`);
    const { response } = await app.json(started.stat_url!);
    words.push([response.status, response.progress]);
  }
  assertEquals(words, [["prefuf", 0], ["prebuf", 0]]);
  const { response } = await app.json(ready.stat_url!);
  assertEquals([response.status, response.progress], ["dl", 100]);
});

test("MPEG TS has a length, ranges and a strong ETag; without an index apart it has none of the first two", async () => {
  const app = playbackApp([FILM, EXTRA]);
  const whole = await app.start("/engine/getstream", "_idx=0");
  const head = async (url: string, headers: Record<string, string> = {}) => {
    const { status, headers: got } = await app.get(url, { method: "HEAD", headers });
    return [
      status,
      ...["content-type", "accept-ranges", "content-length", "content-range"].map((name) => got.get(name)),
    ];
  };
  const size = String(FILM.bytes.length);
  assertEquals(await head(whole.playback_url!), [200, "video/mp2t", "bytes", size, null]);
  const ranges = [
    ["bytes=0-99", 206, "100", `bytes 0-99/${size}`],
    ["bytes=-50", 206, "50", `bytes ${FILM.bytes.length - 50}-${FILM.bytes.length - 1}/${size}`],
    [`bytes=${size}-`, 416, null, `bytes */${size}`],
  ] as const;
  for (const [range, status, length, told] of ranges) {
    const got = await head(whole.playback_url!, { range });
    assertEquals([got[0], got[3], got[4]], [status, length, told], range);
  }
  assertMatch((await app.get(whole.playback_url!)).headers.get("etag")!, /^"[^"]+"$/);
  const open = await app.start("/engine/getstream", "_idx=1");
  assertEquals(await head(open.playback_url!), [200, "video/mp2t", "none", null, null]);
  assertEquals((await app.get(open.playback_url!, { headers: { range: "bytes=0-9" } })).status, 200);
});

test("the VOD playlist is whole at once, its segments by absolute URLs with _idx for other files", async () => {
  const app = playbackApp([FILM, EXTRA]);
  const larger = FILM.bytes.length > EXTRA.bytes.length ? 0 : 1;
  for (const index of [0, 1]) {
    const started = await app.start("/engine/manifest.m3u8", `_idx=${index}&pid=${index}`);
    const response = await app.get(started.playback_url!);
    assertEquals(response.headers.get("content-type"), "application/vnd.apple.mpegurl");
    const lines = (await response.text()).trim().split("\n");
    assertEquals(lines.slice(0, 2), ["#EXTM3U", "#EXT-X-VERSION:3"]);
    assertEquals([lines.includes("#EXT-X-PLAYLIST-TYPE:VOD"), lines.at(-1)], [true, "#EXT-X-ENDLIST"]);
    const urls = lines.filter((line) => !line.startsWith("#"));
    const query = index === larger ? "" : `?_idx=${index}`;
    assertEquals(urls, urls.map((_, n) => `http://127.0.0.1:6878/engine/c/${INFOHASH}/${n}.ts${query}`));
    const first = new Uint8Array(await (await app.get(urls[0]!)).arrayBuffer());
    assertEquals([first[0], ((first[1]! & 31) << 8) | first[2]!, first[188]], [0x47, 0, 0x47]);
  }
});

test("_idx picks the file; without it the largest playable one plays", async () => {
  const app = playbackApp([{ name: "a.txt", bytes: new Uint8Array(9_000_000) }, FILM, EXTRA]);
  const indexOf = async (more: string) =>
    (await app.json((await app.start("/engine/getstream", more)).stat_url!)).response.selected_file_index;
  const largest = FILM.bytes.length > EXTRA.bytes.length ? 1 : 2;
  assertEquals(await indexOf(""), largest);
  assertEquals(await indexOf("_idx=1"), 1);
  assertEquals(await indexOf("_idx=2"), 2);
  assertEquals(await indexOf(`playlist_selected_indexes=0,${3 - largest}&pid=s`), 3 - largest);
  assertNotEquals(await app.json(`/engine/getstream?infohash=${INFOHASH}&format=json&_idx=3`), null);
});

test("listeners that keep their place by after=N each hear every event, also of a session that ended", async () => {
  const app = playbackApp([FILM]);
  const started = await app.start("/engine/getstream", "use_stop_notifications=1");
  await prebuffered(app, started);
  assertEquals(await app.json(`${started.command_url}?method=stop`), { response: "ok", error: null });
  const hear = async () => {
    const names: string[] = [];
    for (let after = 0;;) {
      const { response, error } = await app.json(`${started.event_url}?after=${after}`);
      if (response === null) return [names.filter((name) => name !== "prebuffering"), error];
      names.push(response.name);
      after = response.id;
    }
  };
  const all = [["playing", "download_stopped"], "unknown playback session id"];
  assertEquals([await hear(), await hear()], [all, all]);
  // A client that knows nothing of places hears the end, too.
  let last: { name?: string } = {};
  for (let answer = await app.json(started.event_url!); answer.response !== null;) {
    last = answer.response;
    answer = await app.json(started.event_url!);
  }
  assertEquals(last, { name: "download_stopped", params: { reason: "stop command" } } as never);
  assertEquals((await app.json(`${started.event_url}?after=x`)).error, "invalid after: the id of an event is expected");
  assertEquals(await app.json(started.event_url!.replace(INFOHASH, "2".repeat(40))), GONE);
  app.clock.advance(30_001);
  assertEquals(await app.json(`${started.event_url}?after=0`), GONE);
});

test("stat with detail=1 shows pieces and peers to programs and to the engine's own page, and to no other", async () => {
  const app = playbackApp([FILM]);
  const { stat_url } = await app.start("/engine/getstream");
  const plain = (await app.json(stat_url!)).response;
  assertEquals([plain.pieces, plain.peer_list, plain.members], [undefined, undefined, undefined]);
  const detailed = (await app.json(`${stat_url}?detail=1`)).response;
  const count = Math.ceil(FILM.bytes.length / 16_384);
  assertEquals(detailed.pieces, { count, cells: "9".repeat(count), under_way: [], readers: [] });
  assertEquals([detailed.peer_list, detailed.members], [[], []]);
  assertEquals(detailed.tracks.map(({ kind, codec }: Record<string, string>) => `${kind} ${codec}`), [
    "video h264",
    "audio aac",
  ]);
  const page = { origin: ALLOWED_PAGE, "sec-fetch-site": "cross-site" };
  const own = await app.get(`/engine/getstream?infohash=${INFOHASH}&format=json`, { headers: page });
  const theirs = (await own.json()).response.stat_url;
  const { response } = await (await app.get(`${theirs}?detail=1`, { headers: page })).json();
  assertEquals([response.pieces, response.peer_list, response.peers], [undefined, undefined, 3]);
});
