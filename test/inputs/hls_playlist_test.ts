import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { HlsFollower } from "../../src/inputs/hls-follow.ts";
import {
  chooseVariant,
  type MasterList,
  MAX_CHOICES,
  MAX_PLAYLIST_BYTES,
  MAX_PLAYLIST_LINES,
  type MediaList,
  parseHls,
} from "../../src/inputs/hls-playlist.ts";
import { seededBelow } from "../support/random.ts";

const BASE = "https://h/live/list.m3u8?token=1";

function media(text: string): MediaList {
  const list = parseHls(text, BASE);
  assert(list.kind === "media");
  return list;
}

test("parseHls() reads a media playlist: numbers, discontinuities, ranges, the end", () => {
  const list = media(
    "\ufeff#EXTM3U\r\n#EXT-X-VERSION:4\r\n#EXT-X-TARGETDURATION:4\r\n#EXT-X-MEDIA-SEQUENCE:7\r\n#EXTINF:4.004,\r\na.ts\r\n" +
      "#EXT-X-DISCONTINUITY\r\n#EXTINF:3,title, with a comma\r\n#EXT-X-BYTERANGE:1000@50\r\n/b.ts\r\n" +
      "#EXTINF:3\r\n#EXT-X-BYTERANGE:10\r\n/b.ts\r\n#EXT-X-ENDLIST\r\n",
  );
  assertEquals([list.targetDurationS, list.firstSequence, list.hasEnded], [4, 7, true]);
  assertEquals(list.segments, [
    { url: "https://h/live/a.ts", durationS: 4.004, sequence: 7, isDiscontinuity: false, range: null, unfit: null },
    {
      url: "https://h/b.ts",
      durationS: 3,
      sequence: 8,
      isDiscontinuity: true,
      range: { offset: 50, length: 1000 },
      unfit: null,
    },
    {
      url: "https://h/b.ts",
      durationS: 3,
      sequence: 9,
      isDiscontinuity: false,
      range: { offset: 1050, length: 10 },
      unfit: null,
    },
  ]);
});

test("parseHls() reads long playlists, and refuses more lines or variants than any playlist needs", () => {
  const head = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n";
  const most = (MAX_PLAYLIST_LINES - 2) / 2;
  const longest = head + "#EXTINF:4,\na\n".repeat(most);
  assert(longest.length < MAX_PLAYLIST_BYTES);
  assertEquals(media(longest).segments.length, most);
  const choices = (count: number) => '#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"\na\n'.repeat(count);
  const list = parseHls(`#EXTM3U\n${choices(MAX_CHOICES)}`, BASE);
  assertEquals(list.kind === "master" && list.variants.length, MAX_CHOICES);
  for (
    const [text, message] of [
      [`${longest}#EXT-X-ENDLIST`, /more than 220000 lines/],
      [`#EXTM3U\n${choices(MAX_CHOICES + 1)}`, /more than 512 choices/],
      [`#EXTM3U\n${'#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a"\n'.repeat(500)}${choices(13)}`, /more than 512 choices/],
      [`${head}#EXT-X-KEY:${"IV=0,".repeat(2000)}METHOD=NONE\n#EXTINF:4,\na\n`, /more than 8192 characters/],
    ] as const
  ) {
    const error = assertThrows(() => parseHls(text, BASE), MillraceError);
    assertEquals(error.code, "bad_media");
    assertMatch(error.message, message);
  }
});

// Comparing each with each, which the parser does, would take minutes.
test("parseHls() passes over thousands of tags that are of no use here", () => {
  const unit = '#EXT-X-DATERANGE:ID="a",CLASS="c",START-DATE="2020-01-01T00:00:00Z",DURATION=9\n#EXTINF:4,\na\n';
  assertEquals(media("#EXTM3U\n#EXT-X-TARGETDURATION:4\n" + unit.repeat(20_000)).segments.length, 20_000);
  const data = Array.from({ length: 40_000 }, (_, i) => `#EXT-X-SESSION-DATA:DATA-ID="${i}"\n`).join("");
  assertEquals(parseHls(`#EXTM3U\n${data}#EXT-X-STREAM-INF:BANDWIDTH=9\na\n`, BASE).kind, "master");
});

