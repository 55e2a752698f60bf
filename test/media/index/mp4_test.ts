import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { MemorySource } from "../../support/memory-source.ts";
import { hasCode, MillraceError } from "../../../src/errors.ts";
import { openMp4 } from "../../../src/media/index/mp4/open-mp4.ts";
import type { SampleTable, TabledTimeline } from "../../../src/media/model/timeline.ts";
import { checkTs, ticksBetween } from "../../support/ts-check.ts";
import { collect, fixture, NEVER, openBytes, seeded } from "../support/files.ts";
import {
  aacEntry,
  avcEntry,
  box,
  contiguousTables,
  fileOf,
  fullBox,
  movieBox,
  nalUnit,
  type TrackSpec,
  u32,
  u64,
} from "../support/mp4-builder.ts";
import { concatBytes } from "../../../src/bytes/hex.ts";

const OPTIONS = { fileName: "a.mp4", signal: NEVER };

async function tablesOf(file: Uint8Array): Promise<(SampleTable | null)[]> {
  const index = await openMp4(new MemorySource(file), OPTIONS);
  return [...(index.timeline as TabledTimeline).tables];
}

/** Thirty pictures of 100 bytes at 25 per second; `change` edits the track. */
function clip(change: (spec: TrackSpec, offset: number) => TrackSpec, tracks: TrackSpec[] = []): Uint8Array {
  const pictures = Array.from({ length: 30 }, (_, i) => nalUnit(i % 10 === 0 ? 0x65 : 0x41, 100));
  const video = (offset: number) => {
    const tables = contiguousTables(pictures.map((picture) => picture.length), 1000, offset);
    return change({ id: 1, kind: "vide", timescale: 25000, entry: avcEntry(), tables }, offset);
  };
  return fileOf((offset) => movieBox([video(offset), ...tracks]), pictures);
}

function withTables(...extra: Uint8Array[]) {
  return (spec: TrackSpec): TrackSpec => ({ ...spec, tables: [...spec.tables, ...extra] });
}

test("openMp4() reads offsets, sizes, times and keyframes", async () => {
  const [table] = await tablesOf(clip(withTables(fullBox("stss", 0, 0, u32(3, 1, 11, 21)))));
  assertEquals(table!.count, 30);
  assertEquals([...table!.keyframes!], [0, 10, 20]);
  assertEquals(table!.dts90k.at(29), 29 * 3600);
  assertEquals(table!.offsets.at(5) - table!.offsets.at(4), 100);
  assertEquals(table!.ptsShift90k, null);
});

test("openMp4() reads co64, stz2 and several chunk runs", async () => {
  for (const bits of [4, 8, 16]) {
    const sizes = bits === 4 ? [1, 2, 3, 4, 15] : [10, 20, 30, 40, 50];
    const packed = bits === 4
      ? Uint8Array.of(0x12, 0x34, 0xf0)
      : bits === 8
      ? Uint8Array.from(sizes)
      : concatBytes(sizes.map((size) => Uint8Array.of(size >> 8, size)));
    const tables = (offset: number) => [
      fullBox("stts", 0, 0, u32(1, 5, 1)),
      fullBox("stsc", 0, 0, u32(2, 1, 2, 1, 3, 1, 1)),
      fullBox("stz2", 0, 0, u32(bits, 5), packed),
      fullBox("co64", 0, 0, u32(3), u64(offset, offset + 100, offset + 200)),
    ];
    const spec = (offset: number): TrackSpec => ({
      id: 1,
      kind: "vide",
      timescale: 25,
      entry: avcEntry(),
      tables: tables(offset),
    });
    let start = 0;
    const file = fileOf((offset) => movieBox([spec(start = offset)]), [new Uint8Array(300)]);
    const [table] = await tablesOf(file);
    assertEquals([...table!.sizes], sizes);
    assertEquals(
      [...table!.offsets].map((offset) => offset - start),
      [0, sizes[0], 100, 100 + sizes[2]!, 200],
    );
  }
});

