/** Matroska files that claim more than they hold: their cost stays in proportion to their size. */
import { test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import { splitFrames } from "../../src/media/index/mkv/block.ts";
import { readCues } from "../../src/media/index/mkv/cue-list.ts";
import { MemorySource } from "../support/memory-source.ts";
import {
  cluster,
  cues,
  element,
  floatBytes,
  matroska,
  never,
  open,
  samples,
  simpleBlock,
  trackEntry,
} from "./mkv-support.ts";
import { collect, NEVER, openBytes } from "./support/files.ts";

const picture = new Uint8Array(1000).fill(7);
const second = (n: number) => cluster(n * 1000, [simpleBlock(1, 0, 0x80, picture)]);

/** The payload of a Cues element with points at `times`. */
function cuesData(times: readonly number[], track = 1): Uint8Array {
  return cues(0, times.map((time) => [time, time, null] as const), track).subarray(12);
}

const LACES: readonly (readonly [name: string, flags: number, payload: readonly number[], frames: number | null])[] = [
  ["fixed laces", 4, [1, 5, 6], 2],
  ["fixed laces without bytes", 4, [255], null],
  ["fixed laces that do not divide", 4, [1, 5, 6, 7], null],
  ["Xiph laces of no bytes", 2, [2, 0, 0, 9], 3],
  ["Xiph laces beyond the end", 2, [1, 255, 255], null],
  ["EBML laces below zero", 6, [2, 0x81, 0x80, 1, 2], null],
];
for (const [name, flags, payload, frames] of LACES) {
  test(`splitFrames() finds ${frames ?? "no"} frames in ${name}`, () => {
    const found = splitFrames(new Uint8Array(payload), 0, payload.length, flags);
    assertEquals(found?.length ?? null, frames);
  });
}

const CUES: readonly (readonly [name: string, times: readonly number[], kept: number])[] = [
  ["one a second", Array.from({ length: 5000 }, (_, i) => i * 1000), 5000],
  ["forty a second", Array.from({ length: 4000 }, (_, i) => i * 25), 400],
  ["all at one time", Array.from({ length: 4000 }, () => 7), 1],
];
for (const [name, times, kept] of CUES) {
  test(`readCues() keeps ${kept} entries of ${times.length}, ${name}`, async () => {
    assertEquals((await readCues(cuesData(times), never)).length, kept);
  });
}

test("readCues() keeps a bounded list spread over the whole file, and of a disorderly one the beginning", async () => {
  const even = await readCues(cuesData(Array.from({ length: 150_000 }, (_, i) => i * 1000)), never);
  assertLess(even.length, 100_001);
  assertLess(140_000_000, even.at(-1)!.time);
  const back = await readCues(cuesData(Array.from({ length: 150_000 }, (_, i) => 1e9 - i)), never);
  assertLess(back.length, 100_002);
});

const CLAIMS: readonly (readonly [name: string, file: () => Uint8Array])[] = [
  ["a duration of 30,000 years", () => matroska([second(0), second(1)], { durationMs: 1e15 })],
  ["a duration of 30,000 years and Cues", () =>
    matroska([second(0), second(1)], {
      durationMs: 1e15,
      after: (base) => [cues(base, [[0, 0, null], [1000, second(0).length, null]])],
    })],
  [
    "10,000 Cues at one place",
    () =>
      matroska([second(0)], {
        after: (base) => [cues(base, Array.from({ length: 10_000 }, (_, i) => [i * 5000, 0, i]))],
      }),
  ],
  ["32 tracks of a thousand million frames a second", () =>
    matroska([second(0), second(2), second(4)], {
      durationMs: 6000,
      tracks: Array.from({ length: 32 }, (_, i) =>
        trackEntry(i + 1, i === 0 ? "video" : "audio", i === 0 ? "V_MPEG2" : "A_AC3", [
          element(0x23e383, 1),
          element(0xe1, [element(0xb5, floatBytes(1e30))]),
        ])),
      after: (base) => [cues(base, [[2000, second(0).length, null], [4000, second(0).length * 2, null]])],
    })],
];
for (const [name, make] of CLAIMS) {
  test(`openMedia() makes no endless stream of a small file with ${name}`, async () => {
    const file = make();
    const { ts, hls, durationMs } = await openBytes(file);
    const length = ts.sizeBytes ?? (await collect(ts.read(0, null, new MemorySource(file), NEVER))).length;
    assertLess(length, 500_000 + 20 * file.length);
    assertLess(hls.segments.length, 100);
    assertLess(durationMs!, 1e8);
  });
}

test("TsLayout.read() yields a run's first bytes long before its last are read, whatever its times are", async () => {
  const same = Array.from({ length: 64 }, () => simpleBlock(1, 0, 0x80, new Uint8Array(500_000)));
  const file = matroska([cluster(0, same)], { durationMs: 1000 });
  let read = 0;
  const inner = new MemorySource(file);
  const source = {
    sizeBytes: file.length,
    read: (...range: Parameters<typeof inner.read>) => {
      read = range[0] + range[1];
      return inner.read(...range);
    },
  };
  const { ts } = await openBytes(file);
  for await (const chunk of ts.read(0, null, source, NEVER)) {
    assert(chunk.length > 0);
    break;
  }
  assertLess(read, 8e6);
});

test("readRun() yields small frames in small batches and leaves out blocks with impossible times", async () => {
  const laced = simpleBlock(2, 0, 0x84, new Uint8Array(257).fill(255, 0, 1));
  const file = matroska([
    cluster(0, [simpleBlock(1, 0, 0x80, picture), ...Array.from({ length: 100 }, () => laced)]),
    cluster(2 ** 52, [simpleBlock(1, 0, 0x80, picture)]),
  ], { durationMs: 1000 });
  const { index, timeline, source } = await open(file);
  for await (const batch of timeline.readRun(0, new Set(index.tracks.keys()), source, never)) {
    assertLess(batch.length, 1000);
  }
  assertEquals((await samples({ index, timeline, source })).length, 1 + 25_600);
});