test("parseHls() says which segments cannot be sent", () => {
  const head = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n";
  const table: [string, string | null][] = [
    ["#EXTINF:4,\na.ts\n", null],
    ["#EXT-X-KEY:METHOD=NONE\n#EXTINF:4,\na.ts\n", null],
    [
      '#EXT-X-KEY:KEYFORMAT="x,METHOD=NONE", METHOD=AES-128 ,URI="k,",IV=0x1\n#EXTINF:4,\na.ts\n',
      "it is encrypted (AES-128)",
    ],
    ['#EXT-X-KEY:METHOD=AES-128,URI="k"\n#EXTINF:4,\na.ts\n', "it is encrypted (AES-128)"],
    ['#EXT-X-MAP:URI="init.mp4"\n#EXTINF:4,\na.m4s\n', "it is fragmented MP4, not MPEG TS"],
    ["#EXTINF:4,\nfile:///etc/passwd\n", "its address is no http or https URL"],
  ];
  for (const [text, unfit] of table) assertEquals(media(head + text).segments[0]!.unfit, unfit, text);
});

test("chooseVariant() takes the most bits a second of those with their own sound", () => {
  const list = parseHls(
    '#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="x",URI="sound.m3u8"\n' +
      '#EXT-X-STREAM-INF:BANDWIDTH=900,AUDIO="a"\nbest.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=500\nwhole.m3u8\n' +
      "#EXT-X-STREAM-INF:BANDWIDTH=500\nother.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=100\nlow.m3u8\n",
    BASE,
  ) as MasterList;
  assertEquals(list.variants.map(({ hasSeparateAudio }) => hasSeparateAudio), [true, false, false, false]);
  assertEquals(chooseVariant(list)!.url, "https://h/live/whole.m3u8");
  const apart = { ...list, variants: list.variants.slice(0, 1) };
  assertEquals(chooseVariant(apart)!.url, "https://h/live/best.m3u8");
  assertEquals(chooseVariant({ kind: "master", variants: [] }), null);
});

test("parseHls() rejects other text, and survives damage of every kind", () => {
  for (const text of ["", "<html>", "#EXTM3", "#EXTINF:4,\na.ts"]) {
    assertThrows(() => parseHls(text, BASE), Error, "HLS");
  }
  const whole =
    "#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:7\n#EXT-X-DISCONTINUITY-SEQUENCE:2\n" +
    '#EXT-X-KEY:METHOD=AES-128,URI="k",IV=0x12\n#EXT-X-MAP:URI="i.mp4",BYTERANGE="10@0"\n#EXTINF:4.0,t\n#EXT-X-BYTERANGE:9@1\n' +
    'a.ts\n#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00Z\n#EXT-X-DATERANGE:ID="d",START-DATE="2026-01-01"\n#EXTINF:3,\nb.ts\n' +
    '#EXT-X-STREAM-INF:BANDWIDTH=1,RESOLUTION=1x1,AUDIO="g"\nv.m3u8\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="g",NAME="n"\n#EXT-X-ENDLIST\n';
  const lines = whole.split("\n");
  const random = seededBelow(1);
  const started = performance.now();
  for (let round = 0; round < 4000; round++) {
    const mixed = lines.filter(() => random(3) > 0);
    for (let k = random(4); k > 0; k--) mixed.splice(random(mixed.length + 1), 0, lines[random(lines.length)]!);
    let text = mixed.join("\n");
    for (let k = random(6); k > 0; k--) {
      const at = random(text.length + 1);
      text = text.slice(0, at) + String.fromCharCode(random(4) === 0 ? random(0x2000) : random(96) + 32) +
        text.slice(at + random(3));
    }
    try {
      const list = parseHls(`#EXTM3U\n${text}`, BASE);
      if (list.kind === "master") {
        for (const { url, bandwidth } of list.variants) assert(/^https?:/.test(url) && bandwidth >= 0);
      } else {
        assert(list.targetDurationS >= 1 && Number.isSafeInteger(list.firstSequence) && list.firstSequence >= 0);
        for (const { url, durationS, range } of list.segments) {
          assert(/^https?:/.test(url) && durationS >= 0 && durationS <= 600);
          assert(range === null || (Number.isSafeInteger(range.offset) && Number.isSafeInteger(range.length)));
        }
      }
    } catch (error) {
      assert((error as Error).message.startsWith("the HLS playlist cannot be read"), String((error as Error).stack));
    }
  }
  assert(performance.now() - started < 20_000);
});

