/** Fragmented files as muxers write them, and as editing leaves them: every access unit comes out, once. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { MemorySource } from "../../support/memory-source.ts";
import { soundFrames } from "../../support/sound-frames.ts";
import { checkTs } from "../../support/ts-check.ts";
import { collect, NEVER, openBytes } from "../support/files.ts";
import {
  clipFragment,
  clipMovie,
  clipOf,
  clipTables,
  FTYP,
  layOut,
  mfra,
  sidx,
  type TimeForm,
} from "../support/fragment-builder.ts";
import { avcEntry, box } from "../support/mp4-builder.ts";

const SECONDS = 12;
const CLIP = clipOf(SECONDS);
const [VIDEO, AUDIO] = CLIP;
const EACH_SECOND = Array.from({ length: SECONDS }, (_, second) => second);

/** One fragment per second with both tracks. */
const joint = (form?: TimeForm) => EACH_SECOND.map((second) => clipFragment(CLIP, second, form));
/** Two per second, the sound's first. */
const inTurns = (form?: TimeForm) =>
  EACH_SECOND.flatMap((second) => [AUDIO, VIDEO].map((track) => clipFragment([track], second, form)));
const bytesOf = (fragments: ReturnType<typeof joint>) => fragments.map(({ bytes }) => bytes);

function file(...parts: (Uint8Array | readonly Uint8Array[])[]) {
  return layOut([FTYP, ...parts.flatMap((part) => part instanceof Uint8Array ? [part] : part)]);
}

/** The first second in the movie box: its data follows, and fragments for the rest. */
function openingInMovie(): { parts: Uint8Array[]; rest: ReturnType<typeof joint> } {
  const data = CLIP.map((track) => track.units.slice(0, track.perSecond).map((unit) => unit.data));
  const mdat = box("mdat", ...data.flat());
  const movie = (start: number) =>
    clipMovie(CLIP, true, (track) => {
      const before = track === VIDEO ? 0 : data[0]!.reduce((sum, { length }) => sum + length, 0);
      return clipTables(track, [start + before], track.perSecond);
    });
  const start = FTYP.length + movie(0).length + 8;
  return { parts: [movie(start), mdat], rest: joint().slice(1) };
}

/** A movie box for the whole film that follows fragments at `at`. */
function finalMovie(fragments: ReturnType<typeof joint>, at: readonly number[]): Uint8Array {
  return clipMovie(CLIP, false, (track) => {
    const places = fragments.map(({ tracks, dataAt }, i) => at[i]! + dataAt[tracks.indexOf(track)]!);
    return clipTables(track, places, track.perSecond);
  });
}

