/** Radio as a transport stream: in chunks of any size, damaged, with titles between the sound. */
import { test } from "node:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { adtsFrame, id3TagBytes } from "../../../src/bytes/audio-frames.ts";
import { concatBytes } from "../../../src/bytes/hex.ts";
import { MillraceError } from "../../../src/errors.ts";
import { RadioMuxer, radioSyntax, TitleFilter } from "../../../src/playback/channel/radio.ts";
import { statOf } from "../../../src/playback/stat.ts";
import { clip } from "../../support/fixtures.ts";
import { seeded } from "../../support/random.ts";
import { checkTs, ticksBetween } from "../../support/ts-check.ts";
import { setUpChannels } from "./upstream.ts";

/** `bytes` in chunks of odd sizes. */
function* chunks(bytes: Uint8Array, seed = 1): Generator<Uint8Array> {
  const next = seeded(seed);
  for (let at = 0; at < bytes.length;) {
    const size = 1 + Math.floor(next() * 1500);
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

function muxed(bytes: Uint8Array, seed = 1): Uint8Array {
  const muxer = new RadioMuxer(radioSyntax(bytes.subarray(0, 4000))!);
  return concatBytes([...chunks(bytes, seed)].map((chunk) => muxer.push(chunk)));
}

for (const [name, streamType] of [["audio.aac", 0x0f], ["audio-bare.mp3", 0x04], ["audio.mp2", 0x03]] as const) {
  test(`RadioMuxer makes the same transport stream of ${name} in chunks of any size, with a clock ten times a second`, () => {
    const bytes = clip(name);
    const ts = muxed(bytes);
    const { problems, streams, pcrs } = checkTs(ts, { isSegment: false });
    assertEquals(problems, []);
    assertEquals(streams.map((one) => one.streamType), [streamType]);
    const sound = concatBytes(streams[0]!.units.map(({ data }) => data));
    const from = id3TagBytes(bytes, 0);
    assertEquals(sound, bytes.subarray(from, from + sound.length));
    assert(sound.length > bytes.length - 4000, `${sound.length} of ${bytes.length} bytes`);
    const gaps = pcrs.slice(1).map((pcr, at) => ticksBetween(pcr, pcrs[at]!));
    assert(Math.max(...gaps) <= 9000 && Math.min(...gaps) > 0, gaps.join());
    assertEquals(muxed(bytes, 2), ts);
  });
}

test("RadioMuxer begins inside a frame, and goes on after bytes that are no frames", () => {
  const bytes = clip("audio.aac");
  const noise = new Uint8Array(700).fill(0x55);
  const ts = muxed(concatBytes([bytes.subarray(100, 12_000), noise, bytes.subarray(12_100)]));
  const { problems, streams } = checkTs(ts, { isSegment: false });
  assertEquals(problems, []);
  for (const { data } of streams[0]!.units) assert(adtsFrame(data, 0) !== null);
  const sent = streams[0]!.units.reduce((sum, { data }) => sum + data.length, 0);
  assert(sent > bytes.length - 5000, `${sent} of ${bytes.length} bytes`);
});

test("RadioMuxer.push() throws where the format of the sound changes, and holds little of what is none", () => {
  const muxer = new RadioMuxer(adtsFrame);
  for (const chunk of chunks(new Uint8Array(500_000).fill(0x55))) assertEquals(muxer.push(chunk).length, 0);
  muxer.push(clip("audio.aac"));
  const other = clip("audio.aac").slice();
  // Another sample rate, in each frame.
  for (let at = 0; adtsFrame(other, at) !== null;) {
    const { sizeBytes } = adtsFrame(other, at)!;
    other[at + 2] = other[at + 2]! ^ 0x04;
    at += sizeBytes;
  }
  assertThrows(() => muxer.push(other), MillraceError, "format");
});

test("radioSyntax() takes nothing else for radio", () => {
  assertEquals(radioSyntax(new TextEncoder().encode("<html>".padEnd(4000, "ÿû"))), null);
  for (const name of ["ts-188.ts", "mp4-front.mp4", "audio.wav", "webm-vp9-opus.webm"]) {
    assertEquals(radioSyntax(clip(name).subarray(0, 3760)), null, name);
  }
});

/** `sound` with a block of titles after every `interval` bytes. */
function withTitles(sound: Uint8Array, interval: number, titles: readonly Uint8Array[]): Uint8Array {
  const parts: Uint8Array[] = [];
  for (let at = 0, n = 0; at < sound.length; at += interval, n++) {
    const title = titles[n] ?? new Uint8Array();
    const units = Math.ceil(title.length / 16);
    const block = new Uint8Array(1 + units * 16);
    block[0] = units;
    block.set(title, 1);
    parts.push(sound.subarray(at, at + interval), ...at + interval > sound.length ? [] : [block]);
  }
  return concatBytes(parts);
}

test("TitleFilter takes titles out of the sound and tells them, in UTF-8 and else in Windows-1252", () => {
  const sound = clip("audio.aac");
  const utf8 = (text: string) => new TextEncoder().encode(text);
  const titles = [
    utf8("StreamTitle='Ölkännchen - It's late';StreamUrl='x';"),
    utf8(""),
    Uint8Array.from([...utf8("StreamTitle='Caf"), 0xe9, ...utf8("';")]),
    utf8("StreamTitle='a\nb';"),
    utf8("nothing"),
  ];
  const told: string[] = [];
  const filter = new TitleFilter(1000, (title) => told.push(title));
  const parts = [...chunks(withTitles(sound, 1000, titles))].map((chunk) => filter.push(chunk));
  assertEquals(concatBytes(parts), sound);
  assertEquals(told, ["Ölkännchen - It's late", "Café", "a b"]);
});

test("Sessions.start() plays a radio as a broadcast, and stat says what it plays", async () => {
  const A = "http://radio.example/aac";
  const sound = concatBytes(Array.from({ length: 4 }, () => clip("audio.aac")));
  const titles = [new TextEncoder().encode("StreamTitle='News at ten';")];
  const { open, begin, run } = setUpChannels({ [A]: "sends" }, { "icy-metaint": "4000" });
  const bytes = withTitles(sound, 4000, titles);
  let at = 0;
  const send = () => {
    if (at < bytes.length) open[0]?.say(bytes.subarray(at, at += 440));
    return false;
  };
  const starting = begin([A], {}, send);
  const session = await starting;
  assertEquals(open[0]!.request.headers.get("icy-metadata"), "1");
  const reader = session.openStream().getReader();
  const parts: Uint8Array[] = [];
  void (async () => {
    for (let next = await reader.read(); !next.done; next = await reader.read()) parts.push(next.value);
  })().catch(() => {});
  await run(8000, send);
  const { streams } = checkTs(concatBytes(parts), { isSegment: false });
  assertEquals(streams.map(({ streamType }) => streamType), [0x0f]);
  assert(streams[0]!.units.length > 30, `${streams[0]!.units.length} units`);
  const { channel } = statOf(session, { limitBytes: 0, usedBytes: 0 }, "prefuf") as { channel: { title: string } };
  assertEquals(channel.title, "News at ten");
  session.stop("done");
});

test("Sessions.start() plays HLS whose segments are sound alone, with tags before it, under one clock", async () => {
  const list = "http://radio.example/list.m3u8";
  const sound = clip("audio.aac");
  // Three segments of whole frames.
  const ends: number[] = [];
  for (let at = 0, n = 1; adtsFrame(sound, at) !== null && ends.length < 3; at += adtsFrame(sound, at)!.sizeBytes) {
    if (at >= n * sound.length / 3.2) n = ends.push(at) + 1;
  }
  // An ID3 tag of 10 bytes.
  const tag = Uint8Array.from([0x49, 0x44, 0x33, 4, 0, 0, 0, 0, 0, 10, ...new Array(10).fill(0)]);
  const parts = ends.map((end, i) => concatBytes([tag, sound.subarray(ends[i - 1] ?? 0, end)]));
  const lines = parts.map((_, i) => `#EXTINF:2,\n${i}.aac\n`).join("");
  const { begin, run } = setUpChannels({
    [list]: `#EXTM3U\n#EXT-X-TARGETDURATION:2\n${lines}#EXT-X-ENDLIST\n`,
    ...Object.fromEntries(parts.map((part, i) => [`http://radio.example/${i}.aac`, part])),
  });
  const session = await begin([list]);
  const reader = session.openStream().getReader();
  const got: Uint8Array[] = [];
  void (async () => {
    for (let next = await reader.read(); !next.done; next = await reader.read()) got.push(next.value);
  })().catch(() => {});
  await run(9000);
  const { problems, streams } = checkTs(concatBytes(got), { isSegment: false });
  assertEquals([problems, streams.map(({ streamType }) => streamType)], [[], [0x0f]]);
  assertEquals(session.stream.ended, true);
  session.stop("done");
});
