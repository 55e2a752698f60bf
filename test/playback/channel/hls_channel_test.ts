/** Channels that come by HLS in its further forms: fragmented MP4, sound in a playlist of its own, and odd playlists. */
import { Buffer } from "node:buffer";
import { gzipSync } from "node:zlib";
import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { concatBytes } from "../../../src/bytes/hex.ts";
import { MillraceError } from "../../../src/errors.ts";
import type { LiveSession } from "../../../src/playback/live/live-session.ts";
import { clip } from "../../support/fixtures.ts";
import { checkTs, ticksBetween } from "../../support/ts-check.ts";
import { fragmentsOf, playlistOf, renamed } from "./fragments.ts";
import { type Answers, setUpChannels } from "./upstream.ts";

const HOST = "http://h.example";
const LIST = `${HOST}/list.m3u8`;
const { init, segments } = fragmentsOf();
const files = (parts: readonly Uint8Array[], ending: string) =>
  Object.fromEntries(parts.map((part, i) => [`${HOST}/${i}.${ending}`, part]));

/** Plays `address` over `answers` to its end, or for `ms`; returns what a viewer got, checked. */
async function played(answers: Answers, address: string | string[] = LIST, ms = 9000) {
  const { asked, begin, run } = setUpChannels(answers);
  const session: LiveSession = await begin([address].flat());
  const reader = session.openStream().getReader();
  const parts: Uint8Array[] = [];
  let isOver = false;
  void (async () => {
    for (let next = await reader.read(); !next.done; next = await reader.read()) parts.push(next.value);
    isOver = true;
  })().catch(() => {});
  for (let passed = 0; passed < ms && !isOver; passed += 500) await run(500);
  const { ended } = session.stream;
  const { channel } = session.stream.source;
  session.stop("done");
  return { asked, ended, channel, ...checkTs(concatBytes(parts), { isSegment: false }) };
}

const MAP = '#EXT-X-MAP:URI="init.mp4"\n';
const FRAGMENTED: Answers = {
  [LIST]: playlistOf(segments.length, "m4s", MAP),
  [`${HOST}/init.mp4`]: init,
  ...files(segments, "m4s"),
};

test("Sessions.start() plays HLS of fragmented MP4 as MPEG TS, pictures and sound", async () => {
  const { asked, ended, problems, streams } = await played(FRAGMENTED);
  assertEquals([problems, ended], [[], true]);
  assertEquals(streams.map(({ streamType }) => streamType), [0x1b, 0x0f]);
  assertEquals(streams[0]!.units.length, 150);
  assertEquals(asked.filter((url) => url.endsWith("init.mp4")).length, 1);
});

test("Sessions.start() plays encrypted fragmented MP4, and ranges of one file", async () => {
  const secret = crypto.getRandomValues(new Uint8Array(16));
  const key = await crypto.subtle.importKey("raw", secret, "AES-CBC", false, ["encrypt"]);
  const iv = new Uint8Array(16).fill(7);
  const sealed = async (bytes: Uint8Array) =>
    new Uint8Array(await crypto.subtle.encrypt({ name: "AES-CBC", iv }, key, bytes.slice()));
  const line = `#EXT-X-KEY:METHOD=AES-128,URI="key.bin",IV=0x${"07".repeat(16)}\n`;
  const encrypted = await played({
    [LIST]: playlistOf(segments.length, "m4s", line + MAP),
    [`${HOST}/key.bin`]: secret,
    [`${HOST}/init.mp4`]: await sealed(init),
    ...files(await Promise.all(segments.map(sealed)), "m4s"),
  });
  const at = [init, ...segments].map((_, i, all) => all.slice(0, i).reduce((sum, { length }) => sum + length, 0));
  const lines = segments.map(({ length }, i) => `#EXTINF:2,\n#EXT-X-BYTERANGE:${length}@${at[i + 1]}\nall.mp4\n`);
  const map = `#EXT-X-MAP:URI="all.mp4",BYTERANGE="${init.length}@0"\n`;
  const ranges = await played({
    [LIST]: `#EXTM3U\n#EXT-X-TARGETDURATION:3\n${map}${lines.join("")}#EXT-X-ENDLIST\n`,
    [`${HOST}/all.mp4`]: concatBytes([init, ...segments]),
  });
  for (const { problems, streams } of [encrypted, ranges]) {
    assertEquals([problems, streams[0]!.units.length], [[], 150]);
  }
});

