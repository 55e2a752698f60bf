/** Transport stream files that lost bytes or change their streams: segments hold everything. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { concatBytes } from "../../src/bytes/hex.ts";
import { pidOf, startsUnit } from "../../src/bytes/ts/packet.ts";
import { SegmentTables } from "../../src/bytes/ts/program-tables.ts";
import { readPmt, sectionBytes, signSection } from "../../src/bytes/ts/psi.ts";
import type { IndexedPresentation } from "../../src/media/model/types.ts";
import { MemorySource } from "../support/memory-source.ts";
import { checkTs } from "../support/ts-check.ts";
import { fixture } from "./mkv-support.ts";
import { openBytes } from "./support/files.ts";
import { gather, never, openTs, repeatTs, segments } from "./ts-input-support.ts";

for (
  const { what, edit } of [
    {
      what: "lost 100 bytes",
      edit: (ts: Uint8Array, at: number) => concatBytes([ts.subarray(0, at), ts.subarray(at + 100)]),
    },
    {
      what: "has 77 bytes too many",
      edit: (ts: Uint8Array, at: number) => concatBytes([ts.subarray(0, at), new Uint8Array(77), ts.subarray(at)]),
    },
  ]
) {
  test(`openTransportStream() plays all of a file in HLS that ${what}`, async () => {
    const sound = repeatTs(fixture("ts-188.ts"), 4, 6 * 90_000);
    const at = Math.floor(sound.length / 2 / 188) * 188 + 37;
    const source = new MemorySource(edit(sound, at));
    const whole = new MemorySource(sound);
    const units = async (presentation: IndexedPresentation, from: MemorySource) =>
      checkTs(concatBytes(await segments(presentation, from)), { isSegment: false }).streams.map(({ units }) =>
        units.length
      );
    const before = await units(await openTs(whole), whole);
    const presentation = await openTs(source);
    const after = await units(presentation, source);
    for (const [i, count] of before.entries()) assert(after[i]! >= count - 1, `${after[i]} of ${count}`);
    assertEquals(presentation.faults.counts.gaps, 1);
  });
}

const MAP_PID = 0x1000;

/** `ts` with other PIDs for its streams, in its maps too; `type`: stream type of the last stream, null to leave the types. */
function withStreams(ts: Uint8Array, pidOfStream: (pid: number) => number, type: number | null = null): Uint8Array {
  const out = ts.slice();
  const set = (at: number, pid: number) => out.set([(out[at]! & 0xe0) | (pid >> 8), pid & 0xff], at);
  for (let at = 0; at < out.length; at += 188) {
    const pid = pidOf(out, at);
    if (pid >= 0x100 && pid < 0x110) set(at + 1, pidOfStream(pid));
    if (pid !== MAP_PID || !startsUnit(out, at)) continue;
    const section = out.subarray(at + 5, at + 5 + sectionBytes(out, at + 5));
    set(at + 5 + 8, pidOfStream(readPmt(section)!.pcrPid));
    let entry = at + 5 + 12 + section[11]!;
    for (const { pid, descriptors } of readPmt(section)!.streams) {
      set(entry + 1, pidOfStream(pid));
      if (type !== null && pid === 0x101) out[entry] = type;
      entry += 5 + descriptors.length;
    }
    signSection(section);
  }
  return out;
}

/** How many PES of each PID from 0x100 to 0x2ff begin in `ts`. */
function pesOf(ts: Uint8Array): Record<string, number> {
  const counts: Record<string, number> = {};
  for (let at = 0; at < ts.length; at += 188) {
    const pid = pidOf(ts, at);
    if (pid >= 0x100 && pid < 0x300 && startsUnit(ts, at)) counts[pid] = (counts[pid] ?? 0) + 1;
  }
  return counts;
}

/** Stream types by PID in each map of `ts`, one text per map that differs from the one before. */
function mapsOf(ts: Uint8Array): string[] {
  const maps: string[] = [];
  for (let at = 0; at < ts.length; at += 188) {
    if (pidOf(ts, at) !== MAP_PID || !startsUnit(ts, at)) continue;
    const { streams } = readPmt(ts.slice(at + 5, at + 5 + sectionBytes(ts, at + 5)))!;
    const text = streams.map(({ pid, streamType }) => `${pid.toString(16)}:${streamType}`).join(" ");
    if (text !== maps.at(-1)) maps.push(text);
  }
  return maps;
}

