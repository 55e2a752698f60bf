import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import {
  cluster,
  cues,
  EBML_HEAD,
  element,
  floatBytes,
  matroska,
  open,
  openElement,
  samples,
  second,
  simpleBlock,
  trackEntry,
} from "./mkv-support.ts";
import { concatBytes } from "../../src/bytes/hex.ts";

const frame = (...bytes: number[]) => new Uint8Array(bytes);

test("readRun() undoes Xiph, EBML and fixed lacing, and spaces the frames", async () => {
  const audio = (flags: number, payload: Uint8Array) =>
    matroska([cluster(0, [simpleBlock(1, 10, flags, payload)])], {
      tracks: [trackEntry(1, "audio", "A_AC3", [element(0xe1, [element(0xb5, floatBytes(48000))])])],
    });
  const bodies = async (bytes: Uint8Array) => {
    const list = await samples(await open(bytes));
    return list.map((s) => `${s.pts90k / 90}:${[...s.data.subarray(0, 3)]}(${s.data.length})`);
  };
  const big = new Uint8Array(300).fill(7);
  assertEquals(await bodies(audio(0x82, concatBytes([frame(2, 255, 45, 1), big, frame(8), frame(9, 9)]))), [
    "10:7,7,7(300)",
    "42:8(1)",
    "74:9,9(2)",
  ]);
  assertEquals(await bodies(audio(0x84, frame(2, 1, 2, 3, 4, 5, 6))), ["10:1,2(2)", "42:3,4(2)", "74:5,6(2)"]);
  // EBML: 300 in two bytes, then the difference -298 in two bytes (-298 + 8191), then the rest.
  const difference = 0x4000 | (8191 - 298);
  assertEquals(
    await bodies(
      audio(0x86, concatBytes([frame(2, 0x41, 0x2c, difference >> 8, difference & 255), big, frame(4, 4), frame(5)])),
    ),
    ["10:7,7,7(300)", "42:4,4(2)", "74:5(1)"],
  );
  assertEquals(await bodies(audio(0x84, frame(2, 1, 2, 3, 4))), []);
  assertEquals(await bodies(audio(0x82, frame(200, 255, 255))), []);
});

test("readRun() puts stripped headers back and counts them in the bound", async () => {
  const strip = element(0x6d80, [
    element(0x6240, [element(0x5034, [element(0x4254, 3), element(0x4255, frame(0x0b, 0x77))])]),
  ]);
  const clusters = [cluster(0, [simpleBlock(1, 0, 0x80, frame(1, 2)), simpleBlock(1, 32, 0x80, frame(3))])];
  const opened = await open(matroska(clusters, {
    tracks: [trackEntry(1, "audio", "A_AC3", [strip])],
    durationMs: 64,
    after: (base) => [cues(base, [[0, 0, 0]])],
  }));
  assertEquals((await samples(opened)).map((s) => [...s.data]), [[0x0b, 0x77, 1, 2], [0x0b, 0x77, 3]]);
  assert(opened.timeline.runs[0]!.maxPayloadBytes! >= 7);
});

test("readRun() decompresses frames, and leaves out damaged ones and those that grow too much", async () => {
  const zlib = (scope: number) =>
    element(0x6d80, [element(0x6240, [element(0x5032, scope), element(0x5034, [element(0x4254, 0)])])]);
  const packed = (bytes: Uint8Array) => new Uint8Array(deflateSync(bytes));
  const sound = new Uint8Array(3000).fill(5);
  const clusters = [
    cluster(0, [
      simpleBlock(1, 0, 0x80, packed(frame(1, 2))),
      simpleBlock(2, 0, 0x80, packed(sound)),
      simpleBlock(1, 40, 0, frame(0x78, 0x9c, 1)),
      simpleBlock(1, 80, 0, packed(new Uint8Array(1024 * 1024))),
    ]),
    cluster(2000, [simpleBlock(1, 0, 0x80, packed(frame(3)))]),
  ];
  const tracks = (scope: number) => [
    trackEntry(1, "video", "V_MPEG2", [zlib(scope), element(0x63a2, packed(frame(9, 8, 7)))]),
    trackEntry(2, "audio", "A_AC3", [zlib(1)]),
  ];
  for (const [scope, codecPrivate] of [[1, packed(frame(9, 8, 7))], [3, frame(9, 8, 7)]] as const) {
    const opened = await open(matroska(clusters, {
      tracks: tracks(scope),
      durationMs: 4000,
      after: (base) => [cues(base, [[0, 0, null], [2000, clusters[0]!.length, null]])],
    }));
    assertEquals(opened.index.tracks.map(({ codec }) => codec), ["mpeg2video", "ac3"]);
    assertEquals(opened.index.tracks[0]!.codecPrivate, codecPrivate);
    const list = await samples(opened);
    const bytesOf = (track: number) => list.filter((one) => one.track === track).map(({ data }) => data);
    assertEquals(bytesOf(0), [frame(1, 2), frame(3)]);
    assertEquals(bytesOf(1), [sound]);
    // Nothing says in advance how large frames become.
    assertEquals(opened.timeline.runs.map(({ maxPayloadBytes }) => maxPayloadBytes), [null, null]);
  }
});