test("Sessions.start() joins pictures and sound of playlists of their own, in step by their times", async () => {
  const master = '#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="x",DEFAULT=YES,URI="sound.m3u8"\n' +
    '#EXT-X-STREAM-INF:BANDWIDTH=900,AUDIO="a"\npictures.m3u8\n';
  const lists = (ending: string, [pictures, sound]: readonly [string, string]) => ({
    [LIST]: master,
    [`${HOST}/pictures.m3u8`]: playlistOf(segments.length, ending, pictures),
    [`${HOST}/sound.m3u8`]: playlistOf(segments.length, ending, sound),
  });
  const map = (name: string) => `#EXT-X-MAP:URI="${name}.mp4"\n`;
  const { problems, ended, streams, asked } = await played({
    ...lists("m4s", [map("pictures"), map("sound")]),
    // Each describes one of the tracks in the same fragments.
    [`${HOST}/pictures.mp4`]: renamed(init, "soun", "none"),
    [`${HOST}/sound.mp4`]: renamed(init, "vide", "none"),
    ...files(segments, "m4s"),
  });
  assertEquals([problems, ended], [[], true]);
  assertEquals(streams.map(({ streamType }) => streamType), [0x1b, 0x0f]);
  const whole = await played(FRAGMENTED);
  const times = (one: typeof streams) => one.map(({ units }) => units.map(({ pts }) => pts));
  assertEquals(times(streams)[0], times(whole.streams)[0]);
  // The sound after the last picture has nothing to be put before.
  const sound = times(streams)[1]!;
  const frames = (one: typeof streams) => concatBytes(one[1]!.units.map(({ data }) => data));
  assertEquals(sound[0], times(whole.streams)[1]![0]);
  assertEquals(frames(streams), frames(whole.streams).subarray(0, frames(streams).length));
  assert(Math.abs(ticksBetween(sound.at(-1)!, times(streams)[0]!.at(-1)!)) < 45_000);
  assertEquals(asked.filter((url) => url.endsWith("sound.mp4")).length, 1);
});

test("Sessions.start() begins with sound of the first picture, although its playlist has grown, or has segments of another length", async () => {
  const master = '#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="x",DEFAULT=YES,URI="sound.m3u8"\n' +
    '#EXT-X-STREAM-INF:BANDWIDTH=900,AUDIO="a"\npictures.m3u8\n';
  const list = (name: string, count: number, first = 0) => {
    const lines = Array.from({ length: count }, (_, i) => `#EXTINF:1.0,\n${i}.m4s\n`).join("");
    const tags = `#EXT-X-MEDIA-SEQUENCE:${first}\n#EXT-X-MAP:URI="${name}.mp4"\n`;
    return `#EXTM3U\n#EXT-X-TARGETDURATION:1\n${tags}${lines}${count === segments.length ? "#EXT-X-ENDLIST\n" : ""}`;
  };
  const halves = (name: string, count: number) => {
    const lines = Array.from({ length: count / 2 }, (_, i) => `#EXTINF:2.0,\n${i}.double\n`).join("");
    return `#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MAP:URI="${name}.mp4"\n${lines}${
      count === 6 ? "#EXT-X-ENDLIST\n" : ""
    }`;
  };
  const doubles = [0, 2, 4].map((at) => concatBytes(segments.slice(at, at + 2)));
  const table: Answers = {
    "one segment more": (nth) => list("sound", nth === 0 ? 5 : 6),
    "numbers of its own": (nth) => list("sound", nth === 0 ? 5 : 6, 700),
    "segments twice as long": (nth) => halves("sound", nth === 0 ? 4 : 6),
  };
  for (const [name, sound] of Object.entries(table)) {
    const { problems, ended, streams, asked } = await played({
      [LIST]: master,
      [`${HOST}/pictures.m3u8`]: (nth) => list("pictures", nth === 0 ? 4 : 6),
      [`${HOST}/pictures.mp4`]: renamed(init, "soun", "none"),
      [`${HOST}/sound.m3u8`]: sound,
      [`${HOST}/sound.mp4`]: renamed(init, "vide", "none"),
      ...files(segments, "m4s"),
      ...files(doubles, "double"),
    });
    assertEquals([problems, ended], [[], true], name);
    const [pictures, heard] = streams.map(({ units }) => units[0]!.pts);
    const apart = ticksBetween(pictures!, heard!);
    assert(Math.abs(apart) < 18_000, `${name}: picture and sound begin ${apart / 90_000} s apart`);
    assertEquals(asked.filter((url) => url === LIST).length, 1, "the list of lists is read once");
  }
});

