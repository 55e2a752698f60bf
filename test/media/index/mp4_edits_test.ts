/** What an MP4 file presents of its media, and how: edit lists, turned pictures, covers, Dolby Vision. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { openMp4 } from "../../../src/media/index/mp4/open-mp4.ts";
import type { SampleTable, TabledTimeline } from "../../../src/media/model/timeline.ts";
import { concatBytes } from "../../../src/bytes/hex.ts";
import { MemorySource } from "../../support/memory-source.ts";
import { checkTs } from "../../support/ts-check.ts";
import { collect, NEVER, openBytes } from "../support/files.ts";
import {
  avcEntry,
  box,
  contiguousTables,
  fileOf,
  fullBox,
  movieBox,
  nalUnit,
  type TrackSpec,
  u32,
} from "../support/mp4-builder.ts";

const PICTURES = Array.from({ length: 30 }, (_, i) => nalUnit(i % 10 === 0 ? 0x65 : 0x41, 100));

/** Thirty pictures at 25 per second, a random access point each ten; `change` is made to the track. */
function clip(change: Partial<TrackSpec>, more: readonly Uint8Array[] = []): Uint8Array {
  const track = (offset: number): TrackSpec => ({
    id: 1,
    kind: "vide",
    timescale: 25_000,
    entry: avcEntry(),
    tables: [
      ...contiguousTables(PICTURES.map(({ length }) => length), 1000, offset),
      fullBox("stss", 0, 0, u32(3, 1, 11, 21)),
      ...more,
    ],
    ...change,
  });
  return fileOf((offset) => movieBox([track(offset)]), PICTURES);
}

const edits = (...entries: readonly (readonly [durationMs: number, mediaTime: number])[]) =>
  fullBox("elst", 0, 0, u32(entries.length, ...entries.flatMap(([duration, time]) => [duration, time, 0x10000])));

async function tableOf(file: Uint8Array): Promise<{ table: SampleTable; warnings: readonly string[] }> {
  const { timeline, warnings } = await openMp4(new MemorySource(file), { fileName: "a.mp4", signal: NEVER });
  return { table: (timeline as TabledTimeline).tables[0]!, warnings };
}

