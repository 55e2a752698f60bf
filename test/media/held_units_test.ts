/** What readers find in a file, against what comes out of it. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { sniffContainer } from "../../src/bytes/container.ts";
import { concatBytes } from "../../src/bytes/hex.ts";
import { FaultLedger } from "../../src/media/model/faults.ts";
import { openAudio } from "../../src/media/index/audio/open-audio.ts";
import { openFlac } from "../../src/media/index/audio/flac.ts";
import { openFrames } from "../../src/media/index/audio/frames.ts";
import { openByLibrary } from "../../src/media/index/library/open-library.ts";
import type { MediaIndex } from "../../src/media/model/timeline.ts";
import { presentIndex } from "../../src/media/presentation/presentation.ts";
import { MemorySource } from "../support/memory-source.ts";
import { soundFrames } from "../support/sound-frames.ts";
import { checkTs } from "../support/ts-check.ts";
import { adtsFrames, constantMp3, id3v1, variableMp3 } from "./support/audio-builder.ts";
import { collect, CountingSource, fixture, NEVER, openBytes, UNCOUNTED } from "./support/files.ts";
import { clipFragment, clipMovie, clipOf, FTYP, layOut, sidx } from "./support/fragment-builder.ts";
import { FLAC_BLOCK, flacFrames, flacHead } from "./support/lossless-builder.ts";

/** Reads the MPEG TS of `bytes` twice, and returns its faults and how many access units of each stream are in it. */
async function played(bytes: Uint8Array) {
  const { ts, faults } = await openBytes(bytes);
  let whole = new Uint8Array(0);
  for (let i = 0; i < 2; i++) whole = (await collect(ts.read(0, null, new MemorySource(bytes), NEVER))).slice();
  const out = checkTs(whole).streams.map((stream) => soundFrames(stream).length);
  return { faults, counts: faults.counts, held: faults.held, out };
}

const CLIP = clipOf(6);
const FRAGMENTS = [0, 1, 2, 3, 4, 5].map((second) => clipFragment(CLIP, second).bytes);
const BARE = layOut([FTYP, clipMovie(CLIP, true), ...FRAGMENTS]);
const SIDX = sidx(CLIP[0], FRAGMENTS.map(({ length }) => length));

/** `bytes` without `count` of them at `at`. */
const without = (bytes: Uint8Array, at: number, count: number) =>
  concatBytes([bytes.subarray(0, at), bytes.subarray(at + count)]);

for (
  const name of [
    "mkv-two-audio.mkv",
    "mp4-fragmented-bare.mp4",
    "mp4-fragmented-sidx.mp4",
    "mp4-front.mp4",
    "audio.aac",
  ]
) {
  test(`FaultLedger.held is what comes out of ${name}`, async () => {
    const { held, out, counts } = await played(fixture(name));
    assertEquals([held, counts.lost], [out, 0]);
  });
}

test("StreamedMuxer counts access units that a reader found and did not hand out", async () => {
  const index: MediaIndex = {
    container: "other",
    tracks: [{
      ...{ id: 1, kind: "audio", codec: "mp3", codecId: "mp3", language: null, isDefault: true, codecPrivate: null },
      ...{ width: null, height: null, sampleRate: 48_000, channels: 2 },
    }],
    durationMs: null,
    sourceBytes: 1000,
    warnings: [],
    timeline: {
      kind: "streamed",
      runs: [{
        ...{ index: 0, startPts90k: 0, startDts90k: 0, durationPts90k: 21_600, sourceStart: 0, sourceEnd: 1000 },
        ...{ maxPayloadBytes: 1000, maxAccessUnits: [10] },
      }],
      async *readRun(_run, _wanted, _source, _signal, _lender, held) {
        held?.(0, 10);
        const frame = { track: 0, keyframe: true, data: new Uint8Array(90) };
        yield await Promise.resolve([0, 2160, 4320].map((time) => ({ ...frame, pts90k: time, dts90k: time })));
      },
    },
  };
  const { ts, faults } = await presentIndex(index, {}, UNCOUNTED);
  await collect(ts.read(0, null, new MemorySource(new Uint8Array(1000)), NEVER));
  assertEquals([faults.counts.lost, faults.held], [7, [10]]);
});

test("FaultLedger keeps the slots of outputs apart", () => {
  const ledger = new FaultLedger();
  const [film, sound] = [ledger.newOutput(), ledger.newOutput()];
  const tally = (first90k: number) => ({
    ...ledger.counts,
    units: 10,
    spans: [{ first90k, last90k: first90k + 90_000, units: 10 }],
    held: [10],
  });
  ledger.record(0, tally(0), film);
  ledger.record(0, tally(0), sound);
  ledger.record(1, tally(100_000), film);
  assertEquals([ledger.counts.repeated, ledger.held], [0, [20]]);
});

test("openMedia() goes on after bytes that a fragment has lost, and tells it", async () => {
  const at = BARE.at[4]! + FRAGMENTS[2]!.length - 2000;
  const { counts, out } = await played(without(BARE.bytes, at, 777));
  assertEquals([counts.gaps, out], [1, CLIP.map(({ units }) => units.length)]);
});

test("openMedia() goes on after bytes between fragments, and tells it", async () => {
  const between = new Uint8Array(3000).fill(200);
  const { bytes } = layOut([
    ...[FTYP, clipMovie(CLIP, true), ...FRAGMENTS.slice(0, 3)],
    ...[between, ...FRAGMENTS.slice(3)],
  ]);
  const { counts, out } = await played(bytes);
  assertEquals([counts.gaps, out], [1, CLIP.map(({ units }) => units.length)]);
});