/** A playlist of segments [first, end). */
function list(first: number, end: number, hasEnded = false): MediaList {
  const segments = Array.from({ length: end - first }, (_, i) => ({
    url: `https://h/${first + i}.ts`,
    durationS: 4,
    sequence: first + i,
    isDiscontinuity: false,
    range: null,
    unfit: null,
  }));
  return { kind: "media", targetDurationS: 4, firstSequence: first, hasEnded, segments };
}

function taken(follower: HlsFollower): number[] {
  const numbers: number[] = [];
  for (let segment = follower.next(); segment !== null; segment = follower.next()) numbers.push(segment.sequence);
  return numbers;
}

test("HlsFollower joins a live playlist three segments before its end, a recording at its beginning", () => {
  const live = new HlsFollower();
  assertEquals(live.update(list(10, 20), 0), { lost: null, atMs: 0, reloadMs: 4000, hasEnded: false });
  assertEquals(taken(live), [17, 18, 19]);
  const recording = new HlsFollower();
  assertEquals(recording.update(list(10, 14, true), 0).hasEnded, true);
  assertEquals(taken(recording), [10, 11, 12, 13]);
});

test("HlsFollower takes each segment once, asks sooner when nothing is new, and reports missed segments", () => {
  const follower = new HlsFollower();
  follower.update(list(10, 20), 0);
  taken(follower);
  assertEquals(follower.update(list(10, 20), 4000).reloadMs, 2000);
  assertEquals(taken(follower), []);
  follower.update(list(11, 21), 6000);
  assertEquals(taken(follower), [20]);
  const { lost } = follower.update(list(25, 30), 10_000);
  assertEquals(lost, "4 segments were gone before they were read");
  assertEquals(taken(follower), [25, 26, 27, 28, 29]);
});

test("HlsFollower is not led astray by an old copy, and follows a server that began again", () => {
  const follower = new HlsFollower();
  follower.update(list(100, 110), 0);
  taken(follower);
  assertEquals(follower.update(list(95, 105), 4000).lost, null);
  assertEquals(taken(follower), []);
  follower.update(list(101, 111), 6000);
  assertEquals(taken(follower), [110]);
  for (const atMs of [10_000, 12_000]) assertEquals(follower.update(list(0, 3), atMs).lost, null);
  assertEquals(follower.update(list(0, 4), 14_000).lost, "the playlist began again");
  assertEquals(taken(follower), [1, 2, 3]);
});

test("HlsFollower reports when no segment came for three target durations", () => {
  const follower = new HlsFollower();
  follower.update(list(0, 3), 0);
  taken(follower);
  assertEquals(follower.update(list(0, 3), 10_000).lost, null);
  assertEquals(follower.isStale(12_001), true);
  assertEquals(follower.update(list(0, 3), 12_001).lost, "no new segment for 12 s");
  follower.update(list(0, 4), 13_000);
  assertEquals(follower.isStale(14_000), false);
  assertEquals(taken(follower), [3]);
});