/** Numbers of the pictures in `table`, by their places. */
function picturesOf({ offsets }: SampleTable, file: Uint8Array): number[] {
  const first = file.length - PICTURES.length * 100;
  return [...offsets].map((offset) => (offset - first) / 100);
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

test("openMp4() presents the stretches that several edits name, one after the other", async () => {
  const file = clip({ edits: edits([400, 0], [400, 20_000]) });
  const { table, warnings } = await tableOf(file);
  assertEquals(picturesOf(table, file), [...range(0, 10), ...range(20, 30)]);
  assertEquals([...table.dts90k], range(0, 20).map((i) => i * 3600));
  assertEquals([...table.keyframes!], [0, 10]);
  assertEquals(warnings, []);
});

test("openMp4() begins an edit that starts between random access points at the next one, keeping its time", async () => {
  const file = clip({ edits: edits([400, 0], [600, 14_000]) });
  const { table } = await tableOf(file);
  assertEquals(picturesOf(table, file), [...range(0, 10), ...range(20, 29)]);
  // The edit begins at 0.4 s with picture 14: picture 20 is 0.24 s later.
  assertEquals(table.dts90k.at(10), (10 + 6) * 3600);
});

test("openMp4() waits as long as an empty edit between two others says", async () => {
  const file = clip({ edits: edits([400, 0], [1000, -1], [400, 10_000]) });
  const { table } = await tableOf(file);
  assertEquals(picturesOf(table, file), range(0, 20));
  assertEquals(table.dts90k.at(10) - table.dts90k.at(9), 3600 + 90_000);
});

for (
  const { what, list, kept, startsAt, told } of [
    { what: "in the middle", list: [600, 16_000], kept: range(10, 30), startsAt: 0, told: 0.2 },
    { what: "at a random access point", list: [400, 10_000], kept: range(10, 30), startsAt: 0, told: null },
    { what: "to its beginning", list: [400, 0], kept: range(0, 10), startsAt: 0, told: null },
    { what: "by less than a coder's delay", list: [1100, 2_000], kept: range(0, 30), startsAt: 0, told: null },
    { what: "without a length", list: [0, 20_000], kept: range(20, 30), startsAt: 0, told: null },
  ] as const
) {
  test(`openMp4() presents what one edit names when it trims a clip ${what}`, async () => {
    const file = clip({ edits: edits(list) });
    const { table, warnings } = await tableOf(file);
    assertEquals(picturesOf(table, file), kept);
    assertEquals(table.dts90k.at(0), startsAt);
    assertEquals(warnings.filter((text) => text.includes("begins there")).length, told === null ? 0 : 1);
  });
}

test("openMp4() keeps pictures that are decoded after one beyond the cut when one edit trims a clip", async () => {
  // From the second on, each other picture is presented after the next one.
  const shifts = range(0, 30).flatMap((i) => [1, i === 0 ? 1000 : i % 2 === 1 ? 2000 : 0]);
  const file = clip({ edits: edits([400, 1000]) }, [fullBox("ctts", 0, 0, u32(30, ...shifts))]);
  const { table } = await tableOf(file);
  assertEquals(picturesOf(table, file), range(0, 11));
});

test("openMp4() takes edits that go on where the one before ends as one", async () => {
  const file = clip({ edits: edits([400, 5000], [400, 15_000]) });
  const { table } = await tableOf(file);
  assertEquals(picturesOf(table, file), range(0, 30));
});

test("openMp4() drops pictures that follow an edit's random access point and are presented before the edit", async () => {
  // Picture 11 and 12 are decoded after 10 and presented before it.
  const shifts = [[10, 2000], [1, 4000], [2, 0], [17, 2000]].flat();
  const file = clip({ edits: edits([200, 0], [400, 12_000]) }, [fullBox("ctts", 0, 0, u32(4, ...shifts))]);
  const { table } = await tableOf(file);
  assertEquals(picturesOf(table, file), [...range(0, 3), 10, ...range(13, 20)]);
});

test("openMp4() reports a track that changes its codec data within the file, and only such a track", async () => {
  const told = "track 1 changes its codec data within the file: parts with other data may not play";
  const other = avcEntry(4, [0x67, 9, 9, 9]);
  assertEquals((await tableOf(clip({ moreEntries: [other] }))).warnings, [told]);
  assertEquals((await tableOf(clip({ moreEntries: [avcEntry(), avcEntry()] }))).warnings, []);
});

test("openMp4() takes a single picture that cannot be carried for a cover", async () => {
  const cover = (count: number) => {
    const fixed = new Uint8Array(78);
    const sizes = Array.from({ length: count }, () => 100);
    return openMp4(
      new MemorySource(fileOf((offset) => {
        const tables = contiguousTables(sizes, 1000, offset);
        return movieBox([{ id: 1, kind: "vide", timescale: 1000, entry: box("jpeg", fixed), tables }]);
      }, [new Uint8Array(100 * count)])),
      { fileName: "a.m4a", signal: NEVER },
    );
  };
  assertEquals((await cover(1)).tracks[0]!.kind, "other");
  assertEquals((await cover(2)).tracks[0]!.kind, "video");
});

test("openMedia() reports by how much to turn a picture, which MPEG TS cannot say", async () => {
  const turns = [[[0, 1], 90], [[-1, 0], 180], [[0, -1], 270]] as const;
  for (const [turn, degrees] of turns) {
    const { tracks, warnings } = await openBytes(clip({ turn }));
    assertEquals(tracks[0]!.rotationDegrees, degrees);
    assert(warnings.some((text) => text.includes(`turned by ${degrees}° clockwise`)), warnings.join());
  }
  const { tracks, warnings } = await openBytes(clip({ turn: [1, 0] }));
  assertEquals([tracks[0]!.rotationDegrees, warnings], [undefined, []]);
});

test("openMedia() carries Dolby Vision's configuration, and reports colours that other displays show wrong", async () => {
  const open = async (profile: number, compatibility: number) => {
    const entry = avcEntry();
    const record = new Uint8Array(24);
    record.set([1, 0, profile << 1, 6 << 3 | 5, compatibility << 4]);
    const dovi = box("dvcC", record);
    const whole = concatBytes([u32(entry.length + dovi.length), entry.subarray(4), dovi]);
    const bytes = clip({ entry: whole });
    const { ts, warnings } = await openBytes(bytes);
    const made = await collect(ts.read(0, null, new MemorySource(bytes), NEVER));
    assertEquals(checkTs(made).problems, []);
    return { warnings, map: [...made.subarray(188, 376)].join() };
  };
  const alone = await open(5, 0);
  assertEquals(alone.warnings.length, 1);
  assert(alone.map.includes([0xb0, 5, 1, 0, 10, 53, 0x0f].join()), alone.map);
  const compatible = await open(8, 1);
  assertEquals(compatible.warnings, []);
  assert(compatible.map.includes([0xb0, 5, 1, 0, 16, 53, 0x1f].join()), compatible.map);
});