test("openMp4() moves decoding times ahead of negative composition offsets", async () => {
  const ctts = fullBox("ctts", 1, 0, u32(2, 15, 0, 15, -2000));
  const [table] = await tablesOf(clip(withTables(ctts)));
  assertEquals(table!.dts90k.at(0), 0);
  assertEquals(table!.ptsShift90k!.at(0), 7200);
  assertEquals(table!.ptsShift90k!.at(20), 0);
});

test("openMp4() follows empty edits and media times, to the tick", async () => {
  const frames = Array.from({ length: 20 }, () => 50);
  const audio: TrackSpec = {
    id: 2,
    kind: "soun",
    timescale: 48000,
    entry: aacEntry(),
    tables: contiguousTables(frames, 1024, 100),
    // 250 ms of nothing, then from the 1024th sample on.
    edits: fullBox("elst", 0, 0, u32(2, 250, -1, 0x10000, 5000, 1024, 0x10000)),
  };
  const [video, sound] = await tablesOf(clip((spec) => spec, [audio]));
  assertEquals(sound!.dts90k.at(0) - video!.dts90k.at(0), 22500 - 1920);
  const long = { ...audio, edits: fullBox("elst", 1, 0, u32(1), u64(5000, 1024), u32(0x10000)) };
  const [picture, early] = await tablesOf(clip((spec) => spec, [long]));
  assertEquals(early!.dts90k.at(0) - picture!.dts90k.at(0), -1920);
  assertEquals(early!.dts90k.at(0), 0);
});

test("openMp4() takes languages, flags and the AAC configuration", async () => {
  const audio = (id: number, language: string, isEnabled: boolean): TrackSpec => ({
    id,
    kind: "soun",
    timescale: 48000,
    entry: aacEntry(),
    tables: contiguousTables([50], 1024, 100),
    language,
    isEnabled,
  });
  const file = clip((spec) => spec, [audio(2, "eng", true), audio(3, "fra", false)]);
  const { tracks } = await openMp4(new MemorySource(file), OPTIONS);
  assertEquals(tracks.map((track) => track.language), [null, "eng", "fra"]);
  assertEquals(tracks.map((track) => track.isDefault), [true, true, false]);
  assertEquals([tracks[1]!.sampleRate, tracks[1]!.channels], [48000, 2]);
  const { outputTracks } = await openBytes(file, { preferredAudioLanguage: "fr" });
  assertEquals(outputTracks.map((track) => track.id), [1, 3, 2]);
});

test("openMp4() finds moov after a 64-bit mdat", async () => {
  const media = new Uint8Array(3000);
  const mdat = concatBytes([u32(1), Uint8Array.of(0x6d, 0x64, 0x61, 0x74), u64(16 + media.length), media]);
  const tables = contiguousTables(new Array(30).fill(100), 1000, 16);
  const movie = movieBox([{ id: 1, kind: "vide", timescale: 25000, entry: avcEntry(), tables }]);
  const [table] = await tablesOf(concatBytes([mdat, movie]));
  assertEquals(table!.count, 30);
});

test("openMp4() leaves out the missing part of a truncated file, and says so", async () => {
  const file = clip((spec) => spec);
  const index = await openMp4(new MemorySource(file.subarray(0, file.length - 1050)), OPTIONS);
  assertEquals((index.timeline as TabledTimeline).tables[0]!.count, 19);
  assert(index.warnings[0]!.includes("ends early"));
});

test("openMp4() rejects with bad_media without a movie box", async () => {
  for (const bytes of [new Uint8Array(0), box("ftyp"), concatBytes([box("ftyp"), box("mdat", new Uint8Array(100))])]) {
    const error = await assertRejects(() => openMp4(new MemorySource(bytes), OPTIONS), MillraceError);
    assert(hasCode(error, "bad_media"));
  }
});