test("Sessions.start() refuses pictures of fragmented MP4 whose sound is MPEG TS, which has another clock", async () => {
  const master = '#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="x",DEFAULT=YES,URI="sound.m3u8"\n' +
    '#EXT-X-STREAM-INF:BANDWIDTH=900,AUDIO="a"\npictures.m3u8\n';
  const { begin } = setUpChannels({
    [LIST]: master,
    [`${HOST}/pictures.m3u8`]: playlistOf(segments.length, "m4s", MAP),
    [`${HOST}/init.mp4`]: renamed(init, "soun", "none"),
    ...files(segments, "m4s"),
    [`${HOST}/sound.m3u8`]: playlistOf(1, "ts", ""),
    [`${HOST}/0.ts`]: clip("ts-188.ts"),
  });
  const error = await assertRejects(() => begin([LIST]), MillraceError);
  assertEquals(error.code, "unsupported_media");
  assertMatch(error.message, /its pictures are fragmented MP4 and their sound is MPEG TS/);
});

test("Sessions.start() passes over addresses whose fragmented MP4 is missing, silent, or cannot be carried, and says why", async () => {
  const other = "http://o.example";
  const at = (host: string, answers: Answers) =>
    Object.fromEntries(Object.entries(answers).map(([url, answer]) => [url.replace(HOST, host), answer]));
  const table: [string, Answers, RegExp][] = [
    ["encrypted", { [`${HOST}/init.mp4`]: renamed(init, "avc1", "encv") }, /cannot be played: .*encrypted \(DRM\)/],
    [
      "other codec",
      { [`${HOST}/init.mp4`]: renamed(init, "avc1", "av01") },
      /MPEG TS cannot carry them \(av01, mp4a\)/,
    ],
    ["SAMPLE-AES", {
      [LIST]: playlistOf(1, "m4s", `#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://k",KEYFORMAT="com.apple"\n${MAP}`),
    }, /encrypted \(SAMPLE-AES\)/],
    ["silent", { [`${HOST}/0.m4s`]: "hangs" }, /nothing came for 3 s/],
    ["no section", { [`${HOST}/init.mp4`]: 404 }, /nothing came for 3 s: segment \d could not be fetched/],
  ];
  for (const [name, changes, reason] of table) {
    const answers = { ...FRAGMENTED, ...at(other, FRAGMENTED), ...changes };
    const { asked, channel } = await played(answers, [LIST, LIST.replace(HOST, other)], 3000);
    assertEquals(channel!.index, 1, name);
    assertMatch(channel!.reason!, reason, name);
    assert(asked.includes(`${other}/0.m4s`), name);
  }
});

/** Three stretches of a clip. */
const CLIP = clip("ts-188.ts");
const cut = (i: number) => 188 * Math.floor(CLIP.length / 188 * i / 3);
const TS = [0, 1, 2].map((i) => CLIP.subarray(cut(i), cut(i + 1)));
const VOD = playlistOf(3, "ts");
const PARTS = files(TS, "ts");

