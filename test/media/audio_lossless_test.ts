import { test } from "node:test";
import { assert, assertEquals, assertLess, assertRejects } from "@std/assert";
import { concatBytes } from "../../src/bytes/hex.ts";
import { hasCode, MillraceError } from "../../src/errors.ts";
import { openFlac } from "../../src/media/index/audio/flac.ts";
import { openByLibrary } from "../../src/media/index/library/open-library.ts";
import { openMedia } from "../../src/media/open-media.ts";
import type { MediaIndex, RunSample } from "../../src/media/model/timeline.ts";
import { MemorySource } from "../support/memory-source.ts";
import { id3Tag, id3v1 } from "./support/audio-builder.ts";
import { CountingSource, fixture, NEVER, openBytes, seeded } from "./support/files.ts";
import {
  FLAC_BLOCK,
  FLAC_RATE,
  flacFrames,
  flacHead,
  oggPage,
  opusFile,
  opusPages,
  seekTable,
  wavChunk,
  wavFile,
} from "./support/lossless-builder.ts";

const OPEN = { signal: NEVER };

async function runSamples(index: MediaIndex, run: number, source: MemorySource | CountingSource): Promise<RunSample[]> {
  assert(index.timeline.kind === "streamed");
  const all: RunSample[] = [];
  for await (const batch of index.timeline.readRun(run, new Set([0]), source, NEVER)) all.push(...batch);
  return all;
}

const runsOf = (index: MediaIndex) => index.timeline.kind === "streamed" ? index.timeline.runs.length : 0;

/** All packets, with a new index for each run or all from `index`, the last run first. */
async function allSamples(index: MediaIndex, bytes: Uint8Array, isForwards: boolean): Promise<RunSample[]> {
  const runs: RunSample[][] = [];
  const order = Array.from({ length: runsOf(index) }, (_, i) => isForwards ? i : runsOf(index) - 1 - i);
  for (const run of order) runs[run] = await runSamples(index, run, new MemorySource(bytes));
  return runs.flat();
}

function assertFlac(samples: readonly RunSample[], frames: readonly Uint8Array[]) {
  assertEquals(samples.length, frames.length);
  for (const [i, { data, pts90k }] of samples.entries()) {
    assertEquals(data, frames[i]!, `frame ${i}`);
    assertEquals(pts90k, Math.round(i * FLAC_BLOCK * 90_000 / FLAC_RATE));
  }
}

const FRAMES = flacFrames(2600);
const TOTAL = FRAMES.length * FLAC_BLOCK;

test("openFlac() finds any run of a long file by looking at few places of it", async () => {
  const bytes = concatBytes([flacHead(TOTAL), ...FRAMES]);
  const source = new CountingSource(bytes);
  const index = await openFlac(source, 0, OPEN);
  assertLess(source.bytesRead, 20_000);
  assertEquals(Math.round(index.durationMs!), Math.round(TOTAL * 1000 / FLAC_RATE));
  for (const run of [runsOf(index) - 1, 20, 3]) {
    const seek = new CountingSource(bytes);
    const fresh = await openFlac(new MemorySource(bytes), 0, OPEN);
    const samples = await runSamples(fresh, run, seek);
    assert(samples.length > 10);
    assertLess(seek.bytesRead, 1_500_000, `run ${run}`);
  }
  assertFlac(await allSamples(index, bytes, false), FRAMES);
  assertFlac(await allSamples(index, bytes, true), FRAMES);
});