const CASES: Readonly<Record<string, () => Uint8Array>> = {
  "no index": () => file(clipMovie(CLIP, true), bytesOf(joint())).bytes,
  "tracks in turns and no index": () => file(clipMovie(CLIP, true), bytesOf(inTurns())).bytes,
  "an mfra": () => {
    const { bytes, at } = file(clipMovie(CLIP, true), bytesOf(joint()));
    return layOut([bytes, mfra(VIDEO, at.slice(2))]).bytes;
  },
  "tracks in turns, the sound first, and an mfra of the video": () => {
    const { bytes, at } = file(clipMovie(CLIP, true), bytesOf(inTurns()));
    return layOut([bytes, mfra(VIDEO, at.slice(2).filter((_, i) => i % 2 === 1))]).bytes;
  },
  "a sidx of the whole": () => {
    const fragments = bytesOf(joint());
    return file(clipMovie(CLIP, true), sidx(VIDEO, fragments.map(({ length }) => length)), fragments).bytes;
  },
  "a sidx before each fragment": () => {
    const fragments = bytesOf(joint()).flatMap((bytes, second) => [sidx(VIDEO, [bytes.length], second), bytes]);
    return file(clipMovie(CLIP, true), fragments).bytes;
  },
  "tracks in turns and a sidx that counts the video's fragments alone": () => {
    const fragments = inTurns();
    const sizes = fragments.filter(({ tracks }) => tracks[0] === VIDEO).map(({ bytes }) => bytes.length);
    return file(clipMovie(CLIP, true), sidx(VIDEO, sizes), bytesOf(fragments)).bytes;
  },
  "a sidx whose times are wrong": () => {
    const fragments = bytesOf(joint());
    const wrong = { ...VIDEO, timescale: VIDEO.timescale / 100 };
    const index = sidx(wrong, fragments.map(({ length }) => length));
    new DataView(index.buffer).setUint32(16, VIDEO.timescale);
    return file(clipMovie(CLIP, true), index, fragments).bytes;
  },
  "an mfra of a file that this one was cut out of": () => {
    const fragments = bytesOf(joint());
    const { bytes, at } = file(clipMovie(CLIP, true), fragments);
    return layOut([bytes, mfra(VIDEO, at.slice(2).map((offset) => offset - 1000))]).bytes;
  },
  "access units in the movie box, then fragments": () => {
    const { parts, rest } = openingInMovie();
    return file(parts, bytesOf(rest)).bytes;
  },
  "access units in the movie box, then fragments and an mfra": () => {
    const { parts, rest } = openingInMovie();
    const { bytes, at } = file(parts, bytesOf(rest));
    const index = mfra(VIDEO, [at[3]!, ...at.slice(3)]);
    return layOut([bytes, index]).bytes;
  },
  "a movie box of the whole behind the fragments (hybrid)": () => {
    const fragments = joint();
    const { bytes, at } = file(clipMovie(CLIP, true), bytesOf(fragments));
    return layOut([bytes, finalMovie(fragments, at.slice(2))]).bytes;
  },
  "fragments that tell their time as Smooth Streaming does": () =>
    file(clipMovie(CLIP, true), bytesOf(inTurns("tfxd"))).bytes,
};

for (const [what, make] of Object.entries(CASES)) {
  test(`openMedia() finds every access unit of fragments with ${what}`, async () => {
    const bytes = make();
    const source = new MemorySource(bytes);
    const { ts, hls } = await openBytes(bytes, { segmentTargetMs: 3000 });
    const whole = await collect(ts.read(0, null, source, NEVER));
    if (ts.sizeBytes !== null) assertEquals(whole.length, ts.sizeBytes);
    const report = checkTs(whole);
    assertEquals(report.problems, []);
    const streams = report.streams.map(soundFrames);
    assertEquals(streams.map(({ length }) => length), CLIP.map(({ units }) => units.length));
    for (const [i, units] of streams.entries()) {
      const { delta, timescale } = CLIP[i]!;
      const start = units[0]!.pts;
      for (const [n, unit] of units.entries()) {
        const expected = n * delta * 90_000 / timescale;
        assertEquals(Math.abs(unit.pts - start - expected) <= 2, true, `stream ${i} unit ${n}: ${unit.pts - start}`);
      }
      assertEquals(Math.abs(start - streams[0]![0]!.pts) <= 2, true, "the tracks begin together");
    }
    const told = hls.segments.at(-1)!;
    assertEquals(Math.round((told.startMs + told.durationMs) / 1000), SECONDS);
    const segments = [];
    for (const { index } of hls.segments) segments.push(await collect(hls.readSegment(index, source, NEVER)));
    assertEquals(segments.reduce((sum, { length }) => sum + length, 0), whole.length);
  });
}

test("openMedia() keeps decoding times ascending where a fragment begins before the last one's end", async () => {
  // A frame of sound takes 1024 units, a picture 1000.
  const fragments = EACH_SECOND.map((second) => clipFragment(CLIP, second, "tfdt", 1030));
  const { bytes } = file(clipMovie(CLIP, true), bytesOf(fragments));
  const { ts } = await openBytes(bytes);
  const report = checkTs(await collect(ts.read(0, null, new MemorySource(bytes), NEVER)));
  assertEquals(report.problems, []);
  assertEquals(report.streams.map((stream) => soundFrames(stream).length), CLIP.map(({ units }) => units.length));
});

const twice = (one: Uint8Array) => layOut([one, one]).bytes;