test("openMp4() bounds declared counts by the boxes and the file", async () => {
  const huge = 0xfffffff0;
  const tables = (offset: number) => [
    fullBox("stts", 0, 0, u32(1, huge, 1)),
    fullBox("stsc", 0, 0, u32(huge, 1, huge, 1)),
    fullBox("stsz", 0, 0, u32(10, huge)),
    fullBox("stco", 0, 0, u32(huge, offset)),
    fullBox("ctts", 0, 0, u32(1, huge, 5)),
    fullBox("stss", 0, 0, u32(huge, 1, 2)),
  ];
  const [table] = await tablesOf(clip((spec, offset) => ({ ...spec, tables: tables(offset) })));
  assertEquals(table!.count, 300);
  assertEquals([...table!.keyframes!], [0, 1]);
});

test("TsLayout survives the wrap of the 33-bit clock", async () => {
  // Two pictures last 13.25 hours each: gaps that are no fault of the muxer.
  const stts = fullBox("stts", 0, 0, u32(3, 9, 1000, 2, 25000 * 47720.8, 19, 1000));
  const file = clip((spec) => ({ ...spec, tables: [stts, ...spec.tables.slice(1)] }));
  const { ts } = await openBytes(file);
  const report = checkTs(await collect(ts.read(0, null, new MemorySource(file), NEVER)));
  assertEquals(report.problems.filter((problem) => !problem.includes("PCR gap")), []);
  const units = report.streams[0]!.units;
  assertEquals(units.length, 30);
  assert(units[29]!.dts < units[0]!.dts);
  assertEquals(ticksBetween(units[29]!.dts, units[28]!.dts), 3600);
});

test("openMp4() takes the first picture for a random access point, and all of them when the list is empty", async () => {
  const [late] = await tablesOf(clip(withTables(fullBox("stss", 0, 0, u32(2, 11, 21)))));
  assertEquals([...late!.keyframes!], [0, 10, 20]);
  const [none] = await tablesOf(clip(withTables(fullBox("stss", 0, 0, u32(0)))));
  assertEquals(none!.keyframes, null);
});

test("HlsPlan cuts at the keyframe nearest the target", async () => {
  const stss = fullBox("stss", 0, 0, u32(4, 1, 8, 16, 24));
  const { hls } = await openBytes(clip(withTables(stss)), { segmentTargetMs: 360 });
  assertEquals(hls.segments.map((segment) => segment.durationMs), [280, 320, 320, 280]);
  assertEquals(hls.targetDurationS, 1);
});

/** Changes a few bytes of `bytes` within `[from, to)`. */
function mutate(bytes: Uint8Array, from: number, to: number, random: () => number): Uint8Array {
  const out = bytes.slice();
  for (let i = 0, n = 1 + Math.floor(random() * 8); i < n; i++) {
    const at = from + Math.floor(random() * (to - from));
    const kind = random();
    out[at] = kind < 0.4 ? Math.floor(random() * 256) : kind < 0.6 ? 0xff : kind < 0.8 ? 0 : out[at]! ^ (1 << (i & 7));
  }
  return out;
}

for (const name of ["mp4-front.mp4", "mp4-two-audio.mp4", "mp4-fragmented-sidx.mp4", "mp4-fragmented-mfra.mp4"]) {
  test(`openMedia() and TsLayout.read() survive mutations of ${name}`, async () => {
    const whole = fixture(name);
    const random = seeded(name.length);
    // Where the index is: the front, and the end for mfra.
    const isEnd = name.includes("mfra");
    for (let round = 0; round < 250; round++) {
      const from = isEnd && round % 2 === 1 ? whole.length - 200 : 0;
      const file = mutate(whole, from, Math.min(whole.length, from + 12_000), random);
      try {
        const { ts } = await openBytes(file);
        let bytes = 0;
        for await (const chunk of ts.read(0, null, new MemorySource(file), NEVER)) {
          assertEquals(chunk.length <= 256 * 1024, true);
          if ((bytes += chunk.length) > 4_000_000) break;
        }
        if (ts.sizeBytes !== null && bytes < 4_000_000) assertEquals(bytes, ts.sizeBytes);
      } catch (error) {
        if (!(error instanceof MillraceError)) throw error;
      }
    }
  });
}
