import { assert, assertEquals, assertLess, assertRejects } from "@std/assert";
import { test } from "node:test";
import { MemorySource } from "../support/memory-source.ts";
import { MillraceError } from "../../src/errors.ts";
import { openMatroska } from "../../src/media/index/mkv/open-matroska.ts";
import { checkTs } from "../support/ts-check.ts";
import { collect, NEVER, openBytes } from "./support/files.ts";
import {
  blockGroup,
  cluster,
  CountingSource,
  cues,
  EBML_HEAD,
  element,
  fixture,
  floatBytes,
  matroska,
  never,
  open,
  samples,
  second,
  simpleBlock,
  SparseSource,
  trackEntry,
} from "./mkv-support.ts";
import { concatBytes } from "../../src/bytes/hex.ts";

const frame = (...bytes: number[]) => new Uint8Array(bytes);
const short = (list: readonly { track: number; pts90k: number; dts90k: number; keyframe: boolean }[]) =>
  list.map((s) => `${s.track}:${s.pts90k / 90}/${s.dts90k / 90}${s.keyframe ? "k" : ""}`);

test("openMatroska() returns tracks, languages and defaults", async () => {
  const { index } = await open(fixture("mkv-two-audio.mkv"));
  assertEquals(index.tracks.map((t) => [t.kind, t.codec, t.language, t.isDefault]), [
    ["video", "h264", null, false],
    ["audio", "aac", "eng", true],
    ["audio", "ac3", "ger", false],
  ]);
  assertEquals([index.tracks[0]!.width, index.tracks[0]!.height, index.tracks[1]!.sampleRate], [160, 90, 48000]);
  assertEquals(index.tracks[0]!.codecPrivate![0], 1);
  assertEquals(index.container, "matroska");
  assertEquals(index.warnings, []);
});

test("openMatroska() names the codecs of all clips", async () => {
  const codecs = async (name: string) => (await open(fixture(name))).index.tracks.map((t) => t.codec).join();
  assertEquals(await codecs("mkv-hevc-eac3.mkv"), "hevc,eac3");
  assertEquals(await codecs("mkv-mp3.mkv"), "h264,mp3");
  assertEquals(await codecs("mkv-mpeg2.mkv"), "mpeg2video,mp2");
  assertEquals(await codecs("webm-vp9-opus.webm"), "vp9,opus");
  assertEquals(await codecs("mkv-audio-only.mka"), "aac");
});

test("openMatroska() takes only VfW, ACM and packed tracks for other", async () => {
  const bzip2 = element(0x6d80, [element(0x6240, [element(0x5034, [element(0x4254, 1)])])]);
  const encrypted = element(0x6d80, [element(0x6240, [element(0x5033, 1)])]);
  const { index } = await open(matroska([cluster(0, [simpleBlock(1, 0, 0x80, frame(1))])], {
    tracks: [
      trackEntry(1, "video", "V_MS/VFW/FOURCC"),
      trackEntry(2, "audio", "A_MS/ACM"),
      trackEntry(3, "audio", "A_AC3", [bzip2]),
      trackEntry(4, "audio", "A_EAC3", [encrypted]),
      trackEntry(5, "video", "V_MPEG4/ISO/AVC"),
      trackEntry(6, "audio", "A_AAC/MPEG4/LC", [element(0xe1, [element(0xb5, floatBytes(44100)), element(0x9f, 2)])]),
    ],
  }));
  assertEquals(index.tracks.map((t) => `${t.codec} ${t.codecId}`), [
    "other V_MS/VFW/FOURCC",
    "other A_MS/ACM",
    "other A_AC3 (compressed)",
    "other A_EAC3 (encrypted)",
    "other V_MPEG4/ISO/AVC (without codec data)",
    "aac A_AAC/MPEG4/LC",
  ]);
  assertEquals([...index.tracks[5]!.codecPrivate!], [0x12, 0x10]);
});

test("openMatroska() rejects other formats", async () => {
  const reject = async (bytes: Uint8Array) => {
    const error = await assertRejects(
      () => openMatroska(new MemorySource(bytes), { fileName: "x", signal: never }),
      MillraceError,
    );
    return error.code;
  };
  assertEquals(await reject(new Uint8Array(0)), "bad_media");
  assertEquals(await reject(new TextEncoder().encode("this is text and no film at all")), "bad_media");
  assertEquals(
    await reject(concatBytes([element(0x1a45dfa3, [element(0x4282, "other")]), new Uint8Array(50)])),
    "unsupported_media",
  );
  assertEquals(await reject(concatBytes([EBML_HEAD, element(0x18538067, [element(0x1654ae6b, [])])])), "bad_media");
  assertEquals(await reject(matroska([])), "bad_media");
});

test("openMatroska() plans runs of two seconds or more from the Cues, wherever these are", async () => {
  for (const name of ["mkv-cues.mkv", "mkv-cues-front.mkv"]) {
    const { index, timeline } = await open(fixture(name));
    assertEquals(timeline.runs.length, 3, name);
    assertEquals(timeline.runs.map((r) => Math.round(r.startPts90k / 90)).slice(1), [2101, 4101]);
    assert(timeline.runs.every((r) => r.maxPayloadBytes !== null), name);
    assertEquals(index.durationMs, 6021);
  }
});

