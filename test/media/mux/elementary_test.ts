import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { aacFormat, parseAacConfig } from "../../../src/media/mux/ts/elementary/aac.ts";
import { elementaryFormat } from "../../../src/media/mux/ts/elementary/carry.ts";
import type { ElementaryFormat } from "../../../src/media/mux/ts/elementary/format.ts";
import { Payload } from "../../../src/media/mux/ts/payload.ts";
import { h264Format, hevcFormat } from "../../../src/media/mux/ts/elementary/nal.ts";
import type { Track } from "../../../src/media/model/types.ts";
import { nalUnit } from "../support/mp4-builder.ts";
import { concatBytes } from "../../../src/bytes/hex.ts";

function track(codec: Track["codec"], kind: Track["kind"], codecPrivate: number[] | null, sampleRate = 48000): Track {
  return {
    id: 1,
    kind,
    codec,
    codecId: codec,
    language: null,
    isDefault: true,
    codecPrivate: codecPrivate === null ? null : Uint8Array.from(codecPrivate),
    width: null,
    height: null,
    sampleRate,
    channels: 2,
  };
}

function avcc(lengthBytes: number): number[] {
  return [1, 100, 0, 31, 0xfc | (lengthBytes - 1), 0xe1, 0, 3, 0x67, 1, 2, 1, 0, 2, 0x68, 3];
}

function run(format: ElementaryFormat, unit: Uint8Array, keyframe: boolean): number[] {
  const most = format.maxBytes(unit.length, keyframe);
  const payload = new Payload();
  payload.reset(10);
  // The unit lies inside a larger read.
  format.fill(payload, concatBytes([Uint8Array.of(1, 2), unit, Uint8Array.of(3)]), 2, 2 + unit.length, keyframe);
  const size = payload.sizeBytes - 10;
  assert(size <= most, `${size} bytes where ${most} were promised`);
  const out = new Uint8Array(size + 20).fill(0xee);
  payload.take(out, 5, 10);
  // Taken in parts of any size, it is the same.
  for (let at = 0, part = 1; at < size; at += part, part = part * 5 % 13) {
    payload.take(out, 10 + at, Math.min(part, size - at));
  }
  assert(out.subarray(0, 5).every((byte) => byte === 0xee) && out.subarray(10 + size).every((byte) => byte === 0xee));
  return [...out.subarray(10, 10 + size)];
}

const AUD = [0, 0, 0, 1, 9, 0xf0];
const SETS = [0, 0, 0, 1, 0x67, 1, 2, 0, 0, 0, 1, 0x68, 3];

test("h264Format() puts a delimiter before each access unit and parameter sets before keyframes", () => {
  const format = h264Format(track("h264", "video", avcc(4)))!;
  const slice = nalUnit(0x65, 9);
  assertEquals(run(format, slice, true), [...AUD, ...SETS, 0, 0, 0, 1, ...slice.subarray(4)]);
  assertEquals(run(format, slice, false), [...AUD, 0, 0, 0, 1, ...slice.subarray(4)]);
  assertEquals(format.streamType, 0x1b);
});

test("h264Format() converts length fields of one, two and three bytes", () => {
  for (const lengthBytes of [1, 2, 3]) {
    const format = h264Format(track("h264", "video", avcc(lengthBytes)))!;
    const units = [nalUnit(6, 8, lengthBytes), nalUnit(0x41, 40, lengthBytes)];
    const expected = units.flatMap((unit) => [0, 0, 1, ...unit.subarray(lengthBytes)]);
    assertEquals(run(format, concatBytes(units), false), [...AUD, ...expected]);
  }
});

test("h264Format() keeps the access unit's own parameter sets and drops its own delimiter", () => {
  const format = h264Format(track("h264", "video", avcc(4)))!;
  const unit = concatBytes([nalUnit(9, 6), nalUnit(0x67, 8), nalUnit(0x68, 7), nalUnit(0x65, 12)]);
  const expected = [nalUnit(0x67, 8), nalUnit(0x68, 7), nalUnit(0x65, 12)];
  assertEquals(run(format, unit, true), [...AUD, ...expected.flatMap((nal) => [0, 0, 0, 1, ...nal.subarray(4)])]);
});

