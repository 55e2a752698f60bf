/** Frames on the grid of a file's timeline, made by an encoder that numbers what it makes. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { concatBytes } from "../../src/bytes/hex.ts";
import { type FrameJob, frameTicks, makeFrames, PREROLL_FRAMES } from "../../src/media/transcode/frame-job.ts";
import type { AudioEncoder, EncodeJob } from "../../src/media/model/audio-target.ts";
import { NEVER } from "./support/files.ts";

/** An ADTS frame that holds `number`. */
function adts(number: number): Uint8Array {
  return new Uint8Array([0xff, 0xf1, 0x4c, 0x80, 1, 0x1f, 0xfc, number]);
}

/** Makes `count` frames, of which the first primes the decoder. */
class CountingEncoder implements AudioEncoder {
  readonly jobs: EncodeJob[] = [];
  readonly #count: number;
  constructor(count: number) {
    this.#count = count;
  }
  isAvailable(): Promise<boolean> {
    return Promise.resolve(true);
  }
  encode(job: EncodeJob): Promise<Uint8Array> {
    this.jobs.push(job);
    return Promise.resolve(concatBytes(Array.from({ length: this.#count }, (_, i) => adts(i))));
  }
}

const JOB: FrameJob = {
  container: "matroska",
  target: "aac",
  channels: 2,
  bitsPerSecond: 160_000,
  from: 100,
  to: 103,
  earliest: 0,
  maxFrames: 10,
  input: () => new Uint8Array(),
};

test("makeFrames() encodes some frames before the first one wanted, as far as there is sound, and leaves them out", async () => {
  const table: [string, Partial<FrameJob>, encoded: number, made: number[]][] = [
    ["with sound before", {}, 100 - PREROLL_FRAMES, [5, 6, 7]],
    ["where the sound begins", { earliest: 100 }, 100, [1, 2, 3]],
    ["shortly after that", { earliest: 98 }, 98, [3, 4, 5]],
  ];
  for (const [what, more, first, expected] of table) {
    const encoder = new CountingEncoder(20);
    const origins: number[] = [];
    const input = (origin90k: number) => {
      origins.push(origin90k);
      return new Uint8Array();
    };
    const made = await makeFrames(encoder, { ...JOB, ...more, input }, NEVER);
    assertEquals(made.map((frame) => [...frame]), expected.map((number) => [number]), what);
    // The input's times begin 1 s early, so that none is negative.
    assertEquals([origins, encoder.jobs[0]!.firstSample], [[first * frameTicks("aac") - 90_000], 48_000], what);
  }
});

test("makeFrames() returns fewer frames when the sound ends early, none when it is over before", async () => {
  const numbers = async (count: number) =>
    (await makeFrames(new CountingEncoder(count), JOB, NEVER)).map((frame) => frame[0]);
  assertEquals(await numbers(7), [5, 6]);
  assertEquals(await numbers(3), []);
});