test("readRun() of every clip starts with a keyframe and keeps to its bounds and to ascending times", async () => {
  for (
    const name of [
      "mkv-cues.mkv",
      "mkv-cues-front.mkv",
      "mkv-no-cues.mkv",
      "mkv-two-audio.mkv",
      "mkv-hevc-eac3.mkv",
      "mkv-mp3.mkv",
      "mkv-mpeg2.mkv",
      "mkv-open-gop.mkv",
      "mkv-vfr.mkv",
      "mkv-24fps.mkv",
      "mkv-audio-only.mka",
    ]
  ) {
    const opened = await open(fixture(name));
    const last = new Map<number, number>();
    for (const run of opened.timeline.runs) {
      const list = await samples(opened, run.index);
      assert(list.find((s) => s.track === 0)!.keyframe, `${name} run ${run.index}`);
      for (const sample of list) {
        assert(sample.dts90k > (last.get(sample.track) ?? -1), `${name}: time goes back`);
        assert(sample.dts90k <= sample.pts90k, `${name}: decoded after it is shown`);
        last.set(sample.track, sample.dts90k);
      }
      if (run.maxPayloadBytes !== null) {
        assertLess(list.reduce((sum, s) => sum + s.data.length, 0), run.maxPayloadBytes + 1);
      }
      opened.index.tracks.forEach((_, t) =>
        assertLess(list.filter((s) => s.track === t).length, run.maxAccessUnits[t]! + 1, name)
      );
    }
  }
});

test("slots hold all access units of bursts and of small ones, with little to spare", async () => {
  // MPEG-2 pictures of 150 bytes, all random access points, without a DefaultDuration: 100 a second, then 4.
  const picture = new Uint8Array(150).fill(7);
  picture.set([0, 0, 1, 0xb3]);
  const times = Array.from({ length: 1000 }, (_, i) => i < 900 ? i * 10 : 9000 + (i - 900) * 250);
  const video = [trackEntry(1, "video", "V_MPEG2")];
  const seconds = Array.from({ length: 34 }, (_, second) => {
    const own = times.filter((time) => Math.floor(time / 1000) === second);
    return cluster(second * 1000, own.map((time) => simpleBlock(1, time - second * 1000, 0x80, picture)));
  });
  const at = (second: number) => seconds.slice(0, second).reduce((sum, part) => sum + part.length, 0);
  const file = matroska(seconds, {
    tracks: video,
    durationMs: 34_000,
    after: (base) => [cues(base, seconds.map((_, second) => [second * 1000, at(second), 3 + 1]))],
  });
  const presentation = await openBytes(file);
  const ts = await collect(presentation.ts.read(0, null, new MemorySource(file), NEVER));
  assertEquals(ts.length, presentation.ts.sizeBytes);
  const { problems, streams, nullPackets } = checkTs(ts);
  assertEquals(problems, []);
  assertEquals(streams[0]!.units.length, 1000);
  assertLess(nullPackets * 188 / 34, 20_000);
});

/** A film of MPEG-2 pictures at these times, ms, without a DefaultDuration; Cues name each second. */
function undeclared(times: readonly number[], pictureBytes: number): Uint8Array {
  const picture = new Uint8Array(pictureBytes).fill(7);
  picture.set([0, 0, 1, 0xb3]);
  const last = Math.floor(times.at(-1)! / 1000);
  const seconds = Array.from({ length: last + 1 }, (_, second) => {
    const own = times.filter((time) => Math.floor(time / 1000) === second);
    return cluster(second * 1000, own.map((time) => simpleBlock(1, time - second * 1000, 0x80, picture)));
  });
  const at = (second: number) => seconds.slice(0, second).reduce((sum, part) => sum + part.length, 0);
  return matroska(seconds, {
    tracks: [trackEntry(1, "video", "V_MPEG2")],
    durationMs: times.at(-1)! + 40,
    after: (base) => [cues(base, seconds.map((_, second) => [second * 1000, at(second), 3 + 1]))],
  });
}

test("openMatroska() counts the pictures at the start of a film that does not say its frame rate", async () => {
  const even = undeclared(Array.from({ length: 500 }, (_, i) => i * 40), 2000);
  const { ts } = await openBytes(even);
  assertLess(ts.sizeBytes!, 1.25 * even.length);
});

test("openMatroska() has room for many pictures where those at the start are few or uneven", async () => {
  for (const startMs of [200, 70]) {
    const start = Array.from({ length: 40 }, (_, i) => i * startMs + (i % 3) * 25);
    const times = [
      ...start,
      ...Array.from({ length: 600 }, (_, i) => start.at(-1)! + 1000 + Math.round(i * 1000 / 60)),
    ];
    const file = undeclared(times, 1200);
    const { ts, faults } = await openBytes(file);
    const { streams } = checkTs(await collect(ts.read(0, null, new MemorySource(file), NEVER)));
    assertEquals([streams[0]!.units.length, faults!.counts.dropped], [times.length, 0]);
  }
});

