/** HLS of fragmented MP4: what the playlist names, and how its segments are served. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { fixture } from "../media/support/files.ts";
import { INFOHASH, playbackApp } from "./playback-app.ts";

const WEBM = { name: "film.webm", bytes: fixture("webm-vp9-opus.webm") };
const FILM = { name: "film.mkv", bytes: fixture("mkv-cues.mkv") };

type App = ReturnType<typeof playbackApp>;

/** The lines of the playlist of a start, and its addresses. */
async function playlistOf(app: App, more = "") {
  const { playback_url } = await app.start("/engine/manifest.m3u8", more);
  const text = await (await app.get(playback_url!)).text();
  const init = /#EXT-X-MAP:URI="([^"]+)"/.exec(text)?.[1] ?? null;
  return { text, init, segments: text.split("\n").filter((line) => line.startsWith("http")) };
}

const bytesOf = async (app: App, url: string, init: RequestInit = {}) => {
  const response = await app.get(url, init);
  return { response, bytes: new Uint8Array(await response.arrayBuffer()) };
};

test("a film that MPEG TS cannot carry is HLS of fragmented MP4, with ranges and validators", async () => {
  const app = playbackApp([WEBM]);
  const { text, init, segments } = await playlistOf(app);
  const base = `http://127.0.0.1:6878/engine/c/${INFOHASH}`;
  assertEquals([init, segments[0]], [`${base}/init.mp4`, `${base}/0.m4s`]);
  assert(text.startsWith("#EXTM3U\n#EXT-X-VERSION:7\n"), text);
  for (const url of [init!, ...segments]) {
    const { response, bytes } = await bytesOf(app, url);
    assertEquals([response.status, response.headers.get("content-type")], [200, "video/mp4"]);
    assertEquals(response.headers.get("content-length"), String(bytes.length));
    const tag = response.headers.get("etag")!;
    assertEquals((await app.get(url, { headers: { "if-none-match": tag } })).status, 304);
    const part = await bytesOf(app, url, { headers: { range: "bytes=100-299", "if-range": tag } });
    assertEquals([part.response.status, part.response.headers.get("content-range")], [
      206,
      `bytes 100-299/${bytes.length}`,
    ]);
    assertEquals(part.bytes, bytes.subarray(100, 300));
    const end = await bytesOf(app, url, { headers: { range: "bytes=-50" } });
    assertEquals(end.bytes, bytes.subarray(-50));
  }
  assertEquals((await app.get(`${base}/0.ts`)).status, 404);
  assertEquals((await app.get(`${base}/init.m4s`)).status, 404);
  assertEquals((await app.get(`${base}/${segments.length}.m4s`)).status, 404);
});

test("playlist_output_format_vod chooses the format of a film that both carry", async () => {
  const app = playbackApp([FILM]);
  const usual = await playlistOf(app);
  assertEquals([usual.init, usual.segments[0]], [null, `http://127.0.0.1:6878/engine/c/${INFOHASH}/0.ts`]);
  const { init, segments } = await playlistOf(app, "playlist_output_format_vod=fmp4");
  const suffix = "?playlist_output_format_vod=fmp4";
  assertEquals([init, segments[0]], [
    `http://127.0.0.1:6878/engine/c/${INFOHASH}/init.mp4${suffix}`,
    `http://127.0.0.1:6878/engine/c/${INFOHASH}/0.m4s${suffix}`,
  ]);
  // Both go on beside each other.
  const [ts, mp4] = [await bytesOf(app, usual.segments[0]!), await bytesOf(app, segments[0]!)];
  assertEquals([ts.bytes[0], new TextDecoder().decode(mp4.bytes.subarray(4, 8))], [0x47, "moof"]);
  assertEquals((await playlistOf(app, "playlist_output_format_vod=http")).text, usual.text);
});

test("getstream refuses a film that only HLS carries, and names the addresses that play", async () => {
  const app = playbackApp([WEBM, FILM]);
  const refused = await app.get(`/engine/getstream?infohash=${INFOHASH}&_idx=0&pid=secret`);
  const text = await refused.text();
  assertEquals(refused.status, 415);
  assertMatch(text, /MPEG TS cannot carry vp9/);
  const query = `infohash=${INFOHASH}&_idx=0`;
  for (const name of ["manifest.m3u8", "getfile"]) {
    const address = `http://127.0.0.1:6878/engine/${name}?${query}`;
    assert(text.includes(address), text);
    assertEquals((await app.get(address)).status, 302);
  }
  assert(!text.includes("secret"), text);
  // As MPEG TS segments it can't be had, either.
  const asTs = await app.get(`/engine/manifest.m3u8?${query}&playlist_output_format_vod=ts`);
  assertEquals(asTs.status, 415);
  assertEquals((await app.get(`/engine/getstream?infohash=${INFOHASH}&_idx=1`)).status, 302);
});