test("openFlac() reads after pictures and tags, follows a seek table, and counts samples that the header leaves out", async () => {
  const offsets = FRAMES.reduce<number[]>((all, frame) => [...all, all.at(-1)! + frame.length], [0]);
  const points = [0, 500, 1000, 1500, 2000].map((n) => [n * FLAC_BLOCK, offsets[n]!] as const);
  const picture = { type: 6, body: new Uint8Array(900_000).fill(0xff) };
  const cases: [string, Uint8Array, number][] = [
    ["a picture", concatBytes([flacHead(TOTAL, [picture]), ...FRAMES]), 0],
    ["a seek table", concatBytes([flacHead(TOTAL, [{ type: 3, body: seekTable(points) }]), ...FRAMES]), 0],
    ["no number of samples", concatBytes([flacHead(0), ...FRAMES]), 0],
    ["ID3 tags around", concatBytes([id3Tag(3000), flacHead(TOTAL), ...FRAMES, id3v1()]), 3010],
  ];
  for (const [what, bytes, position] of cases) {
    const source = new CountingSource(bytes);
    const index = await openFlac(source, position, OPEN);
    assertLess(source.bytesRead, 700_000, what);
    assertEquals(Math.round(index.durationMs!), Math.round(TOTAL * 1000 / FLAC_RATE), what);
    assertFlac(await allSamples(index, bytes, false), FRAMES);
  }
});

test("readRun() finds the right frames, in few places of the file, when a FLAC seek table is wrong", async () => {
  const offsets = FRAMES.reduce<number[]>((all, frame) => [...all, all.at(-1)! + frame.length], [0]);
  const at = [300, 500, 1000, 1500, 2000];
  const tables: Record<string, (readonly [number, number])[]> = {
    "places too early": at.map((n) => [n * FLAC_BLOCK, offsets[n >> 1]!]),
    "places too late": at.map((n) => [n * FLAC_BLOCK, offsets[n + 500]!]),
    "between frames": at.map((n) => [n * FLAC_BLOCK, offsets[n]! + 7]),
    "the first alone right": at.map((n) => [n * FLAC_BLOCK, offsets[n === 300 ? n : 300 + (n >> 8)]!]),
    "the last alone wrong": at.map((n) => [n * FLAC_BLOCK, offsets[n === 2000 ? 1501 : n]!]),
    "out of order": at.map((n) => [n * FLAC_BLOCK, offsets[2300 - n]!]),
    "beyond the sound": at.map((n) => [n * FLAC_BLOCK * 10, offsets[n]!]),
  };
  for (const [what, points] of Object.entries(tables)) {
    const bytes = concatBytes([flacHead(TOTAL, [{ type: 3, body: seekTable(points) }]), ...FRAMES]);
    assertFlac(await allSamples(await openFlac(new MemorySource(bytes), 0, OPEN), bytes, false), FRAMES);
    for (const part of [0.3, 0.5, 0.75, 0.95]) {
      const index = await openFlac(new MemorySource(bytes), 0, OPEN);
      const seek = new CountingSource(bytes);
      await runSamples(index, Math.floor(runsOf(index) * part), seek);
      assertLess(seek.bytesRead, 1_500_000, `${what}, ${part}`);
    }
  }
});

test("readRun() skips damaged FLAC frames and continues", async () => {
  const damaged = FRAMES.slice(0, 300).map((frame, n) => n === 100 || n === 201 ? new Uint8Array(frame.length) : frame);
  const bytes = concatBytes([flacHead(300 * FLAC_BLOCK), ...damaged]);
  const samples = await allSamples(await openFlac(new MemorySource(bytes), 0, OPEN), bytes, true);
  // When the next frame is missing, the end of this one cannot be found either.
  assert(samples.length >= 296, `${samples.length} frames`);
});

test("readRun() soon gives up on FLAC that is all headers or sync bytes", async () => {
  const header = FRAMES[1]!.subarray(0, 6);
  for (const pattern of [Uint8Array.of(0xff), Uint8Array.of(0xff, 0xf8), header]) {
    const head = flacHead(0xffffff);
    // The longest blocks: a frame is looked for as far as one of them reaches.
    head.set([0xff, 0xff], 10);
    const rest = new Uint8Array(8_000_000);
    for (let i = 0; i < rest.length; i++) rest[i] = pattern[i % pattern.length]!;
    const bytes = concatBytes([head, rest]);
    const source = new CountingSource(bytes);
    const index = await openFlac(source, 0, OPEN);
    for (const run of [0, Math.floor(runsOf(index) / 2)]) assertEquals(await runSamples(index, run, source), []);
    assertLess(source.bytesRead, 12_000_000);
  }
});

