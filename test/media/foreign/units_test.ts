import { test } from "node:test";
import { assert, assertEquals, assertLess, assertThrows } from "@std/assert";
import { hasCode, MillraceError } from "../../../src/errors.ts";
import { readProbe } from "../../../src/media/foreign/probe.ts";
import { RunCut } from "../../../src/media/foreign/run-cut.ts";
import { type ForeignUnit, UnitReader } from "../../../src/media/foreign/unit-reader.ts";
import { fieldBytes, PACKET_BYTES, pidOf, startsUnit } from "../../../src/bytes/ts/packet.ts";
import { checkTs, ticksBetween } from "../../support/ts-check.ts";
import { fixture, seeded } from "../support/files.ts";

/** ffmpeg's own transport stream: its streams have the PIDs 0x100 and 0x101. */
const TS = fixture("ts-188.ts");

function unitsOf(bytes: Uint8Array, sizes: () => number, near90k = 0): ForeignUnit[] {
  const reader = new UnitReader(2, near90k);
  const units: ForeignUnit[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = Math.min(bytes.length, at + sizes());
    units.push(...reader.push(bytes.subarray(at, end)));
    at = end;
  }
  return [...units, ...reader.finish()];
}

test("UnitReader.push() yields the access units of all streams with both times, however the bytes are split", () => {
  const wanted = checkTs(TS, { isSegment: false }).streams;
  const random = seeded(1);
  for (const sizes of [() => TS.length, () => 188, () => 1 + Math.floor(random() * 5000)]) {
    const units = unitsOf(TS, sizes);
    for (const stream of [0, 1]) {
      const own = units.filter((unit) => unit.stream === stream);
      const { units: theirs } = wanted.find(({ pid }) => pid === 0x100 + stream)!;
      assertEquals(own.length, theirs.length);
      for (const [i, unit] of own.entries()) {
        const { pts, dts, data, randomAccess } = theirs[i]!;
        assertEquals([unit.pts90k, unit.dts90k, unit.keyframe], [pts, dts, randomAccess]);
        assertEquals(unit.data, data);
      }
    }
  }
});

test("UnitReader.push() counts times from the given start on, across the wrap", () => {
  const wrapping = fixture("ts-wrap.ts");
  for (const near of [0, 2 ** 33, 2 ** 34]) {
    const units = unitsOf(wrapping, () => 4000, near);
    for (const { dts90k } of units) assertLess(Math.abs(dts90k - near), 2 ** 32);
    const video = units.filter(({ stream }) => stream === 0).map(({ dts90k }) => dts90k);
    for (let i = 1; i < video.length; i++) assert(video[i]! > video[i - 1]!);
    assertLess(Math.abs(ticksBetween(video[0]!, units[0]!.dts90k)), 90_000);
  }
});

test("UnitReader.push() leaves no unit out that has no times, and gives it some between those of others", () => {
  const whole = unitsOf(TS, () => 4000).filter(({ stream }) => stream === 0);
  // As in program streams: of each three pictures one has no times.
  const bytes = TS.slice();
  let pictures = 0;
  for (let at = 0; at < bytes.length; at += PACKET_BYTES) {
    if (pidOf(bytes, at) !== 0x100 || !startsUnit(bytes, at) || pictures++ % 3 !== 1) continue;
    const header = at + 4 + fieldBytes(bytes, at);
    bytes[header + 7] = bytes[header + 7]! & 0x3f;
    bytes.fill(0xff, header + 9, header + 9 + bytes[header + 8]!);
  }
  const reader = new UnitReader(2, 0, new Set([0]));
  const units = [...reader.push(bytes), ...reader.finish()].filter(({ stream }) => stream === 0);
  assertEquals(units.map(({ data }) => data), whole.map(({ data }) => data));
  assertEquals(reader.untimed, Math.floor((whole.length + 1) / 3));
  for (const [i, { dts90k, pts90k }] of units.entries()) {
    assertLess(Math.abs(dts90k - whole[i]!.dts90k), 2);
    assert(pts90k >= dts90k);
  }
  // Which of the times still to come are taken is not known.
  assertLess(units.length * 0.8, new Set(units.map(({ pts90k }) => pts90k)).size);
});

test("UnitReader.push() survives damage, and refuses a picture without an end", () => {
  const random = seeded(2);
  for (let round = 0; round < 80; round++) {
    const bytes = TS.slice();
    for (let i = 0; i < 1 + random() * 60; i++) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
    const units = unitsOf(bytes, () => 10_000);
    assertLess(units.reduce((sum, { data }) => sum + data.length, 0), bytes.length + 1);
  }
  const endless = new Uint8Array(188).fill(1);
  endless.set([0x47, 0x01, 0x00, 0x10]);
  const first = endless.slice();
  first.set([0x47, 0x41, 0x00, 0x10, 0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 5, 0x21, 0, 1, 0, 1]);
  const reader = new UnitReader(1, 0);
  reader.push(first);
  const error = assertThrows(() => {
    for (let i = 0; i < 200_000; i++) reader.push(endless);
  }, MillraceError);
  assertEquals(error.code, "bad_media");
});

const unit = (stream: number, dts90k: number, keyframe = stream === 1): ForeignUnit => ({
  stream,
  dts90k,
  pts90k: dts90k,
  keyframe,
  data: new Uint8Array(1),
});