test("readRun() yields the same for a run read alone, repeatedly and by single tracks", async () => {
  const opened = await open(fixture("mkv-open-gop.mkv"));
  const whole = await samples(opened);
  const apart: typeof whole = [];
  for (const run of [...opened.timeline.runs].reverse()) apart.unshift(...await samples(opened, run.index));
  assertEquals(short(apart), short(whole));
  const audio = [];
  for await (const batch of opened.timeline.readRun(2, new Set([1]), opened.source, never)) audio.push(...batch);
  assertEquals(short(audio), short((await samples(opened, 2)).filter((s) => s.track === 1)));
});

test("readRun() makes decoding times from presentation times, the lag being one frame at depth 1", async () => {
  const opened = await open(matroska([cluster(0, [
    simpleBlock(1, 0, 0x80, frame(1)),
    simpleBlock(1, 120, 0, frame(2)),
    simpleBlock(1, 40, 0, frame(3)),
    blockGroup(1, 80, 40, frame(4)),
    blockGroup(1, 160, null, frame(5)),
  ])]));
  assertEquals(short(await samples(opened)), ["0:40/0k", "0:160/40", "0:80/80", "0:120/120", "0:200/160k"]);
});

test("readRun() keeps DTS below PTS when the frame rate drops below DefaultDuration", async () => {
  const opened = await open(matroska([cluster(0, [
    simpleBlock(1, 0, 0x80, frame(1)),
    simpleBlock(1, 900, 0, frame(2)),
    simpleBlock(1, 500, 0, frame(3)),
    simpleBlock(1, 1300, 0, frame(4)),
    simpleBlock(1, 1100, 0, frame(5)),
  ])]));
  const list = await samples(opened);
  assertEquals(list.map((s) => s.pts90k / 90 - 40), [0, 900, 500, 1300, 1100]);
  list.forEach((s, i) => assert(s.dts90k <= s.pts90k && (i === 0 || s.dts90k > list[i - 1]!.dts90k)));
});

test("openMatroska() without Cues divides the file evenly and every run begins at a keyframe cluster", async () => {
  const clusters = Array.from({ length: 120 }, (_, i) => second(i * 1000));
  const opened = await open(matroska(clusters, { durationMs: 120_000 }));
  assertEquals(opened.timeline.runs.length, 24);
  assert(opened.timeline.runs.every((run) => run.maxPayloadBytes === null));
  const marks: number[] = [];
  for (const run of opened.timeline.runs) {
    const list = await samples(opened, run.index);
    assert(list.find((s) => s.track === 0)!.keyframe);
    marks.push(...list.filter((s) => s.track === 0 && s.keyframe).map((s) => s.data[1]!));
  }
  assertEquals(marks, clusters.map((_, i) => i));
});

test("openMatroska() reads less than 64 KB of a 2 h film with Cues at its end", async () => {
  const size = 6e9;
  const first = second(0);
  const head = matroska([first], { durationMs: 7_200_000 });
  const base = head.length - first.length - EBML_HEAD.length - 12;
  const step = (size - 200_000) / 1440;
  const points = Array.from({ length: 1440 }, (_, i) => [i * 5000, Math.floor(i * step), 11] as const);
  const tail = compactCues(base, points);
  const tailAt = size - tail.length;
  const front = head.slice();
  // The Seek entry is the first child of the segment; its position ends it.
  new DataView(front.buffer).setBigUint64(
    EBML_HEAD.length + 12 + 12 + 10 + 14 + 10,
    BigInt(tailAt - EBML_HEAD.length - 12),
  );
  new DataView(front.buffer).setBigUint64(
    EBML_HEAD.length + 4,
    0x0100000000000000n + BigInt(size - EBML_HEAD.length - 12),
  );
  const parts = [
    { at: 0, bytes: front },
    { at: head.length - first.length + points[1]![1], bytes: second(5000) },
    { at: tailAt, bytes: tail },
  ];
  const source = new CountingSource(new SparseSource(size, parts));
  const { timeline } = await open(source);
  assertEquals(timeline.runs.length, 1440);
  assertLess(source.bytesRead, 65_536);
});

/** Cues with sizes as short as muxers write them. */
function compactCues(base: number, points: readonly (readonly [number, number, number])[]): Uint8Array {
  const small = (id: number, body: Uint8Array) => concatBytes([frame(...idBytes(id)), frame(0x80 | body.length), body]);
  const number = (value: number) => frame(...bytesOf(value));
  const list = points.map(([time, position, relative]) =>
    small(
      0xbb,
      concatBytes([
        small(0xb3, number(time)),
        small(
          0xb7,
          concatBytes([small(0xf7, number(1)), small(0xf1, number(base + position)), small(0xf0, number(relative))]),
        ),
      ]),
    )
  );
  return element(0x1c53bb6b, list);
}

function bytesOf(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; rest > 0 || bytes.length === 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return bytes;
}

const idBytes = bytesOf;