test("h264Format() shortens damaged access units within the promised size", () => {
  for (const lengthBytes of [1, 2, 3, 4]) {
    const format = h264Format(track("h264", "video", avcc(lengthBytes)))!;
    for (const fill of [0, 1, 2, 0x80, 0xff]) {
      for (const size of [1, 2, 3, 4, 5, 100, 3000]) run(format, new Uint8Array(size).fill(fill), true);
    }
  }
});

test("h264Format() returns null without a usable configuration", () => {
  assertEquals(h264Format(track("h264", "video", null)), null);
  assertEquals(h264Format(track("h264", "video", [1, 2, 3])), null);
  assertEquals(h264Format(track("h264", "video", [1, 100, 0, 31, 0xff, 0xe1, 0xff, 0xff, 0])), null);
});

test("hevcFormat() leaves out the NAL units of further layers, as of a second eye", () => {
  const hvcc = [1, ...new Array(20).fill(0), 0xff, 0];
  const format = hevcFormat(track("hevc", "video", hvcc))!;
  const unit = (secondByte: number, firstByte = 0x26) => {
    const nal = nalUnit(firstByte, 12);
    nal[5] = secondByte;
    return nal;
  };
  const code = [0, 0, 0, 1];
  const delimiter = [...code, 0x46, 1, 0x50];
  const base = [...delimiter, ...code, ...unit(1).subarray(4)];
  assertEquals(run(format, unit(1), false), base);
  assertEquals(run(format, concatBytes([unit(1), unit(0x09)]), false), base);
  assertEquals(run(format, concatBytes([unit(1), unit(1, 0x27)]), false), base);
  assertEquals(run(format, concatBytes([unit(1), unit(0x02)]), false), [...base, ...code, ...unit(2).subarray(4)]);
});

test("hevcFormat() takes VPS, SPS and PPS from hvcC in that order and leaves other arrays", () => {
  const head = [1, ...new Array(20).fill(0), 0xf3, 4];
  const array = (type: number, ...nal: number[]) => [0x80 | type, 0, 1, 0, nal.length, ...nal];
  const box = [...head, ...array(32, 0x40, 1), ...array(33, 0x42, 1), ...array(34, 0x44, 1), ...array(39, 0x4e, 1)];
  const format = hevcFormat(track("hevc", "video", box))!;
  assertEquals(format.registration, "HEVC");
  const slice = nalUnit(0x26, 9);
  slice[5] = 1;
  const sets = [0, 0, 0, 1, 0x40, 1, 0, 0, 0, 1, 0x42, 1, 0, 0, 0, 1, 0x44, 1];
  assertEquals(run(format, slice, true), [0, 0, 0, 1, 0x46, 1, 0x50, ...sets, 0, 0, 0, 1, ...slice.subarray(4)]);
  const turned = [...head, ...array(33, 0x42, 1), ...array(34, 0x44, 1), ...array(32, 0x40, 1), ...array(39, 0x4e, 1)];
  assertEquals(run(hevcFormat(track("hevc", "video", turned))!, slice, true), run(format, slice, true));
  assertEquals(hevcFormat(track("hevc", "video", box.slice(0, 30))), null);
});

test("aacFormat() writes the ADTS header of ISO/IEC 14496-3, 1.A.3.2", () => {
  const format = aacFormat(track("aac", "audio", [0x11, 0x90]))!;
  const frame = Uint8Array.from({ length: 300 }, (_, i) => i & 255);
  const length = 307;
  assertEquals(run(format, frame, true), [
    0xff,
    0xf1,
    0x4c,
    0x80 | (length >> 11),
    (length >> 3) & 255,
    ((length & 7) << 5) | 0x1f,
    0xfc,
    ...frame,
  ]);
});

