/** Frames of tabled sound that share a PES: every frame has its time, any range can be made alone, and the overhead is small. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { MemorySource } from "../support/memory-source.ts";
import { soundFrames } from "../support/sound-frames.ts";
import { checkTs } from "../support/ts-check.ts";
import { collect, CountingSource, NEVER, openBytes, seeded } from "./support/files.ts";
import { aacEntry, contiguousTables, fileOf, fullBox, movieBox, type TrackSpec, u32 } from "./support/mp4-builder.ts";

const COUNT = 2000;
/** Frames of 30 to 69 bytes: 18 kbit/s. */
const FRAMES = Array.from({ length: COUNT }, (_, i) => new Uint8Array(30 + i * 7 % 40).fill(i));

/** Sound at 48 kHz; `tables` may change its tables. */
function soundFile(tables: (given: Uint8Array[]) => Uint8Array[] = (given) => given): Uint8Array {
  const track = (offset: number): TrackSpec => ({
    id: 1,
    kind: "soun",
    timescale: 48_000,
    entry: aacEntry(),
    tables: tables(contiguousTables(FRAMES.map(({ length }) => length), 1024, offset)),
  });
  return fileOf((offset) => movieBox([track(offset)]), FRAMES);
}

async function played(file: Uint8Array) {
  const { ts } = await openBytes(file);
  const whole = await collect(ts.read(0, null, new MemorySource(file), NEVER));
  assertEquals(whole.length, ts.sizeBytes);
  const report = checkTs(whole);
  assertEquals(report.problems, []);
  return { ts, whole, stream: report.streams[0]! };
}

test("TabledMuxer puts several frames of sound into a PES, each with its time and bytes", async () => {
  const { whole, stream } = await played(soundFile());
  const frames = soundFrames(stream);
  assertEquals(frames.length, COUNT);
  for (const [i, { pts, data }] of frames.entries()) {
    assertEquals(pts - frames[0]!.pts, i * 1920);
    assertEquals(data.subarray(7), FRAMES[i]!);
  }
  // 100 ms of sound, which carries the clock: four frames of 21 ms.
  assertEquals(stream.units.length < COUNT / 3.9 + 20, true, `${stream.units.length} PES`);
  const media = FRAMES.reduce((sum, { length }) => sum + length, 0);
  // Each PES has a PCR and a half empty packet; one PES per frame would make 3.8.
  assert(whole.length < 2.7 * media, `${whole.length} bytes for ${media}`);
});

test("TabledMuxer makes ranges that begin and end inside a PES of several frames, and reads little more", async () => {
  const file = soundFile();
  const { ts, whole } = await played(file);
  const random = seeded(3);
  for (let i = 0; i < 50; i++) {
    const start = Math.floor(random() * whole.length);
    const end = Math.min(whole.length, start + 1 + Math.floor(random() * 2000));
    const source = new CountingSource(file);
    assertEquals(await collect(ts.read(start, end, source, NEVER)), whole.slice(start, end));
    assert(source.bytesRead < 3000, `${source.bytesRead} bytes for a range of ${end - start}`);
  }
});

test("TabledMuxer begins a PES where the sound pauses, where frames are empty, and where they are stored elsewhere", async () => {
  const paused = soundFile(([, chunks, sizes, offsets]) => {
    // A frame of five seconds in the middle.
    const times = fullBox("stts", 0, 0, u32(3, 1000, 1024, 1, 240_000, COUNT - 1001, 1024));
    return [times, chunks!, sizes!, offsets!];
  });
  const frames = soundFrames((await played(paused)).stream);
  assertEquals(frames.length, COUNT);
  assertEquals(frames[1001]!.pts - frames[1000]!.pts, 240_000 * 90 / 48);
  const withHoles = soundFile(([times, chunks, , offsets]) => {
    const sizes = FRAMES.map(({ length }, i) => i % 10 === 9 ? 0 : length);
    return [times!, chunks!, fullBox("stsz", 0, 0, u32(0, COUNT, ...sizes)), offsets!];
  });
  const whole = soundFrames((await played(withHoles)).stream);
  assertEquals(whole.length, COUNT * 0.9);
  assertEquals(whole.map(({ pts }) => (pts - whole[0]!.pts) / 1920).slice(0, 12), [
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    10,
    11,
    12,
  ]);
});