test("openByLibrary() yields every packet of Ogg Opus with its time, in any order of runs", async () => {
  for (const preSkip of [312, 3840]) {
    const { bytes, packets } = opusFile(6000, preSkip);
    const source = new CountingSource(bytes);
    const index = await openByLibrary(source, "ogg", OPEN);
    assertLess(source.bytesRead, 140_000);
    assertEquals(Math.round(index.durationMs!), Math.round(6000 * 20 - preSkip / 48));
    for (const isForwards of [true, false]) {
      const samples = await allSamples(index, bytes, isForwards);
      assertEquals(samples.length, packets.length);
      for (const [i, { data, pts90k }] of samples.entries()) {
        assertEquals(data, packets[i]!);
        // Times as in Matroska: nothing is skipped.
        assertEquals(pts90k, i * 1800, `packet ${i}`);
      }
    }
  }
});

test("openByLibrary() reads on in Ogg and WAV where the run before ended, and looks at few places for a seek", async () => {
  const wav = wavFile(new Uint8Array(8_000_000));
  for (const [bytes, container, most] of [[opusFile(30_000).bytes, "ogg", 700_000], [wav, "wav", 1_300_000]] as const) {
    const index = await openByLibrary(new MemorySource(bytes), container, OPEN);
    const source = new CountingSource(bytes);
    for (let run = 0; run < runsOf(index); run++) await runSamples(index, run, source);
    assertLess(source.bytesRead, bytes.length * 1.2);
    const seek = new CountingSource(bytes);
    await runSamples(index, Math.floor(runsOf(index) * 0.7), seek);
    assertLess(seek.bytesRead, most);
  }
});

test("openByLibrary() distinguishes PCM formats, and refuses others by name", async () => {
  const sound = new Uint8Array(96_000).fill(3);
  for (
    const [bits, format, id] of [[8, 1, "A_PCM/INT/LIT"], [16, 1, "A_PCM/INT/LIT"], [24, 1, "A_PCM/INT/LIT"], [
      32,
      3,
      "A_PCM/FLOAT/IEEE",
    ]] as const
  ) {
    const index = await openByLibrary(new MemorySource(wavFile(sound, { bits, format })), "wav", OPEN);
    assertEquals([index.tracks[0]!.codec, index.tracks[0]!.matroskaId, index.tracks[0]!.bitDepth], ["pcm", id, bits]);
    const samples = await allSamples(index, wavFile(sound, { bits, format }), true);
    assertEquals(concatBytes(samples.map(({ data }) => data)), sound);
  }
  const law = await openBytes(wavFile(sound, { bits: 8, format: 7 })).then(() => "", (error: Error) => error.message);
  assert(law.startsWith("MPEG TS cannot carry µ-law"), law);
  const adpcm = await assertRejects(() => openBytes(wavFile(sound, { bits: 4, format: 2 })), MillraceError);
  assert(hasCode(adpcm, "bad_media") || hasCode(adpcm, "unsupported_media"));
});

for (
  const [name, codec] of [["audio.flac", "flac"], ["audio.opus", "opus"], ["audio-vorbis.ogg", "vorbis"], [
    "audio.wav",
    "pcm",
  ]] as const
) {
  test(`openMedia() refuses ${name} by its codec's name without an encoder`, async () => {
    const error = await assertRejects(() => openBytes(fixture(name)), MillraceError);
    const advice = "ask for AAC with transcode_audio=1";
    assertEquals([error.code, error.message], ["unsupported_media", `MPEG TS cannot carry ${codec}: ${advice}`]);
    const missing = { isAvailable: () => Promise.resolve(false), encode: () => Promise.reject(new Error("never")) };
    const wish = { transcode: { mp3: false, ac3: false }, audioEncoder: missing };
    const without = await assertRejects(() => openBytes(fixture(name), wish), MillraceError);
    assertEquals(
      [without.code, without.message],
      ["unsupported_media", `MPEG TS cannot carry ${codec}; ffmpeg was not found: ${codec} is not converted to AAC`],
    );
  });
}

