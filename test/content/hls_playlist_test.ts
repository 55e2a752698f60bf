import { toHex } from "../../src/bytes/hex.ts";
import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { MAX_CHOICES, MAX_PLAYLIST_LINES } from "../../src/content/hls-lines.ts";
import {
  chooseVariant,
  isHlsPlaylist,
  type MasterList,
  MAX_PLAYLIST_BYTES,
  type MediaList,
  parseHls,
  parseLongHls,
  readHlsHead,
} from "../../src/content/hls-playlist.ts";
import { seededBelow } from "../support/random.ts";
import { cpuMs } from "../support/cpu-time.ts";

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
    {
      url: "https://h/live/a.ts",
      durationS: 4.004,
      sequence: 7,
      isDiscontinuity: false,
      range: null,
      map: null,
      isGap: false,
      key: null,
      unfit: null,
    },
    {
      url: "https://h/b.ts",
      durationS: 3,
      sequence: 8,
      isDiscontinuity: true,
      range: { offset: 50, length: 1000 },
      map: null,
      isGap: false,
      key: null,
      unfit: null,
    },
    {
      url: "https://h/b.ts",
      durationS: 3,
      sequence: 9,
      isDiscontinuity: false,
      range: { offset: 1050, length: 10 },
      map: null,
      isGap: false,
      key: null,
      unfit: null,
    },
  ]);
});

test("parseHls() reads the newest segments of a long playlist that still grows, and what holds for them", () => {
  const head = '#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:7\n#EXT-X-KEY:METHOD=AES-128,URI="k"\n';
  const text = head + Array.from({ length: 5000 }, (_, i) => `#EXTINF:4,\n${i}.ts\n`).join("");
  const { segments, firstSequence, targetDurationS, hasEnded } = media(text);
  assertEquals([segments.length, firstSequence, targetDurationS, hasEnded], [1000, 4007, 4, false]);
  assertEquals([segments[0]!.url, segments[0]!.sequence], ["https://h/live/4000.ts", 4007]);
  assertEquals(segments[0]!.key, {
    url: "https://h/live/k",
    iv: Uint8Array.of(...Array(14).fill(0), 4007 >> 8, 4007 & 255),
  });
  assertEquals([segments.at(-1)!.url, segments.at(-1)!.sequence], ["https://h/live/4999.ts", 5006]);
  assertEquals(media(`${text}#EXT-X-ENDLIST`).segments.length, 5000, "a recording is read whole");
});

test("parseLongHls() reads a playlist in parts, and gives others turns in between", async () => {
  const lines = Array.from({ length: 2500 }, (_, i) => {
    const key = i === 1500 ? '#EXT-X-KEY:METHOD=AES-128,URI="k"\n' : "";
    return `${key}#EXTINF:2,\n#EXT-X-BYTERANGE:10${i === 0 ? "@5" : ""}\na.ts\n`;
  });
  const text = `#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:7\n${lines.join("")}#EXT-X-ENDLIST\n`;
  let turns = 0;
  const list = await parseLongHls(text, BASE, new Map(), () => Promise.resolve(void turns++)) as MediaList;
  assertEquals([list.segments.length, list.firstSequence, list.hasEnded, turns], [2500, 7, true, 19]);
  const facts = list.segments.map(({ sequence, range, key }) => [sequence, range!.offset, key === null]);
  assertEquals(facts, lines.map((_, i) => [7 + i, 5 + 10 * i, i < 1500]));
  assertEquals(list, media(text));
});

