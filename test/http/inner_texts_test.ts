/** Subtitles inside a film as renditions of its HLS. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { concatBytes } from "../../src/bytes/hex.ts";
import { blockGroup, cluster, cues, element, matroska, simpleBlock, trackEntry } from "../media/mkv-support.ts";
import { INFOHASH, playbackApp } from "./playback-app.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
/** Packed by an algorithm that nobody uses. */
const ENCODED = element(0x6d80, [element(0x6240, [element(0x5034, [element(0x4254, 1)])])]);

/** A track of texts: the builder's tracks of sound with another type. */
function textTrack(number: number, codecId: string, more: readonly Uint8Array[]): Uint8Array {
  return element(0xae, [element(0xd7, number), element(0x83, 17), element(0x86, codecId), ...more]);
}

function text(track: number, time: number, durationMs: number, words: string): Uint8Array {
  const head = new Uint8Array([0x80 | track, time >> 8, time & 255, 0]);
  return element(0xa0, [element(0xa1, [concatBytes([head, bytes(words)])]), element(0x9b, durationMs)]);
}

/** A film of 12 s with three tracks of text and one that cannot be read. */
function film(): Uint8Array {
  const clusters = [0, 1, 2, 3, 4, 5].map((n) =>
    cluster(n * 2000, [
      ...Array.from({ length: 50 }, (_, i) =>
        i === 0 ? simpleBlock(1, 0, 0x80, new Uint8Array(500)) : blockGroup(1, i * 40, -40, new Uint8Array(200))),
      text(2, 500, 1500, `plain ${n}`),
      ...n === 1 ? [text(3, 600, 1000, "0,0,Default,,0,0,0,,{\\an8}{\\i1}sign{\\i0}")] : [],
      text(4, 700, 1000, "packed"),
    ])
  );
  const starts = clusters.map((_, n) => clusters.slice(0, n).reduce((sum, { length }) => sum + length, 0));
  return matroska(clusters, {
    durationMs: 12_000,
    tracks: [
      trackEntry(1, "video", "V_MPEG2", [element(0x23e383, 40_000_000)]),
      textTrack(2, "S_TEXT/UTF8", [element(0x22b59c, "ger"), element(0x536e, "Full")]),
      textTrack(3, "S_TEXT/ASS", [element(0x22b59c, "ger"), element(0x55aa, 1)]),
      textTrack(4, "S_TEXT/UTF8", [ENCODED]),
    ],
    after: (base) => [cues(base, starts.map((start, n) => [n * 2000, start, null] as const))],
  });
}

test("subtitles=1 offers the texts inside a film, forced ones first, segment by segment on the clock of the segments", async () => {
  const app = playbackApp([{ name: "film.mkv", bytes: film() }]);
  const { playback_url } = await app.start("/engine/manifest.m3u8", "subtitles=1");
  const master = await (await app.get(playback_url!)).text();
  const renditions = [
    ...master.matchAll(/^#EXT-X-MEDIA:TYPE=SUBTITLES.*NAME="([^"]+)",LANGUAGE="([^"]+)".*FORCED=(\w+),URI="([^"]+)"/gm),
  ];
  assertEquals(renditions.map(([, ...facts]) => facts.slice(0, 3)), [["German, forced", "de", "YES"], [
    "German, Full",
    "de",
    "NO",
  ]]);
  const urlsOf = async (url: string) =>
    (await (await app.get(url)).text()).split("\n").filter((line) => line.startsWith("http"));
  const [pictures] = await Promise.all([urlsOf(playback_url!.replace(/\?.*/, ""))]);
  const [forced, full] = await Promise.all(renditions.map(([, , , , url]) => urlsOf(url!)));
  assertEquals([forced!.length, full!.length], [pictures!.length, pictures!.length]);
  const texts = async (urls: readonly string[]) => {
    const all = [];
    for (const url of urls) {
      const response = await app.get(url);
      assertEquals([response.status, response.headers.get("content-type")], [200, "text/vtt; charset=utf-8"]);
      const whole = await response.text();
      assertMatch(whole, /^WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00\.000\n\n/);
      // Players that join segments take the next header for text otherwise.
      assert(whole.endsWith("\n\n") || !whole.includes("-->"), whole);
      all.push(whole);
    }
    return all.join("");
  };
  // MPEG TS begins at 1.4 s, and MPEG-2 is decoded a picture before it is shown.
  assertMatch(await texts(forced!), /00:00:04\.040 --> 00:00:05\.040 line:0\n<i>sign<\/i>\n/);
  const plain = await texts(full!);
  assertEquals(plain.match(/plain \d/g), [0, 1, 2, 3, 4, 5].map((n) => `plain ${n}`));
  assertMatch(plain, /00:00:01\.940 --> 00:00:03\.440\nplain 0\n/);
  assertEquals((await app.get(full![0]!.replace("t0-0", "t9-0"))).status, 404);
  assertEquals((await app.get(full![0]!.replace("t0-0", "t0-99"))).status, 404);
  assertEquals((await app.get(`${playback_url!.replace(/\?.*/, "")}?subtitle=t9`)).status, 404);
  assert(playback_url!.includes(INFOHASH));
});

test("a film without texts that can be read lists none", async () => {
  const clusters = [cluster(0, [simpleBlock(1, 0, 0x80, new Uint8Array(500)), text(2, 0, 1000, "packed")])];
  const tracks = [trackEntry(1, "video", "V_MPEG2"), textTrack(2, "S_TEXT/UTF8", [ENCODED])];
  const app = playbackApp([{ name: "film.mkv", bytes: matroska(clusters, { tracks, durationMs: 1000 }) }]);
  const { playback_url } = await app.start("/engine/manifest.m3u8", "subtitles=1");
  assert(!(await (await app.get(playback_url!)).text()).includes("TYPE=SUBTITLES"));
});
