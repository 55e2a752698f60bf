/** Starts: how a stream is named, which session a caller gets, and what the responses contain. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { fixture } from "../media/support/files.ts";
import { INFOHASH, playbackApp } from "./playback-app.ts";

const FILM = { name: "film.ts", bytes: fixture("ts-188.ts") };
const EXTRA = { name: "extra.mkv", bytes: fixture("mkv-no-cues.mkv").subarray(0) };
const GONE = { response: null, error: "unknown playback session id" };

test("a session segment is 32 hex characters, new each time, and controls only its own session", async () => {
  const app = playbackApp([FILM]);
  const ids = new Set<string>();
  const started = [];
  for (let i = 0; i < 20; i++) started.push(await app.start("/engine/getstream", `pid=p${i}`));
  for (const one of started) {
    assertMatch(one.playback_session_id!, /^[0-9a-f]{32}$/);
    assert(one.command_url!.endsWith(`/engine/cmd/${INFOHASH}/${one.playback_session_id}`));
    ids.add(one.playback_session_id!);
  }
  assertEquals(ids.size, 20);
  // Each hexadecimal digit comes about as often: 640 digits of 16 kinds.
  const digits = [...ids].join("");
  for (const digit of "0123456789abcdef") assert(digits.split(digit).length - 1 > 10, `${digit} is rare`);
  const [one, two] = [started[0]!, started[1]!];
  assertEquals(await app.json(`${one.command_url}?method=stop`), { response: "ok", error: null });
  assertEquals(await app.json(one.stat_url!), GONE);
  assertEquals((await app.json(two.stat_url!)).response.playback_session_id, two.playback_session_id);
  // The segment fits its infohash only, and a wrong one controls nothing.
  const other = two.command_url!.replace(INFOHASH, "2".repeat(40));
  assertEquals(await app.json(`${other}?method=stop`), GONE);
  assertEquals(await app.json(`/engine/cmd/${INFOHASH}/${"0".repeat(32)}?method=stop`), GONE);
  assertEquals((await app.json(two.stat_url!)).error, null);
});

test("the start redirects with 302 and an absolute Location", async () => {
  const app = playbackApp([FILM]);
  for (
    const [path, pattern] of [["getstream", /\/engine\/r\//], ["manifest.m3u8", /\/engine\/m\/.*\.m3u8$/]] as const
  ) {
    const response = await app.get(`/engine/${path}?infohash=${INFOHASH}`);
    assertEquals([response.status, response.headers.get("access-control-allow-origin")], [302, null]);
    const location = response.headers.get("location")!;
    assertMatch(location, pattern);
    assertMatch(location, new RegExp(`^http://127\\.0\\.0\\.1:6878/engine/[rm]/${INFOHASH}/[0-9a-f]{32}(\\.m3u8)?$`));
    const started = await app.start(`/engine/${path}`);
    assertEquals(started.playback_url, location);
  }
});

test("the key of a session is content, file, output and pid, else the client's address", async () => {
  const app = playbackApp([FILM, EXTRA]);
  const idOf = async (path: string, more: string, host?: string) => {
    const url = `/engine/${path}?infohash=${INFOHASH}&format=json&${more}`;
    return (await (await app.get(url, {}, host)).json()).response.playback_session_id;
  };
  const mine = await idOf("getstream", "pid=a");
  assertEquals(await idOf("getstream", "pid=a", "127.0.0.9"), mine);
  assertEquals(await idOf("getstream", "sid=a"), mine);
  const others = [
    await idOf("getstream", "pid=b"),
    await idOf("manifest.m3u8", "pid=a"),
    await idOf("getstream", "pid=a&_idx=1"),
    await idOf("getstream", ""),
    await idOf("getstream", "", "127.0.0.9"),
  ];
  assertEquals(new Set([mine, ...others]).size, 6);
  assertEquals(await idOf("getstream", ""), others[3]);
});

test("selectors are taken in order, the first present wins even if a later one is valid", async () => {
  const app = playbackApp([FILM]);
  const failure = async (query: string) => (await app.json(`/engine/getstream?format=json&${query}`)).error;
  assertEquals(await failure(""), "missing stream selector");
  assertMatch(await failure(`content_id=bad&infohash=${INFOHASH}`), /content_id/);
  assertMatch(await failure(`id=bad&infohash=${INFOHASH}`), /content_id|id/);
  assertMatch(await failure("infohash=bad&url=http://x/"), /infohash/);
  assertEquals(await failure(`infohash=${INFOHASH}&magnet=nonsense`), null);
});

test("failures are a string under error with JSON, a status and the same text without", async () => {
  const app = playbackApp([FILM, { name: "vp9.webm", bytes: fixture("webm-vp9-opus.webm") }]);
  const cases = [
    ["", 400],
    ["infohash=xyz", 400],
    [`infohash=${INFOHASH}&_idx=9`, 404],
    [`infohash=${INFOHASH}&_idx=1`, 415],
    [`infohash=${INFOHASH}&_idx=x`, 400],
  ] as const;
  for (const [query, status] of cases) {
    const plain = await app.get(`/engine/getstream?${query}`);
    assertEquals([plain.status, plain.headers.get("content-type")], [status, "text/plain; charset=utf-8"], query);
    const answer = await app.get(`/engine/getstream?format=json&${query}`);
    assertEquals(answer.status, 200);
    assertEquals(await answer.json(), { response: null, error: (await plain.text()).trim() });
    assertMatch(answer.headers.get("millrace-error") ?? "", /^[a-z_]+$/);
  }
  app.sessions.close();
  assertEquals((await app.get(`/engine/getstream?infohash=${INFOHASH}`)).status, 503);
});

test("a start that fails because the engine ends is no warning in its log", async () => {
  const { sessions, logged, get } = playbackApp([FILM]);
  sessions.close();
  const { status } = await get(`/engine/getstream?infohash=${INFOHASH}`);
  assertEquals([status, logged], [503, ["debug a stream did not start"]]);
});

test("HEAD on a start does not change the running session", async () => {
  const app = playbackApp([FILM]);
  const path = `/engine/getstream?infohash=${INFOHASH}`;
  const running = await app.start("/engine/getstream", "client_session_id=5");
  app.clock.advance(30_000);
  const more = "client_session_id=6&force_session_restart=1&stop_prev_read_thread=1";
  const head = await app.get(`${path}&${more}`, { method: "HEAD" });
  assertEquals([head.status, head.headers.get("location")], [302, running.playback_url]);
  const [session, ...others] = app.sessions.list();
  assertEquals([session?.id, session?.clientSessionId, session?.idleMs, others], [
    running.playback_session_id,
    5,
    30_000,
    [],
  ]);
  assertEquals(session?.kind === "file" && session.singleReader, false);
});

test("HEAD on a start ends its session when the container can't be played", async () => {
  const app = playbackApp([{ name: "film.mp4", bytes: new Uint8Array(100_000) }]);
  const head = await app.get(`/engine/getstream?infohash=${INFOHASH}`, { method: "HEAD" });
  assertEquals([head.status, app.sessions.list(), app.swarms.leases], [415, [], 0]);
});

test("the start response has exactly the fields of section 2.2", async () => {
  const app = playbackApp([FILM]);
  const started = await app.start("/engine/getstream", "client_session_id=5");
  const id = started.playback_session_id!;
  assertEquals(started as unknown, {
    playback_url: `http://127.0.0.1:6878/engine/r/${INFOHASH}/${id}`,
    stat_url: `http://127.0.0.1:6878/engine/stat/${INFOHASH}/${id}`,
    command_url: `http://127.0.0.1:6878/engine/cmd/${INFOHASH}/${id}`,
    infohash: INFOHASH,
    playback_session_id: id,
    is_live: 0,
    is_encrypted: 0,
    client_session_id: 5,
  });
});