for (
  const { what, pids, type, maps, times } of [
    { what: "its PIDs", pids: 0x100, type: null, maps: ["100:27 101:15", "200:27 201:15"], times: 4 },
    { what: "its PIDs in a small file", pids: 0x100, type: null, maps: ["100:27 101:15", "200:27 201:15"], times: 2 },
    { what: "the codec of its sound", pids: 0, type: 0x81, maps: ["100:27 101:15", "100:27 101:129"], times: 4 },
  ]
) {
  test(`openTransportStream() follows a program in HLS that changes ${what}`, async () => {
    const parts = repeatTs(fixture("ts-188.ts"), times, 6 * 90_000);
    const half = parts.length / 2;
    const bytes = concatBytes([
      parts.subarray(0, half),
      withStreams(parts.subarray(half), (pid) => pid + pids, type),
      // … and back.
      parts.subarray(0, half),
    ]);
    const source = new MemorySource(bytes);
    const presentation = await openTs(source, { segmentTargetMs: 2000 });
    const joined = concatBytes(await segments(presentation, source));
    assertEquals(pesOf(joined), pesOf(bytes));
    assertEquals(mapsOf(joined), [...maps, maps[0]]);
    assertEquals(breaksMs(presentation), [times * 3000, times * 6000]);
    for (const segment of await segments(presentation, source)) {
      const before = segment.findIndex((_, at) =>
        at % 188 === 0 && pidOf(segment, at) >= 0x100 && pidOf(segment, at) < 0x300
      );
      assert(before > 0 && mapsOf(segment.subarray(0, before)).length === 1);
    }
  });
}

/** When segments begin that players are told to be discontinuous, rounded to seconds, ms. */
function breaksMs({ hls }: IndexedPresentation): number[] {
  return hls.segments.filter(({ discontinuity }) => discontinuity).map(({ startMs }) =>
    Math.round(startMs / 1000) * 1000
  );
}

test("openTransportStream() finds where the streams of a large file change, and marks the segment", async () => {
  const parts = repeatTs(fixture("ts-188.ts"), 20, 6 * 90_000);
  const change = parts.length * 0.3 - (parts.length * 0.3) % 188;
  const bytes = concatBytes([parts.subarray(0, change), withStreams(parts.subarray(change), (pid) => pid + 0x100)]);
  const source = new MemorySource(bytes);
  const presentation = await openTs(source);
  assertEquals(breaksMs(presentation), [36_000]);
  const [first] = presentation.hls.segments.filter(({ discontinuity }) => discontinuity);
  assertEquals(mapsOf(await gather(presentation.hls.readSegment(first!.index, source, never))), ["200:27 201:15"]);
});

test("openTransportStream() takes up sound in HLS that begins later", async () => {
  const parts = repeatTs(fixture("ts-188.ts"), 4, 6 * 90_000);
  const half = parts.length / 2;
  // A picture alone: the map names a stream that never comes, and the sound has another PID.
  const silent = withStreams(parts.subarray(0, half), (pid) => pid === 0x101 ? 0x1e1 : pid, 6);
  const source = new MemorySource(concatBytes([silent, parts.subarray(half)]));
  const joined = concatBytes(await segments(await openTs(source), source));
  const sound = pesOf(parts.subarray(half))[0x101];
  assertEquals(pesOf(joined)[0x101], sound);
});