test("parseAacConfig() reads explicit and implicit SBR, escapes and odd layouts", () => {
  const cases: [number[], Partial<ReturnType<typeof parseAacConfig>> | null][] = [
    [[0x12, 0x10], { objectType: 2, sampleRate: 44100, channels: 2, frameSamples: 1024 }],
    // HE-AAC: type 5, 24 kHz core, extension 48 kHz, then LC.
    [[0x2b, 0x11, 0x88, 0x00], { objectType: 2, sampleRate: 24000, channels: 2 }],
    [[0x11, 0x94], { frameSamples: 960 }],
    [[0x11, 0xb8], { channelConfiguration: 7, channels: 8 }],
    [[0x11], null],
    [[], null],
  ];
  for (const [bytes, expected] of cases) {
    const parsed = parseAacConfig(Uint8Array.from(bytes));
    if (expected === null) assertEquals(parsed, null);
    else {for (const [key, value] of Object.entries(expected)) {
        assertEquals(parsed?.[key as "channels"], value as number);
      }}
  }
});

test("aacFormat() puts the program config element in front of frames without a channel configuration", () => {
  // LC, 48 kHz, configuration 0; element: tag 0, LC, 48 kHz, one front pair, nothing else, no comment.
  const bits = "00010" + "0011" + "0000" + "000" + "0000" + "01" + "0011" + "0001" + "0000" + "0000" + "00" + "000" +
    "0000" + "0" + "0" + "0" + "1" + "0000";
  const padded = bits.padEnd(Math.ceil(bits.length / 8) * 8, "0") + "00000000";
  const config = padded.match(/.{8}/g)!.map((byte) => parseInt(byte, 2));
  const parsed = parseAacConfig(Uint8Array.from(config))!;
  assertEquals(parsed.channels, 2);
  const element = [...parsed.programConfig].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  assert(
    element.startsWith(
      "101" + "0000" + "01" + "0011" + "0001" + "0000" + "0000" + "00" + "000" + "0000" + "000" + "10000",
    ),
  );
  const out = run(aacFormat(track("aac", "audio", config))!, Uint8Array.of(1, 2, 3), true);
  assertEquals(out.length, 7 + parsed.programConfig.length + 3);
});

test("elementaryFormat() refuses what MPEG TS cannot carry", () => {
  assertEquals(elementaryFormat(track("vp9", "video", null)), null);
  assertEquals(elementaryFormat(track("opus", "audio", null)), null);
  assertEquals(elementaryFormat(track("aac", "audio", [0xf9, 0x48, 0x50, 0, 0])), null);
  assertEquals(elementaryFormat(track("mp3", "subtitle", null)), null);
  assertEquals(elementaryFormat(track("mp3", "audio", null, 22050))!.streamType, 4);
  assertEquals(elementaryFormat(track("mp3", "audio", null))!.streamType, 3);
  assertEquals(elementaryFormat(track("eac3", "audio", null))!.registration, "EAC3");
});

test("elementaryFormat() puts the headers of MPEG-4 part 2 before pictures that decoding can start with", () => {
  const headers = [0, 0, 1, 0xb0, 1, 0, 0, 1, 0x20, 0, 0x84];
  const picture = Uint8Array.of(0, 0, 1, 0xb6, 0x10, 1, 2);
  const format = elementaryFormat(track("mpeg4", "video", headers))!;
  assertEquals(format.streamType, 0x10);
  assertEquals(run(format, picture, true), [...headers, ...picture]);
  assertEquals(run(format, picture, false), [...picture]);
  const own = concatBytes([Uint8Array.from(headers), picture]);
  assertEquals(run(format, own, true), [...own]);
  assertEquals(run(elementaryFormat({ ...track("mpeg4", "video", null), isFramed: true })!, picture, true), [
    ...picture,
  ]);
  // Without the header of a layer nothing is decoded.
  for (const data of [null, [], [0, 0, 1, 0xb0, 1], new Array(5000).fill(0)]) {
    assertEquals(elementaryFormat(track("mpeg4", "video", data)), null);
  }
});