test("Sessions.start() plays playlists as servers write them", async () => {
  const bytes = (text: string) => new TextEncoder().encode(text);
  const packed = gzipSync(VOD);
  const table: Record<string, Answers> = {
    "ranges, the second without an offset": {
      [LIST]: VOD.replace("0.ts", `#EXT-X-BYTERANGE:${TS[0]!.length}@0\nall.ts`)
        .replace("1.ts", `#EXT-X-BYTERANGE:${TS[1]!.length}\nall.ts`),
      [`${HOST}/all.ts`]: CLIP,
      ...PARTS,
    },
    "a discontinuity": { [LIST]: VOD.replace("#EXTINF:2.0,\n1", "#EXT-X-DISCONTINUITY\n#EXTINF:2.0,\n1"), ...PARTS },
    "addresses of all kinds": {
      [LIST]: VOD.replace("0.ts", "/a/0.ts?x=1").replace("1.ts", "//o.example/1.ts").replace("2.ts", "./b/../2.ts"),
      [`${HOST}/a/0.ts?x=1`]: TS[0]!,
      "http://o.example/1.ts": TS[1]!,
      [`${HOST}/2.ts`]: TS[2]!,
    },
    "another token with each reload": {
      [LIST]: (nth) => ({ to: `${HOST}/t${nth}/list.m3u8?token=${nth}` }),
      ...Object.fromEntries([0, 1, 2, 3, 4, 5, 6].map((nth) => {
        const list = `#EXTM3U\n#EXT-X-TARGETDURATION:2\n${
          VOD.split("\n").slice(2, 4 + 2 * Math.min(nth, 2)).join("\n")
        }\n`;
        return [`${HOST}/t${nth}/list.m3u8?token=${nth}`, nth < 4 ? list : `${list}#EXT-X-ENDLIST\n`];
      })),
      ...Object.fromEntries(
        [0, 1, 2, 3, 4, 5, 6].flatMap((nth) => TS.map((part, i) => [`${HOST}/t${nth}/${i}.ts`, part])),
      ),
    },
    "gzip": { [LIST]: { body: packed, fields: { "content-encoding": "gzip" } }, ...PARTS },
    "gzip that nothing says": { [LIST]: { body: packed, fields: { "content-type": "text/plain" } }, ...PARTS },
    "wrong types": {
      [LIST]: { body: VOD, fields: { "content-type": "text/html" } },
      ...Object.fromEntries(
        TS.map((body, i) => [`${HOST}/${i}.ts`, { body, fields: { "content-type": "image/png" } }]),
      ),
    },
    "no first line": { [LIST]: VOD.replace("#EXTM3U\n", ""), ...PARTS },
    "a byte order mark": { [LIST]: bytes(`\ufeff${VOD}`), ...PARTS },
    "empty lines, and ends of lines as Windows has them": {
      [LIST]: `\r\n\r\n${VOD.replaceAll("\n", "\r\n\r\n")}`,
      ...PARTS,
    },
    "titles in other letters": { [LIST]: VOD.replaceAll("2.0,", "2.0,Новости é"), ...PARTS },
    "no target duration": { [LIST]: VOD.replace("#EXT-X-TARGETDURATION:3\n", ""), ...PARTS },
    "unknown tags": { [LIST]: VOD.replaceAll("#EXTINF", "#EXT-X-FOO:BAR=1\n# a remark\n#EXTINF"), ...PARTS },
  };
  for (const [name, answers] of Object.entries(table)) {
    const { ended, streams } = await played(answers, LIST, 16_000);
    const count = streams.find(({ streamType }) => streamType === 0x1b)?.units.length ?? 0;
    assertEquals([ended, count > 120], [true, true], `${name}: ${count} pictures`);
  }
});

test("Sessions.start() follows a live playlist whose numbers begin again", async () => {
  const list = (first: number, count = 3) => {
    const lines = Array.from({ length: count }, (_, i) => `#EXTINF:2,\n${(first + i) % 3}.ts\n`).join("");
    return `#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:${first}\n${lines}`;
  };
  const { channel, asked } = await played(
    {
      [LIST]: (nth) => nth < 2 ? list(900 + nth) : list(nth),
      ...PARTS,
    },
    LIST,
    14_000,
  );
  assertEquals(channel!.changes, 0, channel!.reason ?? "");
  assert(asked.filter((url) => url.endsWith(".ts")).length >= 7, asked.join());
});

test("Sessions.start() refuses what is packed and no playlist, and packs that become too large", async () => {
  const table: [Uint8Array, RegExp][] = [
    [gzipSync("<tv></tv>".padEnd(9000)), /neither MPEG TS, HLS nor radio/],
    [gzipSync(Buffer.alloc(6 << 20, `#EXTM3U\n`)), /too large/],
  ];
  for (const [body, says] of table) {
    const { begin } = setUpChannels({ [LIST]: { body, fields: {} } });
    const error = await assertRejects(() => begin([LIST]), MillraceError);
    assertMatch(error.message, says);
  }
});
