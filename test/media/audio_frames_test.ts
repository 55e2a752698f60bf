import { test } from "node:test";
import { assert, assertEquals, assertLess, assertRejects } from "@std/assert";
import { sniffContainer } from "../../src/bytes/container.ts";
import { hasCode, MillraceError } from "../../src/errors.ts";
import { openFrames } from "../../src/media/index/audio/frames.ts";
import { presentIndex } from "../../src/media/presentation/presentation.ts";
import type { MediaIndex, RunSample } from "../../src/media/model/timeline.ts";
import { MemorySource } from "../support/memory-source.ts";
import { soundFrames } from "../support/sound-frames.ts";
import { checkTs } from "../support/ts-check.ts";
import {
  adtsFrames,
  concatBytes,
  constantMp3,
  id3Tag,
  id3v1,
  mp3Frame,
  variableMp3,
  vbrHeader,
} from "./support/audio-builder.ts";
import { collect, CountingSource, fixture, NEVER, openBytes, seeded, UNCOUNTED } from "./support/files.ts";

/** No file is short enough to be read whole. */
const LAZY = { signal: NEVER, wholeBytes: 0 };

async function runSamples(index: MediaIndex, run: number, source: MemorySource | CountingSource): Promise<RunSample[]> {
  assert(index.timeline.kind === "streamed");
  const all: RunSample[] = [];
  for await (const batch of index.timeline.readRun(run, new Set([0]), source, NEVER)) all.push(...batch);
  return all;
}

/** Every frame, run by run in the order of `order`, put into the order of time. */
async function allSamples(index: MediaIndex, bytes: Uint8Array, order: (runs: number) => number[]) {
  assert(index.timeline.kind === "streamed");
  const runs: RunSample[][] = [];
  for (const run of order(index.timeline.runs.length)) {
    runs[run] = await runSamples(index, run, new MemorySource(bytes));
  }
  return runs.flat();
}

const forwards = (runs: number) => Array.from({ length: runs }, (_, i) => i);
const backwards = (runs: number) => forwards(runs).reverse();

function assertFrames(
  samples: readonly RunSample[],
  frames: readonly Uint8Array[],
  samplesPerFrame: number,
  rate: number,
) {
  assertEquals(samples.length, frames.length);
  for (const [i, sample] of samples.entries()) {
    assertEquals(sample.data, frames[i]!, `frame ${i}`);
    assertEquals(sample.pts90k, Math.round(i * samplesPerFrame * 90_000 / rate), `frame ${i}`);
  }
}

test("sniffContainer() recognises audio files, after ID3 tags and in the middle of a frame too", () => {
  const head = (...parts: Uint8Array[]) => concatBytes(parts).subarray(0, 4096);
  const text = (value: string) => new TextEncoder().encode(value);
  const mp3 = constantMp3(40);
  const cases: [string, Uint8Array, string | null][] = [
    ["MP3", head(...mp3), "mp3"],
    ["MP3 behind a tag", head(id3Tag(1000), ...mp3), "mp3"],
    ["a tag longer than the head", head(id3Tag(100_000), ...mp3), "mp3"],
    ["MP3 cut within a frame", head(mp3[0]!.subarray(200), ...mp3.slice(1)), "mp3"],
    ["ADTS", head(...adtsFrames(40)), "aac"],
    ["ADTS behind a tag", head(id3Tag(1000), ...adtsFrames(40)), "aac"],
    ["FLAC", head(text("fLaC"), new Uint8Array(400)), "flac"],
    ["FLAC behind a tag", head(id3Tag(500), text("fLaC"), new Uint8Array(400)), "flac"],
    ["Ogg", head(text("OggS"), new Uint8Array(400)), "ogg"],
    ["WAV", head(text("RIFF\0\0\0\0WAVEfmt "), new Uint8Array(400)), "wav"],
    ["AVI", head(text("RIFF\0\0\0\0AVI LIST"), new Uint8Array(400)), null],
    [
      "an MPEG program stream with MP3 in it",
      head(text("\0\0\x01\xba"), new Uint8Array(500), ...mp3.slice(0, 3), new Uint8Array(4000)),
      null,
    ],
    ["two frames alone", head(mp3[0]!, mp3[1]!, new Uint8Array(4000)), null],
    ["zeros", new Uint8Array(4096), null],
    ["ones", new Uint8Array(4096).fill(0xff), null],
  ];
  for (const [what, bytes, expected] of cases) assertEquals(sniffContainer(bytes), expected, what);
});