test("openMedia() ends a run of fragments that is damaged all over after bounded reading", async () => {
  const junk = new Uint8Array(40).fill(200);
  const damaged = Array.from({ length: 400 }, () => [FRAGMENTS[0]!.subarray(0, 300), junk]).flat();
  const { bytes } = layOut([FTYP, clipMovie(CLIP, true), FRAGMENTS[0]!, ...damaged]);
  const { ts, faults } = await openBytes(bytes);
  const source = new CountingSource(bytes);
  await collect(ts.read(0, null, source, NEVER));
  assertEquals(faults.counts.gaps > 0, true);
  assertEquals(source.reads.length < 200, true, `${source.reads.length} reads`);
});

test("openMedia() tells what a fragmented file that was cut off has lost of its last fragment", async () => {
  for (const index of [[], [SIDX]]) {
    const { bytes } = layOut([FTYP, clipMovie(CLIP, true), ...index, ...FRAGMENTS]);
    const { counts, out, held, faults } = await played(bytes.slice(0, -3000));
    const all = CLIP.reduce((sum, { units }) => sum + units.length, 0);
    assertEquals(out, held);
    assertEquals(counts.unread, all - out.reduce((sum, units) => sum + units, 0));
    assertEquals(faults.warning?.includes("cannot be read"), true);
  }
});

const openWarnings = async (bytes: Uint8Array) => {
  const signal = NEVER;
  const container = sniffContainer(bytes.subarray(0, 4096)) as "wav" | "mp3";
  return (await openAudio(container, new MemorySource(bytes), { fileName: "test", signal })).warnings;
};

/** Plays all runs of a streamed index once; returns its gaps, unread units, and those found and handed out. */
async function walked(index: MediaIndex, bytes: Uint8Array) {
  const { timeline } = index;
  if (timeline.kind !== "streamed") throw new Error("its timeline is tabled");
  let held = 0;
  let out = 0;
  for (const run of timeline.runs.keys()) {
    const source = new MemorySource(bytes);
    const count = (_track: number, units: number) => held += units;
    for await (const batch of timeline.readRun(run, new Set([0]), source, NEVER, undefined, count)) out += batch.length;
  }
  const { gaps, unread } = timeline.faults!.counts;
  return { gaps, unread, held, out };
}

/** No file is short enough to be read whole. */
const LAZY = { signal: NEVER, wholeBytes: 0 };
const SOUNDS = {
  "MP3 of one bit rate": { kind: "mp3", frames: constantMp3(3000) },
  "MP3 of variable bit rate": { kind: "mp3", frames: variableMp3(3000) },
  "AAC": { kind: "aac", frames: adtsFrames(3000) },
} as const;

for (const [name, { kind, frames }] of Object.entries(SOUNDS)) {
  test(`openFrames() counts the frames of ${name}, and tells where some are missing`, async () => {
    const sound = concatBytes([...frames]);
    const whole = await walked(await openFrames(new MemorySource(sound), kind, LAZY), sound);
    assertEquals(whole, { gaps: 0, unread: 0, held: frames.length, out: frames.length });
    const damaged = sound.slice();
    const at = frames.slice(0, 1500).reduce((sum, { length }) => sum + length, 0);
    damaged.fill(0, at, at + frames[1500]!.length);
    const { gaps, held, out } = await walked(await openFrames(new MemorySource(damaged), kind, LAZY), damaged);
    assertEquals([gaps, held === out, held >= frames.length - 3], [1, true, true]);
  });
}

test("openFrames() tells damage of a short file, which it reads whole, and not the tags of joined ones", async () => {
  const frames = constantMp3(300);
  const joined = concatBytes([...frames, id3v1(), ...frames]);
  const faultsOf = async (bytes: Uint8Array) => (await played(bytes)).counts.gaps;
  assertEquals(await faultsOf(joined), 0);
  assertEquals(await faultsOf(concatBytes([...frames, new Uint8Array(500), ...frames])), 1);
});

test("openFlac() counts its frames, and tells where some are missing", async () => {
  const frames = flacFrames(300);
  const head = flacHead(300 * FLAC_BLOCK);
  const file = (parts: readonly Uint8Array[]) => concatBytes([head, ...parts]);
  const whole = file(frames);
  const index = async (bytes: Uint8Array) => await openFlac(new MemorySource(bytes), 0, { signal: NEVER });
  assertEquals(await walked(await index(whole), whole), { gaps: 0, unread: 0, held: 300, out: 300 });
  const damaged = file(frames.map((frame, n) => n === 100 ? new Uint8Array(frame.length) : frame));
  const { gaps, held, out } = await walked(await index(damaged), damaged);
  assertEquals([gaps, held === out, held >= 298], [1, true, true]);
});

test("openMedia() tells sound that is cut off, if the file says how long it should be", async () => {
  for (const name of ["audio.wav", "audio-vbr.mp3"]) {
    const file = fixture(name);
    assertEquals((await openWarnings(file)).some((text) => text.includes("cut off")), false, name);
    assertEquals(
      (await openWarnings(file.slice(0, file.length * 0.6))).includes("the file is cut off at its end"),
      true,
    );
  }
});

test("openByLibrary() tells packets of Ogg that are damaged, and make those after them early", async () => {
  const file = fixture("audio.opus");
  const index = async (bytes: Uint8Array) => await openByLibrary(new MemorySource(bytes), "ogg", { signal: NEVER });
  assertEquals((await walked(await index(file), file)).gaps, 0);
  const damaged = file.slice().fill(0, file.length >> 1, (file.length >> 1) + 3000);
  const { gaps, held, out } = await walked(await index(damaged), damaged);
  assertEquals([gaps, held === out], [1, true]);
});
