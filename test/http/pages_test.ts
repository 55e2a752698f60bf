/** What pages in the user's browser can do with playback: nothing, unless the user allows their origin. */
import { test } from "node:test";
import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { fixture } from "../media/support/files.ts";
import { SentSessions } from "../../src/http/sent-sessions.ts";
import { ALLOWED_PAGE, INFOHASH, playbackApp } from "./playback-app.ts";

const FILM = { name: "film.mp4", bytes: fixture("mp4-front.mp4") };

/** What browsers send for a page of another origin: fetch, form, image, media element, frame, link, and their older versions. */
const FOREIGN: readonly Readonly<Record<string, string>>[] = [
  { origin: "https://evil.example", "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors" },
  { origin: "https://evil.example" },
  { origin: "null", "sec-fetch-site": "cross-site", "sec-fetch-dest": "iframe" },
  { origin: "http://127.0.0.1:8080", "sec-fetch-site": "same-site" },
  { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image" },
  { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "video", range: "bytes=0-" },
  { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" },
  { "sec-fetch-site": "same-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" },
  { referer: "https://evil.example/page", "user-agent": "Mozilla/5.0" },
];
const ALLOWED: readonly Readonly<Record<string, string>>[] = [
  { origin: ALLOWED_PAGE, "sec-fetch-site": "cross-site" },
  { origin: ALLOWED_PAGE },
  { referer: `${ALLOWED_PAGE}/`, "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" },
];

/** An HLS session and its parts, as a program of the user's started it. */
async function userSession(app: ReturnType<typeof playbackApp>) {
  const started = await app.start("/engine/manifest.m3u8", "use_api_events=1");
  const { playback_url = "", stat_url = "", event_url = "", command_url = "" } = started;
  const segment = `/engine/c/${INFOHASH}/0.ts`;
  return { playback_url, stat_url, event_url, command_url, segment, own: app.sessions.list()[0]! };
}

test("foreign pages start, read, see and stop nothing, and all that they ask for is refused alike", async () => {
  const app = playbackApp([FILM]);
  const user = await userSession(app);
  const paths = [
    ...["getstream", "manifest.m3u8", "getfile"].map((name) => `/engine/${name}?infohash=${INFOHASH}`),
    `/engine/getstream?infohash=${"2".repeat(40)}`,
    `/tv/getstream?format=json&infohash=${INFOHASH}&force_session_restart=1`,
    user.playback_url,
    user.segment,
    `/engine/c/${"2".repeat(40)}/0.ts`,
    user.stat_url,
    user.event_url,
    `${user.command_url}?method=stop`,
    "/engine/nothing",
  ];
  for (const headers of FOREIGN) {
    for (const path of paths) {
      for (
        const method of path.includes("getstream") ? ["GET", "HEAD", "POST", "OPTIONS"] : ["GET", "HEAD", "OPTIONS"]
      ) {
        const answer = await app.get(path, { method, headers });
        const about = `${method} ${path} ${JSON.stringify(headers)}`;
        assertEquals([answer.status, answer.headers.get("location")], [403, null], about);
        const readers = [...answer.headers.keys()].filter((name) => name.startsWith("access-control-"));
        assertEquals(readers, [], about);
        assertEquals(answer.headers.get("cross-origin-resource-policy"), "same-origin", about);
        if (method !== "HEAD") assert((await answer.text()).includes("may not play here"), about);
      }
    }
  }
  assertEquals(app.sessions.list(), [user.own]);
  assertEquals((await app.json(user.stat_url)).error, null);
});

test("a foreign page that is a player can read the stream sent to it until it is stopped, but cannot control it", async () => {
  const app = playbackApp([FILM]);
  const user = await userSession(app);
  app.sentSessions.allow(user.own.id);
  const status = async (path: string, headers: Readonly<Record<string, string>>, method = "GET") =>
    (await app.get(path, { method, headers })).status;
  const playlist = await (await app.get(user.playback_url, { headers: FOREIGN[0]! })).text();
  const segment = playlist.split("\n").find((line) => line.startsWith("http"))!;
  assertEquals(new URL(segment).searchParams.get("session"), user.own.id);
  for (const headers of FOREIGN) {
    const read = await app.get(segment, { headers });
    assertEquals([read.status, read.headers.get("access-control-allow-credentials")], [200, null]);
    const named = headers["origin"] ?? headers["referer"]?.replace("/page", "") ?? "null";
    assertEquals(read.headers.get("access-control-allow-origin"), named === "null" ? "*" : named);
    assert(read.headers.get("vary")?.includes("origin"));
    await read.body?.cancel();
    assertEquals(await status(segment, headers, "OPTIONS"), 204);
    const other = "0".repeat(32);
    const closed = [
      user.segment,
      segment.replace(user.own.id, other),
      user.playback_url.replace(user.own.id, other),
      `/engine/getstream?infohash=${INFOHASH}&session=${user.own.id}`,
      `${user.stat_url}?session=${user.own.id}`,
      user.stat_url,
      `${user.command_url}?method=stop`,
      user.playback_url.replace("/m/", "/r/").replace(".m3u8", ""),
    ];
    for (const path of closed) assertEquals(await status(path, headers), 403, path);
  }
  app.sentSessions.forget(user.own.id);
  for (const path of [segment, user.playback_url]) assertEquals(await status(path, FOREIGN[0]!), 403);
  assertEquals(app.sessions.list(), [user.own]);
});

test("SentSessions remembers the newest 64", () => {
  const sent = new SentSessions();
  for (let n = 0; n < 70; n++) sent.allow(String(n));
  assertEquals([sent.has("5"), sent.has("6"), sent.has("69"), sent.has(undefined)], [false, true, true, false]);
});

test("a page of an allowed origin plays in its own sessions and can read the responses", async () => {
  const app = playbackApp([FILM]);
  const user = await userSession(app);
  for (const headers of ALLOWED) {
    const start = await app.get(`/engine/manifest.m3u8?infohash=${INFOHASH}`, { headers });
    assertEquals(start.status, 302);
    const answers = [start];
    const location = start.headers.get("location")!;
    assertNotEquals(location, user.playback_url);
    for (const path of [location, user.segment, "/engine/getstream?infohash=nonsense"]) {
      answers.push(await app.get(path, { headers }));
    }
    assertEquals(answers.map(({ status }) => status), [302, 200, 200, 400]);
    for (const { headers: fields } of answers) {
      assertEquals(fields.get("access-control-allow-origin"), ALLOWED_PAGE);
      assertEquals(fields.get("access-control-allow-credentials"), null);
      assertEquals(fields.get("cross-origin-resource-policy"), "cross-origin");
      assert(fields.get("vary")?.includes("origin"));
    }
    const cmd = location.replace("/m/", "/cmd/").replace(".m3u8", "");
    assertEquals(await (await app.get(`${cmd}?method=stop`, { headers })).json(), { response: "ok", error: null });
  }
  assertEquals(app.sessions.list(), [user.own]);
});

test("a page of an allowed origin neither controls sessions of others nor finds them by their infohash", async () => {
  const app = playbackApp([FILM]);
  const user = await userSession(app);
  const [headers] = ALLOWED;
  for (const path of [`${user.command_url}?method=stop`, user.stat_url, user.event_url]) {
    const { error } = await (await app.get(path, { headers: headers! })).json();
    assertEquals(error, "unknown playback session id", path);
  }
  // Joining by the same pid, or restarting, is for clients of the same owner.
  for (const more of ["pid=tv", "force_session_restart=1", "pid=tv&force_session_restart=1"]) {
    const own = await app.start("/engine/getstream", "pid=tv");
    const answer = await app.get(`/engine/getstream?format=json&infohash=${INFOHASH}&${more}`, { headers: headers! });
    assertNotEquals((await answer.json()).response.playback_session_id, own.playback_session_id);
    assertEquals((await app.json(own.stat_url!)).error, null);
  }
  assertEquals((await app.get(user.segment, { headers: headers! })).status, 404);
  // A page that got a playlist's address, for example from a middleware, can play it but controls nothing.
  assertEquals((await app.get(user.playback_url, { headers: headers! })).status, 200);
  assertEquals((await app.get(user.segment, { headers: headers! })).status, 200);
  const { error } = await (await app.get(`${user.command_url}?method=stop`, { headers: headers! })).json();
  assertEquals(error, "unknown playback session id");
});

test("players, the user's own browsing and the engine's own pages play as ever", async () => {
  const app = playbackApp([FILM]);
  const user = await userSession(app);
  for (
    const headers of [
      {},
      { "user-agent": "VLC/3.0.20 LibVLC/3.0.20", range: "bytes=0-" },
      { "sec-fetch-site": "none", "sec-fetch-mode": "navigate", "user-agent": "Mozilla/5.0" },
      { "sec-fetch-site": "same-origin", "user-agent": "Mozilla/5.0" },
      { origin: "http://127.0.0.1:6878", "user-agent": "Mozilla/5.0" },
    ] as Record<string, string>[]
  ) {
    const start = await app.get(`/engine/manifest.m3u8?infohash=${INFOHASH}`, { headers });
    assertEquals(start.headers.get("location"), user.playback_url, JSON.stringify(headers));
    for (const path of [user.playback_url, user.segment]) {
      const answer = await app.get(path, { headers });
      await answer.body?.cancel();
      assertEquals([answer.status, answer.headers.get("access-control-allow-origin")], [200, null]);
    }
  }
  // A browser that does not say whether a page made the request gets a session separate from the players'.
  const untold = { "user-agent": "Mozilla/5.0" };
  const start = await app.get(`/engine/manifest.m3u8?infohash=${INFOHASH}`, { headers: untold });
  assertNotEquals(start.headers.get("location"), user.playback_url);
  assertEquals((await app.get(start.headers.get("location")!, { headers: untold })).status, 200);
  assertEquals((await app.get(user.segment, { headers: untold })).status, 200);
});

test("a preflight is granted only to allowed origins", async () => {
  const app = playbackApp([FILM]);
  const ask = { "access-control-request-method": "GET", "access-control-request-headers": "range" };
  for (
    const path of [
      "getstream",
      ...["r", "f", "m", "c", "stat", "cmd", "event"].map((way) => `${way}/${INFOHASH}/x`),
    ]
  ) {
    const granted = await app.get(`/engine/${path}`, {
      method: "OPTIONS",
      headers: { ...ask, origin: ALLOWED_PAGE, "access-control-request-private-network": "true" },
    });
    assertEquals([granted.status, granted.headers.get("access-control-allow-origin")], [204, ALLOWED_PAGE]);
    assertEquals(granted.headers.get("access-control-allow-private-network"), "true");
    assert(granted.headers.get("access-control-allow-headers")!.split(", ").includes("range"));
  }
  assertEquals(app.sessions.list(), []);
});
