/** Slots of fixed size hold everything announced, in whatever order the container stores it. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { presentIndex } from "../../../src/media/presentation/presentation.ts";
import type { MediaIndex, RunSample, StreamedRun } from "../../../src/media/model/timeline.ts";
import type { Track } from "../../../src/media/model/types.ts";
import { MemorySource } from "../../support/memory-source.ts";
import { checkTs } from "../../support/ts-check.ts";
import { collect, NEVER, UNCOUNTED } from "../support/files.ts";

const COMMON = { language: null, isDefault: true, codecPrivate: null } as const;
const VIDEO: Track = {
  ...COMMON,
  id: 1,
  kind: "video",
  codec: "mpeg2video",
  codecId: "m2v1",
  width: 64,
  height: 48,
  sampleRate: null,
  channels: null,
};
const AUDIO: Track = {
  ...COMMON,
  id: 2,
  kind: "audio",
  codec: "eac3",
  codecId: "ec-3",
  width: null,
  height: null,
  sampleRate: 48_000,
  channels: 2,
};
const RUNS = 3;
const PICTURES = 50;
const FRAMES = 60;
const RUN_90K = 180_000;
const UNIT_BYTES = 700;

/** The access units of a run, in an order in which those of `first` come `ahead90k` before their time. */
function unitsOf(run: number, first: number, ahead90k: number): RunSample[] {
  const unit = (track: number, time90k: number, keyframe: boolean): RunSample => {
    const dts90k = run * RUN_90K + time90k;
    return { track, dts90k, pts90k: dts90k, keyframe, data: new Uint8Array(UNIT_BYTES).fill(track + 1) };
  };
  const units = [
    ...Array.from({ length: PICTURES }, (_, i) => unit(0, i * RUN_90K / PICTURES, i === 0)),
    ...Array.from({ length: FRAMES }, (_, i) => unit(1, i * RUN_90K / FRAMES, true)),
  ];
  const place = ({ track, dts90k }: RunSample) => dts90k - (track === first ? ahead90k : 0);
  return units.sort((a, b) => place(a) - place(b) || a.track - b.track);
}

function indexOf(first: number, ahead90k: number): MediaIndex {
  const runs = Array.from({ length: RUNS }, (_, index): StreamedRun => ({
    index,
    startPts90k: index * RUN_90K,
    startDts90k: index * RUN_90K,
    durationPts90k: RUN_90K,
    sourceStart: 0,
    sourceEnd: 1,
    maxPayloadBytes: (PICTURES + FRAMES) * UNIT_BYTES,
    maxAccessUnits: [PICTURES, FRAMES],
  }));
  return {
    container: "other",
    tracks: [VIDEO, AUDIO],
    durationMs: null,
    sourceBytes: 1_000_000,
    warnings: [],
    timeline: {
      kind: "streamed",
      runs,
      async *readRun(run) {
        // One at a time, as from a slow source.
        for (const sample of unitsOf(run, first, ahead90k)) yield await Promise.resolve([sample]);
      },
    },
  };
}

for (const [what, first] of [["pictures", 0], ["sound", 1]] as const) {
  for (const aheadMs of [0, 300, 600, 900]) {
    test(`StreamedSlot drops nothing when ${what} stand ${aheadMs} ms before the rest of their time`, async () => {
      const { ts, faults } = await presentIndex(indexOf(first, aheadMs * 90), {}, UNCOUNTED);
      const whole = await collect(ts.read(0, null, new MemorySource(new Uint8Array(1)), NEVER));
      assertEquals(whole.length, ts.sizeBytes);
      const report = checkTs(whole);
      assertEquals(report.problems, []);
      assertEquals(report.streams.map(({ units }) => units.length), [RUNS * PICTURES, RUNS * FRAMES]);
      assertEquals(faults!.counts.dropped, 0);
    });
  }
}