for (
  const [name, kind, codec] of [
    ["audio-cbr.mp3", "mp3", "mp3"],
    ["audio-vbr.mp3", "mp3", "mp3"],
    ["audio-bare.mp3", "mp3", "mp3"],
    ["audio-tagged.mp3", "mp3", "mp3"],
    ["audio.mp2", "mp3", "mp2"],
    ["audio.aac", "aac", "aac"],
  ] as const
) {
  test(`openFrames() yields the same frames and times of ${name} whether read whole or run by run, in any order`, async () => {
    const bytes = fixture(name);
    const whole = await openFrames(new MemorySource(bytes), kind, { signal: NEVER });
    assert(whole.timeline.kind === "tabled");
    const table = whole.timeline.tables[0]!;
    assertEquals(whole.tracks[0]!.codec, codec);
    for (const order of [forwards, backwards]) {
      const lazy = await openFrames(new MemorySource(bytes), kind, { ...LAZY, segmentTargetMs: 1000 });
      const samples = await allSamples(lazy, bytes, order);
      assertEquals(samples.length, table.count);
      for (const [i, sample] of samples.entries()) {
        assertEquals(sample.dts90k, table.dts90k.at(i));
        const offset = table.offsets.at(i);
        assertEquals(sample.data, bytes.subarray(offset, offset + table.sizes.at(i)));
      }
    }
  });
}

test("openFrames() computes the places of constant bit rate frames: exact size, and it reads only what is played", async () => {
  const frames = constantMp3(12_000);
  for (const header of [[vbrHeader("Info", frames.length)], []]) {
    const bytes = concatBytes([id3Tag(300_000), ...header, ...frames, id3v1()]);
    const source = new CountingSource(bytes);
    const index = await openFrames(source, "mp3", LAZY);
    assertEquals(Math.round(index.durationMs!), Math.round(frames.length * 1152 / 44.1));
    assertLess(source.bytesRead, 250_000);
    assertFrames(await allSamples(index, bytes, backwards), frames, 1152, 44100);
    const presentation = await presentIndex(index, {}, UNCOUNTED);
    const { ts, hls } = presentation;
    const whole = await collect(ts.read(0, null, new MemorySource(bytes), NEVER));
    assertEquals(whole.length, ts.sizeBytes);
    assertEquals(checkTs(whole).problems, []);
    assertEquals(soundFrames(checkTs(whole).streams[0]!).length, frames.length);
    const seek = new CountingSource(bytes);
    const middle = Math.floor(ts.sizeBytes! / 2);
    assertEquals(await collect(ts.read(middle, middle + 5000, seek, NEVER)), whole.slice(middle, middle + 5000));
    assertLess(seek.bytesRead, 150_000);
    assert(
      hls.segments.every(({ durationMs }, n) => Math.abs(durationMs - 5000) < 15 || n === hls.segments.length - 1),
    );
  }
});

test("openFrames() does not take a variable bit rate for a constant one, even if an Info header claims it", async () => {
  const frames = [...constantMp3(200), ...variableMp3(4000)];
  const bytes = concatBytes(frames);
  const index = await openFrames(new MemorySource(bytes), "mp3", LAZY);
  assertEquals((await presentIndex(index, {}, UNCOUNTED)).ts.sizeBytes, null);
  assertFrames(await allSamples(index, bytes, backwards), frames, 1152, 44100);
});

