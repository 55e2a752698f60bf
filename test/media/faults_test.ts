/** What the muxer counts when an index is wrong, and what the user is told. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { FaultLedger, NO_FAULTS, type SlotTally } from "../../src/media/model/faults.ts";
import { presentIndex } from "../../src/media/presentation/presentation.ts";
import type { MediaIndex, RunSample, StreamedRun } from "../../src/media/model/timeline.ts";
import type { Track } from "../../src/media/model/types.ts";
import { MemorySource } from "../support/memory-source.ts";
import { cluster, matroska, second, simpleBlock } from "./mkv-support.ts";
import { collect, fixture, NEVER, openBytes, UNCOUNTED } from "./support/files.ts";
import { avcEntry, contiguousTables, fileOf, fullBox, movieBox, nalUnit, u32 } from "./support/mp4-builder.ts";

const TRACK: Track = {
  id: 1,
  kind: "audio",
  codec: "mp3",
  codecId: "mp3",
  language: null,
  isDefault: true,
  codecPrivate: null,
  width: null,
  height: null,
  sampleRate: 48_000,
  channels: 2,
};
/** A frame of MP3 at 48 kHz. */
const FRAME_90K = 2160;

/** Frames of sound at `times90k`, 100 bytes each. */
function framesAt(times90k: readonly number[]): RunSample[] {
  return times90k.map((dts90k) => ({ track: 0, pts90k: dts90k, dts90k, keyframe: true, data: new Uint8Array(100) }));
}

/** `count` times from `first90k` on, a frame apart. */
const from90k = (first90k: number, count: number) => Array.from({ length: count }, (_, i) => first90k + i * FRAME_90K);

/** An index whose runs of two seconds (100 frames) hold frames at `runs`. */
function indexOf(runs: readonly (readonly number[])[], maxPayloadBytes = 40_000): MediaIndex {
  const told = runs.map((_, index): StreamedRun => ({
    index,
    startPts90k: index * 100 * FRAME_90K,
    startDts90k: index * 100 * FRAME_90K,
    durationPts90k: 100 * FRAME_90K,
    sourceStart: 0,
    sourceEnd: 1,
    maxPayloadBytes,
    maxAccessUnits: [200],
  }));
  return {
    container: "other",
    tracks: [TRACK],
    durationMs: null,
    sourceBytes: 1_000_000,
    warnings: [],
    timeline: {
      kind: "streamed",
      runs: told,
      async *readRun(run) {
        yield await Promise.resolve(framesAt(runs[run]!));
      },
    },
  };
}

async function playedFaults(index: MediaIndex) {
  const { ts, faults } = await presentIndex(index, {}, UNCOUNTED);
  // Read twice: a fault met again counts once.
  for (let i = 0; i < 2; i++) await collect(ts.read(0, null, new MemorySource(new Uint8Array(1)), NEVER));
  return faults!;
}

const SOUND = NO_FAULTS;

test("StreamedMuxer counts nothing when a file is as its index says", async () => {
  const faults = await playedFaults(indexOf([from90k(0, 100), from90k(100 * FRAME_90K, 100)]));
  assertEquals([faults.counts, faults.warning], [SOUND, null]);
});

test("StreamedMuxer counts access units that come again when runs overlap", async () => {
  const faults = await playedFaults(indexOf([from90k(0, 200), from90k(100 * FRAME_90K, 100)]));
  assertEquals(faults.counts.repeated, 100);
  assertEquals(
    faults.warning,
    "the file does not play as it should: of 300 pictures and frames of sound 100 came twice",
  );
});

test("StreamedMuxer counts access units whose times run backwards when a clock restarts within a run", async () => {
  const faults = await playedFaults(indexOf([[...from90k(0, 50), ...from90k(0, 50)]]));
  assertEquals(faults.counts.ranBack, 50);
});

test("StreamedMuxer counts access units that do not fit when a run holds more than its index says", async () => {
  const faults = await playedFaults(indexOf([from90k(0, 180)], 100));
  const { dropped } = faults.counts;
  assertEquals(dropped > 50 && dropped < 180, true, `${dropped} dropped`);
});

test("StreamedMuxer counts access units when they are after the end of the file", async () => {
  // The last run ends at 4.8 s, and two seconds are spared.
  const faults = await playedFaults(indexOf([from90k(0, 100), from90k(100 * FRAME_90K, 190)]));
  assertEquals(faults.counts.beyondEnd, 190 - 100 - Math.floor(180_000 / FRAME_90K) - 1);
});

