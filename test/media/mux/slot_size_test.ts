/** How much room slots of fixed size have: enough for what usual files hold, and not much more. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { presentIndex } from "../../../src/media/presentation/presentation.ts";
import type { MediaIndex, RunSample } from "../../../src/media/model/timeline.ts";
import type { Track } from "../../../src/media/model/types.ts";
import { MemorySource } from "../../support/memory-source.ts";
import { checkTs } from "../../support/ts-check.ts";
import { collect, NEVER, UNCOUNTED } from "../support/files.ts";

const COMMON = { language: null, isDefault: true, codecPrivate: null, width: null, height: null } as const;
const VIDEO: Track = {
  ...COMMON,
  id: 1,
  kind: "video",
  codec: "mpeg2video",
  codecId: "m2v1",
  sampleRate: null,
  channels: null,
};
const AUDIO: Track = {
  ...COMMON,
  id: 2,
  kind: "audio",
  codec: "mp3",
  codecId: "mp3",
  sampleRate: 48_000,
  channels: 2,
};
const RUN_90K = 450_000;
const FRAME_90K = 2160;
const PICTURES = 125;

/** Pictures at these times (s) and sizes, with 64 kbit/s of sound, for five seconds. */
function clip(pictures: readonly (readonly [timeS: number, sizeBytes: number])[]) {
  const unit = (track: number, dts90k: number, sizeBytes: number, keyframe: boolean): RunSample => {
    return { track, dts90k, pts90k: dts90k, keyframe, data: new Uint8Array(sizeBytes).fill(track + 1) };
  };
  const units = [
    ...pictures.map(([timeS, sizeBytes], i) => unit(0, Math.round(timeS * 90_000), sizeBytes, i === 0)),
    ...Array.from({ length: Math.ceil(RUN_90K / FRAME_90K) }, (_, i) => unit(1, i * FRAME_90K, 192, true)),
  ].sort((a, b) => a.dts90k - b.dts90k || a.track - b.track);
  return { units, index: indexOf(units), bytes: bytesOf(units) };
}

const bytesOf = (units: readonly RunSample[]) => units.reduce((sum, { data }) => sum + data.length, 0);

/** One run of `units`, in the order in which the file has them. */
function indexOf(units: readonly RunSample[]): MediaIndex {
  const run = {
    index: 0,
    startPts90k: 0,
    startDts90k: 0,
    durationPts90k: RUN_90K,
    sourceStart: 0,
    sourceEnd: 1,
    maxPayloadBytes: bytesOf(units),
    maxAccessUnits: [PICTURES, 220],
  };
  return {
    container: "other",
    tracks: [VIDEO, AUDIO],
    durationMs: 5000,
    sourceBytes: 1_000_000,
    warnings: [],
    timeline: {
      kind: "streamed",
      runs: [run],
      async *readRun() {
        yield await Promise.resolve(units);
      },
    },
  };
}

async function play({ index }: ReturnType<typeof clip>) {
  const { ts, faults } = await presentIndex(index, {}, UNCOUNTED);
  const whole = await collect(ts.read(0, null, new MemorySource(new Uint8Array(1)), NEVER));
  assertEquals(whole.length, ts.sizeBytes);
  return { whole, dropped: faults!.counts.dropped, ...checkTs(whole) };
}

/** Picture `i` of a film at about 300 kbit/s: a large one each 50, then sizes that differ. */
const sizeOf = (i: number) => i % 50 === 0 ? 12_000 : 600 + i * 7919 % 1500;

test("slotPackets() makes of 350 kbit/s of pictures and sound at most 1.25 times as much", async () => {
  const film = clip(Array.from({ length: PICTURES }, (_, i) => [i / 25, sizeOf(i)]));
  assert(film.bytes * 8 / 5 < 450_000);
  const { whole, problems, dropped } = await play(film);
  assertEquals([problems, dropped], [[], 0]);
  assert(whole.length <= 1.25 * film.bytes, `${whole.length / film.bytes}`);
});

test("StreamedSlot has the clock go on through a gap of four seconds, in the room of the pictures that are not there", async () => {
  const { problems, streams, dropped } = await play(clip(Array.from({ length: 25 }, (_, i) => [i / 25, sizeOf(i)])));
  assertEquals([problems, dropped, streams[0]!.units.length], [[], 0, 25]);
});

test("StreamedSlot drops no picture for the clock's sake where many come at once before or after a gap", async () => {
  for (const startS of [0, 2.5]) {
    const times = Array.from({ length: PICTURES }, (_, i) => startS + i / 60);
    const { streams, dropped } = await play(clip(times.map((timeS, i) => [timeS, sizeOf(i)])));
    assertEquals([dropped, streams[0]!.units.length], [0, PICTURES]);
  }
});

test("slotPackets() has room for pictures that are all tiny, and for a tenth more of them than foreseen", async () => {
  for (const pictures of [PICTURES, Math.floor(PICTURES * 1.1)]) {
    const film = clip(Array.from({ length: pictures }, (_, i) => [5 * i / pictures, i === 0 ? 20_000 : 12 + i % 9]));
    const { problems, dropped } = await play(film);
    assertEquals([problems, dropped], [[], 0]);
  }
});

test("StreamedSlot puts frames of sound together that come seconds after the pictures of their time", async () => {
  const film = clip(Array.from({ length: PICTURES }, (_, i) => [i / 25, sizeOf(i)]));
  const units = film.units.toSorted((a, b) => a.track - b.track);
  const { whole, streams, dropped } = await play({ ...film, index: indexOf(units) });
  assertEquals([dropped, streams[0]!.units.length], [0, PICTURES]);
  // 0.3 s of frames of 24 ms in each.
  assert(streams[1]!.units.length <= Math.ceil(RUN_90K / FRAME_90K / 12) + 1, `${streams[1]!.units.length} PES`);
  assert(whole.length <= 1.25 * film.bytes, `${whole.length / film.bytes}`);
});