for (const name of ["Xing", "VBRI"] as const) {
  test(`openFrames() plans runs by the number of frames that ${name} states, and finds them by reading`, async () => {
    const frames = variableMp3(6000);
    const bytes = concatBytes([vbrHeader(name, frames.length), ...frames, id3v1()]);
    const index = await openFrames(new MemorySource(bytes), "mp3", LAZY);
    assertEquals(index.warnings, []);
    assertEquals(Math.round(index.durationMs!), Math.round(frames.length * 1152 / 44.1));
    assertFrames(await allSamples(index, bytes, forwards), frames, 1152, 44100);
    assertFrames(await allSamples(index, bytes, backwards), frames, 1152, 44100);
    // Once the beginning of a run is known, it is not searched again.
    const last = index.timeline.kind === "streamed" ? index.timeline.runs.length - 1 : 0;
    const source = new CountingSource(bytes);
    await runSamples(index, last, source);
    assertLess(source.bytesRead, 200_000);
  });
}

test("openFrames() estimates the duration of ADTS slightly too short, and the last run has the rest", async () => {
  const frames = adtsFrames(9000);
  const bytes = concatBytes(frames);
  const source = new CountingSource(bytes);
  const index = await openFrames(source, "aac", LAZY);
  assertLess(source.bytesRead, bytes.length / 5);
  const exact = frames.length * 1024 / 48;
  assert(index.durationMs! < exact && index.durationMs! > exact * 0.95, `${index.durationMs} of ${exact}`);
  assertEquals(index.warnings.length, 1);
  assertFrames(await allSamples(index, bytes, backwards), frames, 1024, 48000);
});

test("openFrames() counts the frames of an MP3 without a word about them where AAC is made of it", async () => {
  const frames = variableMp3(4000);
  const options = { ...LAZY, transcode: { mp3: true, ac3: false } };
  const index = await openFrames(new MemorySource(concatBytes(frames)), "mp3", options);
  assertEquals(Math.round(index.durationMs!), Math.round(frames.length * 1152 / 44.1));
});

test("readRun() continues after damage and tags between frames", async () => {
  const [before, behind] = [constantMp3(3000), constantMp3(3000)];
  for (const between of [new Uint8Array(50_000).fill(0xff), id3Tag(2_000_000), new Uint8Array(417 * 30)]) {
    const bytes = concatBytes([...before, between, ...behind]);
    const index = await openFrames(new MemorySource(bytes), "mp3", LAZY);
    const samples = await allSamples(index, bytes, forwards);
    // The frames next to the damage may be lost, too.
    assert(samples.length >= 5990, `${samples.length} frames`);
    for (let i = 1; i < samples.length; i++) assert(samples[i]!.dts90k > samples[i - 1]!.dts90k);
  }
});

test("openFrames() refuses files without frames after bounded reading", async () => {
  const cases: [string, Uint8Array][] = [
    ["a tag alone", id3Tag(5000)],
    ["a tag and megabytes of nothing", concatBytes([id3Tag(5000), new Uint8Array(8_000_000)])],
    ["sync bytes alone", concatBytes([id3Tag(10), new Uint8Array(8_000_000).fill(0xff)])],
    ["one frame", concatBytes([id3Tag(10), mp3Frame(128, false), new Uint8Array(3_000_000)])],
    ["Info alone", concatBytes([id3Tag(10), vbrHeader("Info", 1_000_000)])],
  ];
  for (const [what, bytes] of cases) {
    const source = new CountingSource(bytes);
    const error = await assertRejects(() => openFrames(source, "mp3", LAZY), MillraceError, undefined, what);
    assert(hasCode(error, "bad_media"), what);
    assertLess(source.bytesRead, 2_200_000, what);
  }
});