test("SegmentTables say that a program is a disc's when its sound has a disc's type and nothing says so", () => {
  const NONE = new Uint8Array(0);
  const HDMV = [5, 4, 0x48, 0x44, 0x4d, 0x56];
  const descriptorsFor = (streamType: number, descriptors = NONE, pids = [0x101]) => {
    const map = {
      programNumber: 1,
      pcrPid: 0x101,
      descriptors,
      streams: [{ pid: 0x101, streamType, descriptors: NONE }],
    };
    const packets = new SegmentTables(map, MAP_PID, pids).next();
    return [...readPmt(packets.slice(188 + 5, 188 + 5 + sectionBytes(packets, 188 + 5)))!.descriptors];
  };
  assertEquals(descriptorsFor(0x82), HDMV);
  assertEquals(descriptorsFor(0x83), HDMV);
  assertEquals(descriptorsFor(0x0f), []);
  assertEquals(descriptorsFor(0x82, NONE, []), []);
  const other = [5, 4, 0x43, 0x55, 0x45, 0x49];
  assertEquals(descriptorsFor(0x82, Uint8Array.from(other)), other);
});

test("openMedia() plays a transport stream that begins with other bytes, or has its tables megabytes later", async () => {
  const ts = fixture("ts-188.ts");
  const junk = Uint8Array.from({ length: 5000 }, (_, i) => (i * 7) % 64);
  const late = await openBytes(concatBytes([junk, ts]));
  assertEquals([late.container, late.ts.sizeBytes], ["mpegts", ts.length]);
  const nulls = concatBytes(
    new Array(14_000).fill(concatBytes([Uint8Array.of(0x47, 0x1f, 0xff, 0x10), new Uint8Array(184)])),
  );
  const { outputTracks } = await openBytes(concatBytes([nulls, ts]));
  assertEquals(outputTracks.map(({ codec }) => codec), ["h264", "aac"]);
});

test("openTransportStream() sees no break of the clock where pictures are missing while the sound runs on", async () => {
  const parts = repeatTs(fixture("ts-188.ts"), 4, 6 * 90_000);
  const quarter = parts.length / 4;
  const kept: Uint8Array[] = [];
  for (let at = 0; at < parts.length; at += 188) {
    const isGone = pidOf(parts, at) === 0x100 && at >= quarter && at < 3 * quarter;
    if (!isGone) kept.push(parts.subarray(at, at + 188));
  }
  const { hls } = await openTs(concatBytes(kept));
  assertEquals(hls.segments.filter(({ discontinuity }) => discontinuity).length, 0);
  const lengthMs = hls.segments.reduce((sum, { durationMs }) => sum + durationMs, 0);
  assert(Math.abs(lengthMs - 24_000) < 1000, `${lengthMs} ms`);
});

test("FaultLedger tells each place once at which the bytes of a transport stream do not follow, however it is read", async () => {
  const ts = repeatTs(fixture("ts-188.ts"), 4, 6 * 90_000);
  const half = Math.floor(ts.length / 2 / 188) * 188;
  const source = new MemorySource(
    concatBytes([
      ts.subarray(0, half + 50),
      ts.subarray(half + 90, half + 200_000),
      new Uint8Array(376),
      ts.subarray(half + 200_000),
    ]),
  );
  const { ts: layout, faults } = await openTs(source);
  await gather(layout.read(0, layout.sizeBytes, source, never));
  assertEquals(faults.counts.gaps, 2);
  // Served from the source in pieces of any length, after a seek beyond the first place.
  for (const from of [0, half + 1000]) {
    const watch = layout.watch!();
    for (let at = from; at < source.sizeBytes; at += 70_000) {
      watch(await source.read(at, Math.min(70_000, source.sizeBytes - at), { signal: never }), at);
    }
  }
  assertEquals(faults.counts.gaps, 2);
  assert(faults.warning?.includes("at 2 of its places"), `${faults.warning}`);
});

test("openTransportStream() tells packets that segments leave out because they are scrambled or marked as damaged", async () => {
  for (const [byte, flag] of [[3, 0xc0], [1, 0x80]] as const) {
    const ts = fixture("ts-188.ts").slice();
    const from = Math.floor(ts.length / 4 / 188) * 188;
    for (let at = from; at < from + 40 * 188; at += 188) ts[at + byte] = ts[at + byte]! | flag;
    const source = new MemorySource(ts);
    const presentation = await openTs(source);
    assertEquals(presentation.faults.counts.gaps, 0);
    await segments(presentation, source);
    assertEquals(presentation.faults.counts.gaps, 1);
  }
});