test("openMedia() reports pictures in Ogg as left out, and makes AAC of the sound", async () => {
  const { bytes } = opusFile(500);
  const theora = new Uint8Array(42);
  theora.set(new TextEncoder().encode("?theora"));
  theora[0] = 0x80;
  const [first] = opusPages(312);
  const film = concatBytes([
    first!,
    oggPage({ flags: 2, granule: 0, serial: 9, number: 0 }, [theora]),
    bytes.subarray(first!.length),
  ]);
  const error = await assertRejects(() => openBytes(film), MillraceError);
  assertEquals([error.code, error.message], ["unsupported_media", "MPEG TS cannot carry opus, Theora"]);
  const encoder = { isAvailable: () => Promise.resolve(true), encode: () => Promise.resolve(new Uint8Array(0)) };
  const { outputTracks, warnings } = await openBytes(film, {
    transcode: { mp3: false, ac3: false },
    audioEncoder: encoder,
  });
  assertEquals(outputTracks.map(({ codec }) => codec), ["aac"]);
  assertEquals(warnings, ["video track 2 left out: MPEG TS cannot carry Theora"]);
});

test("openByLibrary() ends with bad_media, after bounded reading, on files that are built to cost", async () => {
  const begin = Array.from({ length: 20_000 }, (_, n) => oggPage({ flags: 2, granule: 0, serial: n, number: 0 }, []));
  const [head] = opusPages(312);
  const endless = new Uint8Array(255 * 255).fill(1);
  const continued = oggPage(
    { flags: 0, granule: -1, number: 1 },
    Array.from({ length: 255 }, (_, i) => endless.subarray(i * 255, i * 255 + 255)),
  );
  const many = concatBytes([head!, ...Array.from({ length: 400 }, () => continued)]);
  const chunks = concatBytes(Array.from({ length: 20_000 }, () => wavChunk("junk", new Uint8Array(0))));
  const cases: [string, Uint8Array, "ogg" | "wav"][] = [
    ["streams without number", concatBytes(begin), "ogg"],
    ["a packet without end", many, "ogg"],
    ["chunks without number", wavFile(new Uint8Array(10), {}, [chunks]), "wav"],
    ["a list of all the file", wavFile(new Uint8Array(10), {}, [wavChunk("LIST", new Uint8Array(30_000_000))]), "wav"],
    ["no rate", wavFile(new Uint8Array(1000), { rate: 0 }), "wav"],
    ["no channels", wavFile(new Uint8Array(1000), { channels: 0 }), "wav"],
    ["no sound", wavFile(new Uint8Array(0)), "wav"],
    ["a head alone", head!, "ogg"],
    ["nothing", concatBytes([head!.subarray(0, 27), new Uint8Array(100)]), "ogg"],
  ];
  for (const [what, bytes, container] of cases) {
    const source = new CountingSource(bytes);
    const error = await assertRejects(() => openByLibrary(source, container, OPEN), MillraceError, undefined, what);
    assert(hasCode(error, "bad_media") || hasCode(error, "unsupported_media"), `${what}: ${error.code}`);
    assertLess(source.bytesRead, 40_000_000, what);
  }
});

test("the length that a file claims is bounded by its size", async () => {
  const { bytes } = opusFile(100);
  const view = new DataView(bytes.buffer);
  // The granule position of the last page.
  const last = bytes.length - opusFile(100).packets.slice(50).reduce((sum, { length }) => sum + length, 0) - 77;
  view.setBigInt64(last + 6, 2n ** 62n, true);
  const index = await openByLibrary(new MemorySource(bytes), "ogg", OPEN);
  assertLess(index.durationMs!, 1e6);
  const flac = await openFlac(new MemorySource(concatBytes([flacHead(0xffffffff), ...FRAMES.slice(0, 20)])), 0, OPEN);
  assertLess(flac.durationMs!, 4e6);
});