const JOINED: Readonly<Record<string, () => Uint8Array>> = {
  "a sidx each": () => {
    const fragments = bytesOf(joint());
    return twice(file(clipMovie(CLIP, true), sidx(VIDEO, fragments.map(({ length }) => length)), fragments).bytes);
  },
  "an mfra each": () => {
    const { bytes, at } = file(clipMovie(CLIP, true), bytesOf(joint()));
    return twice(layOut([bytes, mfra(VIDEO, at.slice(2))]).bytes);
  },
  "no index": () => twice(file(clipMovie(CLIP, true), bytesOf(joint())).bytes),
  "one movie box for both": () => file(clipMovie(CLIP, true), bytesOf(joint()), bytesOf(joint())).bytes,
};

for (const [what, make] of Object.entries(JOINED)) {
  test(`openMedia() plays a fragmented file joined to itself with ${what} twice`, async () => {
    const bytes = make();
    const { ts, durationMs, warnings, faults, hls } = await openBytes(bytes);
    const source = new MemorySource(bytes);
    const whole = await collect(ts.read(0, null, source, NEVER));
    const report = checkTs(whole);
    assertEquals(report.problems, []);
    const streams = report.streams.map(soundFrames);
    assertEquals(streams.map(({ length }) => length), CLIP.map(({ units }) => 2 * units.length));
    for (const [i, units] of streams.entries()) {
      const second = units[CLIP[i]!.units.length]!.pts - units[0]!.pts;
      assertEquals(Math.abs(second - 90_000 * SECONDS) <= 9000, true, `stream ${i} begins again at ${second}`);
    }
    assertEquals(Math.round(durationMs! / 1000), 2 * SECONDS);
    assertEquals(warnings[0], "the file is 2 films one after the other");
    assertEquals(faults!.warning, null);
    const segments = [];
    for (const { index } of hls.segments) segments.push(await collect(hls.readSegment(index, source, NEVER)));
    assertEquals(layOut(segments).bytes, whole);
  });
}

test("openMedia() leaves a film out that follows another and has other codec data", async () => {
  const fragments = bytesOf(joint());
  const index = sidx(VIDEO, fragments.map(({ length }) => length));
  const other = [{ ...VIDEO, entry: avcEntry(4, [0x67, 9, 9, 9]) }, AUDIO];
  const { bytes } = layOut([
    file(clipMovie(CLIP, true), index, fragments).bytes,
    file(clipMovie(other, true), index, fragments).bytes,
  ]);
  const { ts, warnings } = await openBytes(bytes);
  const report = checkTs(await collect(ts.read(0, null, new MemorySource(bytes), NEVER)));
  assertEquals(report.streams.map((stream) => soundFrames(stream).length), CLIP.map(({ units }) => units.length));
  assertEquals(warnings, ["another film follows in the file, and is left out as its codecs differ"]);
});

test("openMedia() plays what precedes a damaged film in the same file", async () => {
  const fragments = bytesOf(joint());
  const { bytes } = file(clipMovie(CLIP, true), sidx(VIDEO, fragments.map(({ length }) => length)), fragments);
  const { warnings, durationMs } = await openBytes(layOut([bytes, FTYP, box("free", new Uint8Array(100))]).bytes);
  assertEquals(Math.round(durationMs! / 1000), SECONDS);
  assertEquals(warnings, ["what follows the first film in the file is damaged and left out"]);
});

test("openMedia() has room for all pictures when the last fragments have four times as many as the first", async () => {
  const dense = {
    ...VIDEO,
    delta: VIDEO.delta / 4,
    perSecond: VIDEO.perSecond * 4,
    units: [0, 1, 2, 3].flatMap(() => VIDEO.units).map(({ data }, i) => ({ data, keyframe: i % 100 === 0 })),
  };
  const fragments = EACH_SECOND.map((second) => clipFragment([second < SECONDS / 2 ? VIDEO : dense, AUDIO], second));
  const sizes = fragments.map(({ bytes }) => bytes.length);
  const bytes = file(clipMovie(CLIP, true), sidx(VIDEO, sizes), bytesOf(fragments)).bytes;
  const { ts, faults } = await openBytes(bytes);
  const { streams } = checkTs(await collect(ts.read(0, null, new MemorySource(bytes), NEVER)));
  assertEquals([streams[0]!.units.length, faults!.counts.dropped], [6 * 25 + 6 * 100, 0]);
});
