/** Whatever clients send, the playback routes answer: no exception, no status of an internal error, no endless body. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { hostName } from "../../src/http/address.ts";
import { readOwnInput } from "./read-input.ts";
import { ApiError } from "../../src/http/api/codes.ts";
import { fixture, seeded } from "../media/support/files.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { INFOHASH, playbackApp } from "./playback-app.ts";

const NAMES = [
  ...["content_id", "id", "infohash", "url", "magnet", "format", "pid", "sid", "_idx", "preferred_audio_language"],
  ...["use_api_stop", "use_api_events", "force_session_restart", "client_session_id", "playlist_selected_indexes"],
  ...["next_file_indexes", "transcode_audio", "transcode_mp3", "transcode_ac3", "stop_prev_read_thread", "method"],
  ...["pos", "timeout", "stream_index", "skip_player_activity", "quality", "start_from"],
];
const VALUES = [
  ...["", "0", "1", "-1", "1e9", "99999999999999999999", "NaN", "true", "json", "redirect", "stop", "liveseek"],
  ...["set_stream", "set_player_activity_timeout", INFOHASH, INFOHASH.slice(1), "../../etc/passwd", "%00", "\u0000"],
  ...["magnet:?xt=urn:btih:" + INFOHASH, "magnet:?xt=urn:btih:x", "http://127.0.0.1:1/", "file:///etc/passwd", "de,en"],
  ...["1,2,3", ",,,", "\r\nx: y", "ÿþ", "😀".repeat(50), "a".repeat(20_000)],
];
const RANGES = ["bytes=0-", "bytes=-1", "bytes=5-1", "bytes=99999999-", "bytes=0-0,2-3", "lines=1-2", "bytes=abc"];

test("the playback routes answer any path, query, method and header without an internal error", async () => {
  const app = playbackApp([{ name: "film.ts", bytes: fixture("ts-188.ts") }, {
    name: "b.mkv",
    bytes: fixture("mkv-cues.mkv"),
  }]);
  const random = seeded(31);
  const below = (n: number) => Math.floor(random() * n);
  const any = <T>(list: readonly T[]): T => list[below(list.length)]!;
  const ids = [(await app.start("/engine/getstream")).playback_session_id!];
  ids.push((await app.start("/engine/manifest.m3u8", "pid=h")).playback_session_id!);
  const statuses = new Set<number>();
  for (let round = 0; round < 1500; round++) {
    const id = random() < 0.6 ? any(ids) : any(VALUES);
    const hash = random() < 0.8 ? INFOHASH : any(VALUES);
    const path = any([
      "getstream",
      "manifest.m3u8",
      "getfile",
      `r/${hash}/${encodeURIComponent(id)}`,
      `m/${hash}/${encodeURIComponent(id)}.m3u8`,
      `c/${hash}/${below(20) - 1}.ts`,
      `f/${hash}/${encodeURIComponent(id)}/x`,
      `stat/${hash}/${encodeURIComponent(id)}`,
      `cmd/${hash}/${encodeURIComponent(id)}`,
    ]);
    const query = new URLSearchParams();
    if (random() < 0.7) query.set("infohash", INFOHASH);
    for (let i = below(5); i > 0; i--) query.append(any(NAMES), any(VALUES));
    const headers: Record<string, string> = {};
    if (random() < 0.4) headers.range = any(RANGES);
    if (random() < 0.1) headers["if-range"] = any(['"x"', 'W/"y"', "Wed, 21 Oct 2015 07:28:00 GMT"]);
    if (random() < 0.1) headers["if-none-match"] = any(["*", '"a", "b"', "nonsense"]);
    const method = any(["GET", "GET", "GET", "HEAD", "POST"]);
    const body = method === "POST" ? Uint8Array.from({ length: below(300) }, () => below(256)) : null;
    const url = `/${any(["engine", "tv"])}/${path}?${query}`;
    const response = await app.get(url, { method, headers, body });
    statuses.add(response.status);
    assert(response.status < 500 || response.status === 502, `${method} ${url}: ${response.status}`);
    let bytes = 0;
    for await (const chunk of response.body ?? []) if ((bytes += chunk.length) > 2_000_000) break;
    assert(bytes <= 2_000_000, url);
    if (/\/stat\/|\/cmd\//.test(url) && method === "GET") assertEquals(response.status < 405, true, url);
  }
  for (const status of [200, 302, 400, 404, 206]) assert(statuses.has(status), `${status} never came`);
});

test("hostName() survives any header and answers names without ports, paths and brackets", () => {
  const random = seeded(8);
  const parts = [
    "a",
    "[",
    "]",
    ":",
    "::1",
    "80",
    "/",
    "@",
    " ",
    "\t",
    ".",
    "localhost",
    "127.0.0.1",
    "%",
    "x".repeat(300),
  ];
  for (let round = 0; round < 20_000; round++) {
    const header = Array.from({ length: Math.floor(random() * 7) }, () => parts[Math.floor(random() * parts.length)])
      .join("");
    const name = hostName(header);
    assert(name === null || (name !== "" && !/[[\]/@\s]/.test(name)), `${header}: ${name}`);
  }
});

test("readInput() answers or refuses any body and content type", async () => {
  const random = seeded(77);
  const boundary = "----b";
  const form = (name: string, rest: string) =>
    `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${rest}\r\n\r\nv\r\n`;
  const whole = new TextEncoder().encode(
    `${form("a", "")}${form("file", '; filename="x.torrent"')}--${boundary}--\r\n`,
  );
  const types = [
    `multipart/form-data; boundary=${boundary}`,
    "multipart/form-data",
    "multipart/form-data; boundary=",
    "application/x-www-form-urlencoded",
    "text/plain",
    ";;;",
  ];
  let accepted = 0;
  for (let round = 0; round < 1500; round++) {
    const body = whole.slice(0, random() < 0.5 ? whole.length : Math.floor(random() * whole.length));
    for (let i = Math.floor(random() * 4); i > 0 && body.length > 0; i--) {
      body[Math.floor(random() * body.length)] = Math.floor(random() * 256);
    }
    const headers = { "content-type": types[Math.floor(random() * types.length)]! };
    const request = new Request("http://h/server/api?method=x&a=%ff&a=b&=c", { method: "POST", headers, body });
    try {
      const input = await readOwnInput(request, new FakeClock());
      assert(input.texts("a").length >= 1);
      assertEquals(input.texts("method")[0], "x");
      accepted++;
    } catch (error) {
      assert(error instanceof ApiError, String(error));
    }
  }
  assert(accepted > 200, String(accepted));
});