test("RunCut gives a run the same units, however the output interleaves the streams and wherever it began", () => {
  // A picture every 3600 ticks, every tenth a random access point; a frame of sound every 1920.
  const pictures = Array.from({ length: 60 }, (_, i) => unit(0, i * 3600, i % 10 === 0));
  const frames = Array.from({ length: 112 }, (_, i) => unit(1, i * 1920));
  const mixed = (lead90k: number) =>
    [...pictures, ...frames].sort((a, b) =>
      a.dts90k - b.dts90k + lead90k * (a.stream - b.stream) || a.stream - b.stream
    );
  const key = (from: number) => ({ keyframe, dts90k }: ForeignUnit) => keyframe && dts90k >= from;
  const wanted = [...pictures, ...frames].filter(({ dts90k }) => dts90k >= 72_000 && dts90k < 144_000);
  for (const lead90k of [0, 40_000, -40_000]) {
    for (const from of [0, 20, 40]) {
      const all = mixed(lead90k);
      const cut = new RunCut({ streams: 2, main: 0, begins: key(70_000), ends: key(140_000) });
      let taken = 0;
      const own: ForeignUnit[] = [];
      for (const one of all.slice(lead90k === 0 ? from : 0)) {
        if (cut.isDone) break;
        cut.push(one);
        taken++;
        own.push(...cut.take());
      }
      assert(cut.isDone && taken < all.length, `lead ${lead90k}`);
      const byTime = (units: readonly ForeignUnit[]) =>
        units.map(({ stream, dts90k }) => dts90k * 2 + stream).sort((a, b) => a - b);
      assertEquals(byTime(own), byTime(wanted), `lead ${lead90k}`);
      // The next run begins with the rest.
      const next = new RunCut({ streams: 2, main: 0, begins: key(140_000), ends: key(1e9) });
      for (const one of [...cut.rest(), ...all.slice((lead90k === 0 ? from : 0) + taken)]) next.push(one);
      next.finish();
      assertEquals(byTime(next.take()), byTime([...pictures, ...frames].filter(({ dts90k }) => dts90k >= 144_000)));
    }
  }
});

test("RunCut gives the first run everything from the beginning, an empty run nothing, and buffers little", () => {
  const first = new RunCut({ streams: 2, main: 0, begins: null, ends: () => false });
  for (const one of [unit(1, -5), unit(0, 0, true), unit(1, 10)]) first.push(one);
  first.finish();
  assertEquals(first.take().length, 3);
  const always = () => true;
  const empty = new RunCut({ streams: 1, main: 0, begins: always, ends: always });
  empty.push(unit(0, 5, true));
  assertEquals([empty.isDone, empty.take().length, empty.rest().length], [true, 0, 1]);
  const alone = new RunCut({ streams: 2, main: 0, begins: null, ends: () => false });
  let given = 0;
  for (let i = 0; i < 5000; i++) {
    alone.push(unit(1, i));
    given += alone.take().length;
  }
  assertEquals(given, 5000 - 1024);
});

test("readProbe() reads ffprobe's output, and survives anything else", () => {
  const { streams, startS, durationS } = readProbe(JSON.stringify({
    streams: [
      { index: 0, codec_name: "mjpeg", codec_type: "video", disposition: { attached_pic: 1 } },
      {
        index: 1,
        codec_name: "mpeg4",
        codec_type: "video",
        width: 640,
        height: 480,
        has_b_frames: 1,
        r_frame_rate: "30000/1001",
      },
      {
        index: 2,
        codec_name: "wmav2",
        codec_type: "audio",
        sample_rate: "44100",
        channels: 2,
        tags: { language: "de" },
        disposition: { default: 1 },
      },
      { index: 3, codec_name: "pcm_s16le", codec_type: "audio", sample_rate: "0", r_frame_rate: "0/0" },
      { index: 4, codec_type: "data" },
    ],
    format: { start_time: "0.500000", duration: "12.250000" },
  }));
  assertEquals([startS, durationS], [0.5, 12.25]);
  assertEquals(
    streams.map(({ index, track, reorderFrames }) => [index, track.kind, track.codec, track.codecId, reorderFrames]),
    [
      [1, "video", "mpeg4", "mpeg4", 1],
      [2, "audio", "other", "wmav2", 0],
      [3, "audio", "pcm", "pcm_s16le", 0],
      [4, "other", "other", "unknown", 0],
    ],
  );
  const [video, sound, silent] = streams;
  assert(Math.abs(video!.framesPerSecond - 29.97) < 0.01);
  assertEquals([sound!.track.sampleRate, sound!.track.channels, sound!.track.language, sound!.track.isDefault], [
    44100,
    2,
    "de",
    true,
  ]);
  assertEquals([silent!.track.sampleRate, silent!.framesPerSecond], [null, 25]);
  for (const odd of ["{}", "[]", "null", "1", '{"streams":3}', '{"streams":[null,1,"x",[]],"format":7}']) {
    assertEquals(readProbe(odd).durationS, null, odd);
  }
  for (const none of ["", "{", "Input #0, avi"]) {
    assert(hasCode(assertThrows(() => readProbe(none)), "bad_media"));
  }
  const random = seeded(4);
  for (let round = 0; round < 200; round++) {
    const value = (depth: number): unknown => {
      const kind = Math.floor(random() * (depth > 3 ? 4 : 6));
      if (kind === 4) return Array.from({ length: 3 }, () => value(depth + 1));
      const names = ["streams", "format", "codec_type", "index", "has_b_frames", "duration", "tags", "disposition"];
      if (kind === 5) return Object.fromEntries(names.map((name) => [name, value(depth + 1)]));
      return [null, -1.5e300, "1e999", "video"][kind];
    };
    const { streams, durationS } = readProbe(JSON.stringify(value(0)));
    assert(durationS === null || durationS > 0 && Number.isFinite(durationS));
    assertLess(streams.length, 65);
  }
});