test("openFrames() plays all of files that were put together or cut off, about as long as they are", async () => {
  for (const name of ["Info", "Xing", "VBRI"] as const) {
    const frames = name === "Info" ? constantMp3(5000) : variableMp3(5000);
    const sizeBytes = frames.reduce((sum, { length }) => sum + length, 0);
    const header = vbrHeader(name, frames.length, sizeBytes);
    const twice = concatBytes([header, ...frames, id3v1(), id3Tag(1000), header, ...frames]);
    const seconds = frames.length * 1152 / 44100;
    const index = await openFrames(new MemorySource(twice), "mp3", LAZY);
    // The second header is a frame without sound; at most one beside it falls to the seam.
    const samples = await allSamples(index, twice, forwards);
    assert(samples.length >= 2 * frames.length - 1, `${name}: ${samples.length} frames`);
    assert(Math.abs(index.durationMs! / 1000 - 2 * seconds) < 0.06 * seconds, `${name}: ${index.durationMs} ms`);
    const half = concatBytes([header, ...frames]).subarray(0, Math.floor(sizeBytes / 2));
    const cut = await openFrames(new MemorySource(half), "mp3", LAZY);
    const whole = (await allSamples(cut, half, backwards)).length * 1152 / 44100;
    assert(Math.abs(cut.durationMs! / 1000 - whole) < 0.05 * seconds, `${name}: ${cut.durationMs} ms of ${whole} s`);
  }
});

test("openFrames() keeps its bounds whatever count a damaged Xing frame states", async () => {
  const frames = constantMp3(2000);
  for (const count of [1, 5, 0x7fffffff, 0xffffffff]) {
    for (const name of ["Xing", "Info"] as const) {
      const bytes = concatBytes([vbrHeader(name, count), ...frames]);
      const index = await openFrames(new MemorySource(bytes), "mp3", LAZY);
      assert(index.timeline.kind === "streamed");
      assertLess(index.timeline.runs.length, 50, `${name} ${count}`);
    }
  }
});

test("readRun() rejects with `aborted` when its signal fires while it looks for the run", async () => {
  const bytes = concatBytes([vbrHeader("Xing", 6000), ...variableMp3(6000)]);
  const index = await openFrames(new MemorySource(bytes), "mp3", LAZY);
  assert(index.timeline.kind === "streamed");
  const controller = new AbortController();
  controller.abort();
  const { timeline } = index;
  const read = async () => {
    for await (const _ of timeline.readRun(20, new Set([0]), new MemorySource(bytes), controller.signal));
  };
  const error = await assertRejects(read, MillraceError);
  assert(hasCode(error, "aborted"));
});

test("openMedia() and readers of its result survive damaged audio files with bounded reads", async () => {
  const random = seeded(11);
  for (const name of ["audio-cbr.mp3", "audio-vbr.mp3", "audio-tagged.mp3", "audio.mp2", "audio.aac"]) {
    const original = fixture(name);
    for (let round = 0; round < 120; round++) {
      const bytes = original.slice(0, Math.ceil(original.length * (round % 3 === 0 ? random() : 1)));
      for (let i = 0; i < 1 + random() * 40; i++) {
        const at = Math.floor((random() < 0.5 ? random() * 400 : random() * bytes.length) % bytes.length);
        bytes[at] = Math.floor(random() * 256);
      }
      try {
        const kind = name.endsWith("aac") ? "aac" : "mp3";
        const presentation = round % 2 === 0 ? await openBytes(bytes) : await presentIndex(
          await openFrames(new MemorySource(bytes), kind, { ...LAZY, segmentTargetMs: 500 }),
          {},
          UNCOUNTED,
        );
        const source = new CountingSource(bytes);
        const whole = await collect(presentation.ts.read(0, null, source, NEVER));
        if (presentation.ts.sizeBytes !== null) assertEquals(whole.length, presentation.ts.sizeBytes);
        assertLess(presentation.hls.segments.length, 2000);
        for (const { index } of presentation.hls.segments.slice(0, 30)) {
          await collect(presentation.hls.readSegment(index, new MemorySource(bytes), NEVER));
        }
      } catch (error) {
        assert(error instanceof MillraceError, `${name} ${round}: ${error instanceof Error ? error.stack : error}`);
      }
    }
  }
});