test("parseHls() reads long playlists, and refuses more lines or variants than any playlist needs", () => {
  const head = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n";
  const most = (MAX_PLAYLIST_LINES - 2) / 2;
  const longest = head + "#EXTINF:4,\na\n".repeat(most);
  assert(longest.length < MAX_PLAYLIST_BYTES);
  assertEquals(media(`${longest.slice(0, -"#EXTINF:4,\na\n".length)}#EXT-X-ENDLIST`).segments.length, most - 1);
  const choices = (count: number) => '#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"\na\n'.repeat(count);
  const list = parseHls(`#EXTM3U\n${choices(MAX_CHOICES)}`, BASE);
  assertEquals(list.kind === "master" && list.variants.length, MAX_CHOICES);
  for (
    const [text, message] of [
      [`${longest}#EXT-X-ENDLIST`, /more than 90000 lines/],
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
  const text = `#EXTM3U\n#EXT-X-TARGETDURATION:4\n${unit.repeat(20_000)}#EXT-X-ENDLIST`;
  assertEquals(media(text).segments.length, 20_000);
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
    ['#EXT-X-KEY:METHOD=AES-128,URI="k"\n#EXTINF:4,\na.ts\n', null],
    ['#EXT-X-KEY:METHOD=AES-128,URI="skd://k"\n#EXTINF:4,\na.ts\n', "it is encrypted (AES-128)"],
    ['#EXT-X-KEY:METHOD=SAMPLE-AES,URI="k"\n#EXTINF:4,\na.ts\n', "it is encrypted (SAMPLE-AES)"],
    ['#EXT-X-MAP:URI="init.mp4"\n#EXTINF:4,\na.m4s\n', null],
    ["#EXTINF:4,\nfile:///etc/passwd\n", "its address is no http or https URL"],
  ];
  for (const [text, unfit] of table) assertEquals(media(head + text).segments[0]!.unfit, unfit, text);
});

test("parseHls() reads the address of a key and the initialisation vector of each segment", () => {
  const text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:258\n#EXTINF:4,\na.ts\n" +
    '#EXT-X-KEY:METHOD=AES-128,URI="k?x=1",KEYFORMAT="identity"\n#EXTINF:4,\nb.ts\n#EXTINF:4,\nc.ts\n' +
    '#EXT-X-KEY:METHOD=AES-128,URI="/k2",IV=0x000102030405060708090a0b0c0d0e0f\n#EXTINF:4,\nd.ts\n' +
    "#EXT-X-KEY:METHOD=NONE\n#EXTINF:4,\ne.ts\n";
  const keys = media(text).segments.map(({ key }) => key && [key.url, toHex(key.iv)]);
  assertEquals(keys, [
    null,
    ["https://h/live/k?x=1", "00000000000000000000000000000103"],
    ["https://h/live/k?x=1", "00000000000000000000000000000104"],
    ["https://h/k2", "000102030405060708090a0b0c0d0e0f"],
    null,
  ]);
});

test("parseHls() reads where the section is that segments need before their own bytes", () => {
  const text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n" +
    '#EXT-X-MAP:URI="i.mp4",BYTERANGE="720@10"\n#EXTINF:4,Новости\nb.m4s\n#EXTINF:4,\nc.m4s\n' +
    '#EXT-X-MAP:URI="/j.mp4"\n#EXTINF:4,\nd.m4s\n';
  const first = { url: "https://h/live/i.mp4", range: { offset: 10, length: 720 } };
  assertEquals(media(text).segments.map(({ map }) => map), [
    null,
    first,
    first,
    { url: "https://h/j.mp4", range: null },
  ]);
});

test("parseHls() has a range without an offset follow the one before it in the same resource", () => {
  const lines = ["9@100", "5", "7"].map((range, i) =>
    `#EXTINF:4,\n#EXT-X-BYTERANGE:${range}\n${i < 2 ? "a" : "b"}.ts\n`
  );
  const { segments } = media(`#EXTM3U\n#EXT-X-TARGETDURATION:4\n${lines.join("")}`);
  assertEquals(segments.map(({ range }) => range?.offset), [100, 109, 0]);
});

test("chooseVariant() takes the most bits a second, and of equal ones one that has its own sound", () => {
  const list = parseHls(
    '#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="x",URI="other.m3u8"\n' +
      '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="y",DEFAULT=YES,URI="sound.m3u8"\n' +
      '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="b",NAME="z",DEFAULT=YES\n' +
      '#EXT-X-STREAM-INF:BANDWIDTH=900,AUDIO="a"\nbest.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=900\nwhole.m3u8\n' +
      '#EXT-X-STREAM-INF:BANDWIDTH=500,AUDIO="b"\ninside.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=100,AUDIO="a"\nsound.m3u8\n',
    BASE,
  ) as MasterList;
  assertEquals(list.variants.map(({ soundUrl }) => soundUrl), ["https://h/live/sound.m3u8", null, null, null]);
  assertEquals(chooseVariant(list)!.url, "https://h/live/whole.m3u8");
  const apart = { ...list, variants: list.variants.filter(({ url }) => !url.endsWith("whole.m3u8")) };
  assertEquals(chooseVariant(apart)!.url, "https://h/live/best.m3u8");
  assertEquals(chooseVariant({ kind: "master", variants: [], variables: new Map() }), null);
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
  const started = cpuMs();
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
      readHlsHead(`#EXTM3U\n${text}`, BASE);
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
  assert(cpuMs() - started < 20_000);
});

test("isHlsPlaylist() tells HLS from a list of channels", () => {
  assertEquals(isHlsPlaylist("#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\n0.ts\n"), true);
  assertEquals(isHlsPlaylist("#EXTM3U\n#EXTINF:-1,x\nhttp://a\n"), false);
});

test("readHlsHead() resolves variants, and takes only an end for an end", () => {
  const media = "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,#EXT-X-ENDLIST\n0.ts\n";
  const variants = "\n#EXT-X-STREAM-INF:X\n\n# note\n../v.m3u8\n#EXT-X-STREAM-INF:Y\nhttp://[\n";
  const title = '#EXT-X-SESSION-DATA:DATA-ID="com.example.title",VALUE=" A film "\n';
  const live = { title: null, variants: null, isLive: true };
  const master = { title: null, variants: ["http://a/b/v.m3u8"], isLive: null };
  const cases: [string, string, unknown][] = [
    ["live", media, live],
    ["cut in a segment", media.slice(0, -8), live],
    ["cut in a tag", `${media}#EXT-X-ENDL`, live],
    ["an event", `${media}#EXT-X-PLAYLIST-TYPE:EVENT\n`, live],
    ["ended", `${media}#EXT-X-ENDLIST\r\n`, { ...live, isLive: false }],
    ["a recording", `${media}#EXT-X-PLAYLIST-TYPE:VOD\r\n`, { ...live, isLive: false }],
    ["ended, a day long", media + "#EXTINF:6,\n1.ts\n".repeat(20_000) + "#EXT-X-ENDLIST", { ...live, isLive: false }],
    ["longer than any", media + "#EXTINF:6,\n1.ts\n".repeat(MAX_PLAYLIST_LINES), live],
    ["titled", media + title, { ...live, title: "A film" }],
    ["a master", `\ufeff\n#EXTM3U\n#EXT-X-MEDIA:URI="a.m3u8"${variants}`, master],
    ["a titled master", `#EXTM3U\n${title}${variants}`, { ...master, title: "A film" }],
    ["a master cut in a tag", "#EXTM3U\n#EXT-X-STREAM-INF:BANDW", { ...master, variants: [] }],
  ];
  for (const [what, text, expected] of cases) assertEquals(readHlsHead(text, "http://a/b/c/m.m3u8"), expected, what);
  const many = readHlsHead("#EXTM3U\n" + "#EXT-X-STREAM-INF:X\nv\n".repeat(2 * MAX_CHOICES), "http://a/");
  assertEquals(many.variants!.length, MAX_CHOICES - 1);
});

test("parseHls() puts in the values of variables: defined, from the address, from the master playlist", () => {
  const master = parseHls(
    '#EXTM3U\n#EXT-X-DEFINE:NAME="cdn",VALUE="https://cdn.example/a"\n#EXT-X-STREAM-INF:BANDWIDTH=1\n{$cdn}/v.m3u8\n',
    BASE,
  );
  assert(master.kind === "master");
  assertEquals(master.variants[0]!.url, "https://cdn.example/a/v.m3u8");
  const text = '#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-DEFINE:IMPORT="cdn"\n#EXT-X-DEFINE:QUERYPARAM="token"\n' +
    "#EXTINF:4,\n{$cdn}/1.ts?t={$token}\n#EXT-X-ENDLIST\n";
  const list = parseHls(text, "https://cdn.example/a/v.m3u8?token=s3", master.variables);
  assert(list.kind === "media");
  assertEquals(list.segments.map(({ url }) => url), ["https://cdn.example/a/1.ts?t=s3"]);
});

test("parseHls() refuses variables without a value, and more of them than any playlist needs", () => {
  const define = (n: number) => `#EXT-X-DEFINE:NAME="v${n}",VALUE="${"x".repeat(2000)}"\n`;
  const many = Array.from({ length: 65 }, (_, n) => define(n)).join("");
  const long = `${define(0)}${"#EXTINF:1,\n{$v0}{$v0}\n".repeat(2000)}`;
  const none = '#EXT-X-DEFINE:NAME="a",VALUE="b"\n#EXTINF:1,\n{$c}\n';
  for (const text of [many, long, none, '#EXT-X-DEFINE:IMPORT="a"\n']) {
    const error = assertThrows(() => parseHls(`#EXTM3U\n#EXT-X-TARGETDURATION:1\n${text}`, BASE), MillraceError);
    assertEquals(error.code, "bad_media");
  }
});

test("parseHls() passes over tags of a segment that is still to come", () => {
  const text =
    "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n1.ts\n#EXT-X-DISCONTINUITY\n#EXT-X-KEY:METHOD=NONE\n#EXTINF:4,\n";
  for (const tail of ["", "#EXT-X-ENDLIST\n"]) {
    const list = parseHls(text + tail, BASE);
    assert(list.kind === "media");
    assertEquals([list.segments.length, list.segments[0]!.unfit, list.hasEnded], [1, null, tail !== ""]);
  }
});
