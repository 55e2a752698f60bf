import { test } from "node:test";
import { assert, assertEquals, assertLess, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { openWavBlocks } from "../../src/media/index/audio/wav-blocks.ts";
import { wavCoding } from "../../src/media/index/audio/wav-format.ts";
import type { MediaIndex, RunSample } from "../../src/media/model/timeline.ts";
import { MemorySource } from "../support/memory-source.ts";
import { CountingSource, NEVER, openBytes, seeded } from "./support/files.ts";

/** A WAV file of format `tag`, with a chunk of other things before the sound. */
function wav(tag: number, { blockBytes = 1, blockSamples = 0, dataBytes = 200_000, rate = 8000 } = {}): Uint8Array {
  const bytes = new Uint8Array(12 + 8 + 20 + 8 + 11 + 1 + 8 + dataBytes);
  const view = new DataView(bytes.buffer);
  const text = (at: number, value: string) => bytes.set(new TextEncoder().encode(value), at);
  text(0, "RIFF\0\0\0\0WAVEfmt ");
  view.setUint32(16, 20, true);
  view.setUint16(20, tag, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, rate, true);
  view.setUint16(32, blockBytes, true);
  view.setUint16(34, 8, true);
  view.setUint16(36, 2, true);
  view.setUint16(38, blockSamples, true);
  text(40, "LIST");
  view.setUint32(44, 11, true);
  text(60, "data");
  view.setUint32(64, dataBytes, true);
  for (let i = 0; i < dataBytes; i++) bytes[68 + i] = i % 253;
  return bytes;
}

async function samplesOf({ timeline }: MediaIndex, bytes: Uint8Array): Promise<RunSample[]> {
  assert(timeline.kind === "streamed");
  const runs: RunSample[][] = [];
  for (const { index } of timeline.runs.toReversed()) {
    const own: RunSample[] = [];
    for await (const batch of timeline.readRun(index, new Set([0]), new MemorySource(bytes), NEVER)) own.push(...batch);
    runs[index] = own;
  }
  return runs.flat();
}

test("openWavBlocks() yields every block at its time, run by run in any order, and reads only what is requested", async () => {
  const cases: [tag: number, bytes: number, samples: number, codecId: string][] = [
    [6, 1024, 1024, "A-law"],
    [7, 1024, 1024, "µ-law"],
    [2, 256, 500, "ADPCM"],
    [0x11, 512, 1017, "IMA ADPCM"],
    [0x31, 65, 320, "GSM"],
  ];
  for (const [tag, blockBytes, blockSamples, codecId] of cases) {
    const bytes = wav(tag, tag < 3 || tag > 7 ? { blockBytes, blockSamples } : {});
    const source = new CountingSource(bytes);
    const index = await openWavBlocks(source, { signal: NEVER });
    assertLess(source.bytesRead, 100);
    assertEquals([index!.tracks[0]!.codecId, index!.tracks[0]!.matroskaId], [codecId, "A_MS/ACM"]);
    const samples = await samplesOf(index!, bytes);
    assertEquals(samples.length, Math.ceil(200_000 / blockBytes));
    for (const [i, { pts90k, data }] of samples.entries()) {
      assertEquals(pts90k, Math.round(i * blockSamples * 90_000 / 8000));
      const at = 68 + i * blockBytes;
      assertEquals(data, bytes.subarray(at, Math.min(at + blockBytes, 68 + 200_000)));
    }
  }
});

test("openWavBlocks() opens no other sound, which wavCoding() names", async () => {
  const extensible = wav(0xfffe);
  new DataView(extensible.buffer).setUint16(44, 6, true);
  const cases: [bytes: Uint8Array, coding: string | null][] = [
    [wav(1), null],
    [wav(3), null],
    [wav(0x55), "MP3"],
    [wav(0x1234), "WAV format 4660"],
    [wav(2), "ADPCM"],
    [extensible, "A-law"],
    [wav(1).subarray(0, 22), null],
    [wav(1).subarray(0, 21), null],
  ];
  for (const [bytes, coding] of cases) {
    assertEquals(wavCoding(bytes.subarray(0, 4096)), coding);
    const index = await openWavBlocks(new MemorySource(bytes), { signal: NEVER }).catch((error) => error);
    assert(index === null || index instanceof Error);
  }
  const error = await assertRejects(() => openBytes(wav(0x55)), MillraceError);
  assertEquals([error.code, error.message.includes("MP3")], ["unsupported_media", true]);
});

test("openWavBlocks() survives damaged heads with bounded reads", async () => {
  const random = seeded(9);
  for (let round = 0; round < 300; round++) {
    const bytes = wav([2, 6, 0x11][round % 3]!, { blockBytes: 256, blockSamples: 500, dataBytes: 20_000 });
    for (let i = 0; i < 1 + random() * 6; i++) bytes[12 + Math.floor(random() * 56)] = Math.floor(random() * 256);
    try {
      const source = new CountingSource(bytes);
      const index = await openWavBlocks(source, { signal: NEVER });
      assertLess(source.reads.length, 200);
      if (index === null) continue;
      const samples = await samplesOf(index, bytes);
      assertLess(samples.reduce((sum, { data }) => sum + data.length, 0), bytes.length);
    } catch (error) {
      assert(error instanceof MillraceError, String((error as Error).stack));
    }
  }
});