function lengths(clusters: readonly Uint8Array[]): number[] {
  let at = 0;
  return clusters.map((part) => (at += part.length) - part.length);
}

test("readRun() cuts inside a cluster where the cue says so", async () => {
  const lead = [simpleBlock(2, -20, 0x80, frame(9)), simpleBlock(1, -100, 0, frame(8))];
  const clusters = [second(0), second(2000, lead), second(4000)];
  const at = lengths(clusters);
  // After the cluster's Timestamp (1-byte ID, 8 of size, 2 of value) come the two leading blocks.
  const relative = 11 + lead[0]!.length + lead[1]!.length;
  const file = (block: number | null) =>
    matroska(clusters, {
      durationMs: 6000,
      after: (base) => [cues(base, [[0, at[0]!, null], [2000, at[1]!, block], [4000, at[2]!, null]])],
    });
  for (const block of [relative, null]) {
    const opened = await open(file(block));
    assertEquals(opened.timeline.runs.length, 3);
    assertEquals((await samples(opened, 0)).map((s) => s.data[0]!).sort(), [1, 2, 3, 8, 9]);
    assertEquals((await samples(opened, 1)).find((s) => s.track === 0)!.keyframe, true);
    assertEquals((await samples(opened)).length, 11);
  }
});

test("readRun() loses and repeats nothing when cues point to audio or beside the clusters", async () => {
  const clusters = [second(0), second(2000), second(4000), second(6000)];
  const at = lengths(clusters);
  const file = (points: readonly (readonly [number, number, number | null])[], track = 1) =>
    matroska(clusters, { durationMs: 8000, after: (base) => [cues(base, points, track)] });
  const wrong = [
    file([[0, at[0]!, null], [2000, at[1]! + 5, null], [4000, at[2]! - 3, 4], [6000, at[3]!, null]]),
    file([[0, at[0]!, null], [2000, at[1]!, 9], [4000, at[2]!, null]], 2),
    file([[2000, at[1]!, 100_000], [4000, at[2]!, 3]]),
    file([[2000, at[1]! + 1, null], [4000, at[1]! + 2, null], [6000, at[1]! + 3, null]]),
    file([[2000, 0, null], [4000, 1e9, null]]),
  ];
  for (const [i, bytes] of wrong.entries()) {
    const opened = await open(bytes);
    const marks = (await samples(opened)).filter((s) => s.track === 0 && s.keyframe).map((s) => s.data[1]);
    assertEquals(marks, [0, 2, 4, 6], `file ${i}`);
    assertEquals((await samples(opened)).length, 12, `file ${i}`);
  }
});

test("readRun() reads clusters and segments of unknown size, Void and CRC-32", async () => {
  const head = matroska([second(0)]);
  const tracks = head.subarray(0, head.length - second(0).length);
  const opening = concatBytes([EBML_HEAD, uintBytesOfSegment(), tracks.subarray(EBML_HEAD.length + 12)]);
  const live = (time: number) =>
    openElement(0x1f43b675, [
      element(0xbf, frame(1, 2, 3, 4)),
      element(0xe7, time),
      element(0xec, new Uint8Array(20)),
      simpleBlock(1, 0, 0x80, frame(time / 1000)),
    ]);
  const opened = await open(
    concatBytes([opening, live(0), live(1000), element(0x1254c367, [element(0x7373, 1)]), live(2000)]),
  );
  assertEquals((await samples(opened)).map((s) => s.data[0]), [0, 1, 2]);
  assertEquals(opened.timeline.runs[0]!.maxPayloadBytes, null);
  assertEquals(Math.round(opened.index.durationMs!), 2000);
});

function uintBytesOfSegment(): Uint8Array {
  return new Uint8Array([0x18, 0x53, 0x80, 0x67, 0x01, 255, 255, 255, 255, 255, 255, 255]);
}

test("readRun() skips damage up to the next cluster and stops quietly where the file is cut off", async () => {
  const clusters = [second(0), second(2000), second(4000)];
  const bytes = matroska(clusters, { durationMs: 6000 });
  const start = bytes.length - clusters[1]!.length - clusters[2]!.length;
  const damaged = bytes.slice();
  damaged.fill(0, start + 24, start + 34);
  const keys = async (data: Uint8Array) =>
    (await samples(await open(data))).filter((s) => s.track === 0 && s.keyframe).map((s) => s.data[1]);
  assertEquals(await keys(damaged), [0, 4]);
  assertEquals(await keys(bytes.subarray(0, bytes.length - 10)), [0, 2, 4]);
  const { index } = await open(bytes.subarray(0, bytes.length - 10));
  assert(index.warnings.includes("the file is cut off at its end"));
});