test("openMedia() rejects with `aborted` when its signal fires while an Ogg file is looked into", async () => {
  const { bytes } = opusFile(100);
  const controller = new AbortController();
  const inner = new MemorySource(bytes);
  const source = {
    sizeBytes: bytes.length,
    read: (offset: number, length: number, options: { signal: AbortSignal }) => {
      if (offset > 0 || length > 4096) controller.abort();
      return inner.read(offset, length, options);
    },
  };
  const error = await assertRejects(
    () => openMedia(source, { fileName: "a.opus", signal: controller.signal }),
    MillraceError,
  );
  assert(hasCode(error, "aborted"), error.code);
});

test("openFlac(), openByLibrary() and readRun() survive damaged files with bounded reads", async () => {
  const random = seeded(23);
  for (const name of ["audio.flac", "audio.opus", "audio-vorbis.ogg", "audio.wav"]) {
    const original = fixture(name);
    for (let round = 0; round < 120; round++) {
      const bytes = original.slice(0, Math.ceil(original.length * (round % 3 === 0 ? random() : 1)));
      for (let i = 0; i < 1 + random() * 40; i++) {
        const at = Math.floor((random() < 0.5 ? random() * 400 : random() * bytes.length) % bytes.length);
        bytes[at] = Math.floor(random() * 256);
      }
      const source = new CountingSource(bytes);
      try {
        const index = name === "audio.flac"
          ? await openFlac(source, 0, { ...OPEN, segmentTargetMs: 1000 })
          : await openByLibrary(source, name === "audio.wav" ? "wav" : "ogg", { ...OPEN, segmentTargetMs: 1000 });
        assertLess(runsOf(index), 20_000);
        for (let run = 0; run < Math.min(12, runsOf(index)); run++) {
          assertLess((await runSamples(index, run, source)).length, original.length);
        }
      } catch (error) {
        assert(error instanceof MillraceError, `${name} ${round}: ${error instanceof Error ? error.stack : error}`);
      }
      assertLess(source.bytesRead, 60 * original.length, `${name} ${round}`);
    }
  }
});

test("readRun() rejects with the source's error or the signal's reason, whenever they come, and leaks nothing", async () => {
  const random = seeded(3);
  const files = [[opusFile(2000).bytes, "ogg"], [wavFile(new Uint8Array(1_000_000)), "wav"]] as const;
  let failures = 0;
  for (let round = 0; round < 80; round++) {
    const [bytes, container] = files[round % 2]!;
    const inner = new MemorySource(bytes);
    const controller = new AbortController();
    const last = Math.floor(random() * 16);
    const isAborted = random() < 0.5;
    let reads = 0;
    const source = {
      sizeBytes: bytes.length,
      async read(offset: number, length: number, options: { signal: AbortSignal }) {
        for (let turns = random() * 20; turns > 0; turns--) await null;
        if (reads++ === last && isAborted) controller.abort();
        else if (reads > last) throw new MillraceError("closed", "the swarm is gone");
        return await inner.read(offset, length, options);
      },
    };
    try {
      const { timeline } = await openByLibrary(source, container, { signal: controller.signal });
      assert(timeline.kind === "streamed");
      // Three readers at a time, each continuing where another ended.
      await Promise.all([0, 1, 2].map(async (first) => {
        for (let run = first; run < Math.min(timeline.runs.length, first + 3); run++) {
          for await (const _ of timeline.readRun(run, new Set([0]), source, controller.signal));
        }
      }));
    } catch (error) {
      assert(error instanceof MillraceError && ["closed", "aborted"].includes(error.code), String(error));
      failures++;
    }
  }
  assert(failures > 20, String(failures));
});