test("StreamedMuxer counts runs without anything when the index is longer than the media", async () => {
  const faults = await playedFaults(indexOf([from90k(0, 100), ...new Array(20).fill([])]));
  assertEquals(faults.counts.empty, 20);
  assertEquals(faults.warning?.includes("20 stretches of some seconds are empty"), true, `${faults.warning}`);
});

test("FaultLedger reports nothing while faults are few", () => {
  const tally = (dropped: number): SlotTally => ({ ...SOUND, dropped, units: 5000, spans: [] });
  const ledger = new FaultLedger();
  ledger.record(0, tally(10));
  assertEquals(ledger.warning, null);
  ledger.record(1, tally(14));
  assertEquals(ledger.counts.dropped, 24);
  assertEquals(ledger.warning?.endsWith("of 10000 pictures and frames of sound 24 were left out"), true);
  // Few are much of a short clip.
  const short = new FaultLedger();
  short.record(0, { ...tally(5), units: 300 });
  assertEquals(short.warning?.endsWith("of 300 pictures and frames of sound 5 were left out"), true);
  // One stretch that lost much is told however long the film is.
  const long = new FaultLedger();
  for (let slot = 0; slot < 100; slot++) long.record(slot, tally(slot === 50 ? 13 : 0));
  assertEquals(long.warning?.endsWith("of 500000 pictures and frames of sound 13 were left out"), true);
});

test("StreamedMuxer counts runs that begin elsewhere than the index says", async () => {
  // As if each entry of the index had the time of another one.
  const late90k = 300 * FRAME_90K;
  const runs = [0, 1, 2, 3].map((run) => from90k(run * 100 * FRAME_90K + (run > 0 ? late90k : 0), 100));
  const faults = await playedFaults(indexOf(runs));
  assertEquals(faults.counts.misplaced, 3);
  assertEquals(faults.warning?.includes("3 stretches begin seconds from where the playlist says"), true);
});

test("openMedia() tells an output that ends before the length that was promised", async () => {
  const file = fixture("mp4-front.mp4");
  const { ts, faults } = await openBytes(file);
  const source = new MemorySource(file);
  await collect(ts.read(0, null, source, NEVER));
  assertEquals(faults.counts, SOUND);
  await collect(ts.read(0, ts.sizeBytes! + 188, source, NEVER));
  assertEquals(faults.counts.short, 1);
  assertEquals(faults.warning?.includes("1 of its outputs were shorter than promised"), true);
});

test("openMedia() tells places of a Matroska film that are damaged, and blocks that cannot be read", async () => {
  const clusters = [0, 1, 2, 3].map((n) => second(n * 2000));
  const badLace = cluster(8000, [simpleBlock(1, 0, 0x86, new Uint8Array([200, 255]))]);
  const file = matroska([...clusters, badLace], { durationMs: 10_000 });
  const start = file.length - badLace.length - 2 * clusters[3]!.length;
  file.fill(0, start + 24, start + 34);
  const { ts, faults } = await openBytes(file);
  for (let i = 0; i < 2; i++) await collect(ts.read(0, null, new MemorySource(file), NEVER));
  assertEquals([faults.counts.gaps, faults.counts.unread], [1, 1]);
  assertEquals(faults.warning?.includes("1 of its pictures and frames of sound cannot be read"), true);
});

test("openMedia() counts pictures of an MP4 when its table repeats or stops the clock, or goes beyond the movie", async () => {
  const pictures = Array.from({ length: 60 }, (_, i) => nalUnit(i === 0 ? 0x65 : 0x41, 100));
  const tables = (offset: number) => {
    const [, chunks, sizes] = contiguousTables(pictures.map(({ length }) => length), 1000, offset);
    return [
      fullBox("stts", 0, 0, u32(2, 30, 0, 30, 10_000)),
      chunks!,
      sizes!,
      fullBox("stco", 0, 0, u32(1, offset)),
    ];
  };
  const movie = (offset: number) =>
    movieBox([{ id: 1, kind: "vide", timescale: 25_000, entry: avcEntry(), tables: tables(offset) }], 1000, 4000);
  const { faults } = await openBytes(fileOf(movie, pictures));
  // Thirty pictures at once, then one each 0.4 s: the movie's four seconds and two to spare hold fifteen of them.
  assertEquals(faults!.counts, { ...SOUND, ranBack: 30, beyondEnd: 60 - 30 - 16 });
});
