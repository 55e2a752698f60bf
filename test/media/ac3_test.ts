import { test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import { ac3Frame as readFrame } from "../../src/bytes/ac3-frames.ts";
import { sniffContainer } from "../../src/bytes/container.ts";
import { openFrames } from "../../src/media/index/audio/frames.ts";
import { presentIndex } from "../../src/media/presentation/presentation.ts";
import { MemorySource } from "../support/memory-source.ts";
import { soundFrames } from "../support/sound-frames.ts";
import { checkTs } from "../support/ts-check.ts";
import { ac3Frame, concatBytes, constantMp3, eac3Frame } from "./support/audio-builder.ts";
import { collect, CountingSource, fixture, NEVER, openBytes, seeded, UNCOUNTED } from "./support/files.ts";

const LAZY = { signal: NEVER, wholeBytes: 0 };

test("sniffContainer() recognises AC-3 and E-AC-3, in the middle of a frame and with frames longer than the head", () => {
  const frames = Array.from({ length: 6 }, () => ac3Frame(1));
  const cases: [string, Uint8Array, string | null][] = [
    ["AC-3", concatBytes(frames), "ac3"],
    ["AC-3 cut within a frame", concatBytes([frames[0]!.subarray(1000), ...frames]), "ac3"],
    ["E-AC-3", concatBytes(Array.from({ length: 9 }, () => eac3Frame(512))), "ac3"],
    ["E-AC-3 with frames of 4 KiB", concatBytes([eac3Frame(4096), eac3Frame(4096)]), "ac3"],
    ["a sync word alone", concatBytes([new Uint8Array([0x0b, 0x77]), new Uint8Array(4094).fill(0xff)]), null],
    ["MP3", concatBytes(constantMp3(40)), "mp3"],
  ];
  for (const [what, bytes, expected] of cases) assertEquals(sniffContainer(bytes.subarray(0, 4096)), expected, what);
});

test("ac3Frame() reads sizes, channels and rates of all versions, and takes dependent substreams along", () => {
  const at44 = new Uint8Array([0x0b, 0x77, 0, 0, 0x40 | 20 | 1, 8 << 3, 0x40, 0]);
  const halfRate = new Uint8Array([0x0b, 0x77, 0, 99, 0xc0 | 0x20 | 4, 16 << 3, 0, 0]);
  const old = new Uint8Array([0x0b, 0x77, 0, 0, 20, 6 << 3, 0x40, 0]);
  const cases: [string, Uint8Array, [bytes: number, samples: number, rate: number, channels: number] | null][] = [
    ["AC-3 of 448 kb/s, 5.1", ac3Frame(), [1792, 1536, 48000, 6]],
    ["AC-3 of 192 kb/s at 44.1 kHz, the longer frame, stereo", at44, [836, 1536, 44100, 2]],
    ["AC-3 of an early version", old, [768, 1536, 48000, 2]],
    ["E-AC-3", eac3Frame(1024), [1024, 1536, 48000, 6]],
    ["E-AC-3 of 16 kHz", halfRate, [200, 1536, 16000, 2]],
    ["with a dependent substream", concatBytes([eac3Frame(1024), eac3Frame(512, 1), eac3Frame(1024)]), [
      1536,
      1536,
      48000,
      6,
    ]],
    ["AC-3 with a dependent substream", concatBytes([ac3Frame(), eac3Frame(512, 1)]), [2304, 1536, 48000, 6]],
    ["with another programme", concatBytes([eac3Frame(1024), eac3Frame(256, 0, 1)]), [1280, 1536, 48000, 6]],
    ["a dependent substream alone", eac3Frame(512, 1), null],
    ["a version of neither", new Uint8Array([0x0b, 0x77, 0, 0, 20, 9 << 3, 0x40, 0]), null],
    ["a reserved rate", new Uint8Array([0x0b, 0x77, 0, 0, 0xc0, 8 << 3, 0x40, 0]), null],
    ["a reserved size", new Uint8Array([0x0b, 0x77, 0, 0, 38, 8 << 3, 0x40, 0]), null],
    ["cut off", ac3Frame().subarray(0, 6), null],
  ];
  for (const [what, bytes, expected] of cases) {
    const frame = readFrame(bytes, 0);
    if (expected === null) assertEquals(frame, null, what);
    else assertEquals([frame!.sizeBytes, frame!.samples, frame!.sampleRate, frame!.channels], expected, what);
  }
});

for (const [name, codec] of [["audio.ac3", "ac3"], ["audio-44.ac3", "ac3"], ["audio.eac3", "eac3"]] as const) {
  test(`openMedia() plays ${name} in one piece and by ranges, with all its frames, read whole or run by run`, async () => {
    const bytes = fixture(name);
    const whole = await openBytes(bytes);
    assertEquals(whole.outputTracks.map((track) => track.codec), [codec]);
    const lazy = await presentIndex(await openFrames(new MemorySource(bytes), "ac3", LAZY), {}, UNCOUNTED);
    for (const { ts, hls, durationMs } of [whole, lazy]) {
      assert(Math.abs(durationMs! - 6000) < 40, `${durationMs} ms`);
      const out = await collect(ts.read(0, null, new MemorySource(bytes), NEVER));
      assertEquals(out.length, ts.sizeBytes);
      const { problems, streams } = checkTs(out);
      assertEquals(problems, []);
      const frames = soundFrames(streams[0]!);
      assertEquals(concatBytes(frames.map(({ data }) => data)), bytes);
      const samples = codec === "eac3" ? 1536 * 90 / 48 : 1536 * 90 / (name === "audio.ac3" ? 48 : 44.1);
      for (const [n, { pts }] of frames.entries()) assertLess(Math.abs(pts - frames[0]!.pts - n * samples), 2);
      const middle = Math.floor(out.length / 2);
      assertEquals(
        await collect(ts.read(middle, middle + 3000, new MemorySource(bytes), NEVER)),
        out.slice(middle, middle + 3000),
      );
      const parts: Uint8Array[] = [];
      for (const { index } of [...hls.segments].reverse()) {
        parts.unshift(await collect(hls.readSegment(index, new MemorySource(bytes), NEVER)));
      }
      assertEquals(concatBytes(parts), out);
    }
  });
}

test("openFrames() finds frames of one bit rate with their dependent substreams by computing, and reads little", async () => {
  const units = Array.from(
    { length: 3000 },
    (_, n) => [eac3Frame(1024, 0, 0, n & 0x7f), eac3Frame(512, 1, 0, n & 0x7f)],
  );
  const bytes = concatBytes(units.flat());
  const source = new CountingSource(bytes);
  const { ts, hls } = await presentIndex(await openFrames(source, "ac3", LAZY), {}, UNCOUNTED);
  assertLess(source.bytesRead, 300_000);
  const last = hls.segments.at(-2)!;
  const segment = checkTs(await collect(hls.readSegment(last.index, new MemorySource(bytes), NEVER)));
  const first = Math.round(last.startMs / 32);
  const { units: found } = segment.streams[0]!;
  assertEquals(found.length, Math.round(last.durationMs / 32));
  for (const [n, { data }] of found.entries()) assertEquals(data, concatBytes(units[first + n]!));
  assertEquals((await collect(ts.read(0, null, new MemorySource(bytes), NEVER))).length, ts.sizeBytes);
});

test("openFrames() survives damaged AC-3 with bounded reads", async () => {
  const random = seeded(3);
  for (const name of ["audio.ac3", "audio.eac3"]) {
    const original = fixture(name);
    for (let round = 0; round < 60; round++) {
      const bytes = original.slice(0, Math.ceil(original.length * (round % 3 === 0 ? random() : 1)));
      for (let i = 0; i < 1 + random() * 40; i++) {
        bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
      }
      const presentation = await openFrames(new MemorySource(bytes), "ac3", { ...LAZY, segmentTargetMs: 500 })
        .then((index) => presentIndex(index, {}, UNCOUNTED), () => null);
      if (presentation === null) continue;
      const source = new CountingSource(bytes);
      const out = await collect(presentation.ts.read(0, null, source, NEVER));
      if (presentation.ts.sizeBytes !== null) assertEquals(out.length, presentation.ts.sizeBytes);
      assertLess(source.bytesRead, 10 * bytes.length + 300_000);
    }
  }
});
