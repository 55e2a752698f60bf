/** Decoder data and sample tables of audio that only MP4 carries in this form. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { MemorySource } from "../../support/memory-source.ts";
import { MillraceError } from "../../../src/errors.ts";
import {
  flacHeadFrom,
  matroskaPcmId,
  opusHeadFrom,
  pcmFormOf,
  vorbisHeadFrom,
} from "../../../src/media/index/mp4/audio-config.ts";
import { type Box, viewOf } from "../../../src/bytes/boxes.ts";
import { openMp4 } from "../../../src/media/index/mp4/open-mp4.ts";
import type { TabledTimeline } from "../../../src/media/model/timeline.ts";
import { NEVER, seeded } from "../support/files.ts";
import { box, fileOf, fullBox, movieBox, u32 } from "../support/mp4-builder.ts";
import { concatBytes } from "../../../src/bytes/hex.ts";

const boxOf = (bytes: Uint8Array, type = "...."): Box => ({ type, view: viewOf(bytes), start: 0, end: bytes.length });
const ascii = (bytes: Uint8Array) => String.fromCharCode(...bytes);

test("opusHeadFrom() turns numbers round, leaves pre-skip out and copies the table of channels", () => {
  const stereo = new Uint8Array([0, 2, 1, 0x38, 0, 0, 0xbb, 0x80, 0xff, 0xfe, 0]);
  const head = opusHeadFrom(boxOf(stereo))!;
  assertEquals([ascii(head.subarray(0, 8)), head.length], ["OpusHead", 19]);
  assertEquals([...head.subarray(8)], [1, 2, 0, 0, 0x80, 0xbb, 0, 0, 0xfe, 0xff, 0]);
  const surround = new Uint8Array([0, 6, 0, 0, 0, 0, 0xbb, 0x80, 0, 0, 1, 4, 2, 0, 4, 1, 2, 3, 5]);
  assertEquals([...opusHeadFrom(boxOf(surround))!.subarray(18)], [1, 4, 2, 0, 4, 1, 2, 3, 5]);
  for (const bytes of [surround.subarray(0, 15), stereo.subarray(0, 5), stereo.map((byte, i) => i === 0 ? 1 : byte)]) {
    assertEquals(opusHeadFrom(boxOf(bytes)), null);
  }
});

test("flacHeadFrom() puts the marker before STREAMINFO", () => {
  const info = new Uint8Array(38).fill(3);
  info.set([0x80, 0, 0, 34]);
  const head = flacHeadFrom(boxOf(concatBytes([new Uint8Array(4), info])))!;
  assertEquals([ascii(head.subarray(0, 4)), head.length], ["fLaC", 42]);
  assertEquals(head.subarray(4), info);
  assertEquals(flacHeadFrom(boxOf(new Uint8Array(30))), null);
  assertEquals(flacHeadFrom(boxOf(new Uint8Array(60).fill(4))), null);
});

test("vorbisHeadFrom() laces headers that have 16-bit lengths, and keeps laced ones", () => {
  const [id, comment, setup] = [new Uint8Array(30).fill(1), new Uint8Array(300).fill(2), new Uint8Array(9).fill(3)];
  const sized = concatBytes(
    [id, comment, setup].flatMap((part) => [new Uint8Array([part.length >> 8, part.length & 255]), part]),
  );
  const laced = vorbisHeadFrom(sized)!;
  assertEquals(laced, concatBytes([new Uint8Array([2, 30, 255, 45]), id, comment, setup]));
  assertEquals(vorbisHeadFrom(laced), laced);
  for (const bad of [sized.subarray(0, 200), new Uint8Array([0, 29, 1]), new Uint8Array(0)]) {
    assertEquals(vorbisHeadFrom(bad), null);
  }
});

/** An audio sample entry of `type` with this sample size and the boxes after it. */
function entry(type: string, bits: number, ...more: Uint8Array[]): Uint8Array {
  const fixed = new Uint8Array(28);
  fixed.set([0, 2, 0, bits], 16);
  fixed.set([0xbb, 0x80], 24);
  return box(type, fixed, ...more);
}

const enda = (value: number) => box("wave", box("enda", new Uint8Array([0, value])));
const pcmC = (flags: number, bits: number) => fullBox("pcmC", 0, 0, new Uint8Array([flags, bits]));

/** A version 2 entry of QuickTime with these bits and flags. */
function lpcm(bits: number, flags: number): Uint8Array {
  const fixed = new Uint8Array(64);
  fixed.set([0, 2], 8);
  const view = new DataView(fixed.buffer);
  view.setFloat64(32, 48000);
  view.setUint32(40, 2);
  view.setUint32(48, bits);
  view.setUint32(52, flags);
  return box("lpcm", fixed);
}

test("pcmFormOf() and matroskaPcmId() recognise every form of PCM, and those without a name in Matroska", () => {
  const cases: readonly (readonly [string, Uint8Array, number, string | null])[] = [
    ["sowt", entry("sowt", 16), 28, "16 A_PCM/INT/LIT"],
    ["twos", entry("twos", 16), 28, "16 A_PCM/INT/BIG"],
    ["twos of 8 bits", entry("twos", 8), 28, "8 null"],
    ["raw", entry("raw ", 8), 28, "8 A_PCM/INT/LIT"],
    ["in24", entry("in24", 16), 28, "24 A_PCM/INT/BIG"],
    ["in24 little", entry("in24", 16, enda(1)), 28, "24 A_PCM/INT/LIT"],
    ["in32 big", entry("in32", 16, enda(0)), 28, "32 A_PCM/INT/BIG"],
    ["fl32 little", entry("fl32", 16, enda(1)), 28, "32 A_PCM/FLOAT/IEEE"],
    ["fl64 big", entry("fl64", 16), 28, "64 null"],
    ["ipcm little", entry("ipcm", 16, pcmC(1, 24)), 28, "24 A_PCM/INT/LIT"],
    ["ipcm big", entry("ipcm", 16, pcmC(0, 16)), 28, "16 A_PCM/INT/BIG"],
    ["fpcm little", entry("fpcm", 16, pcmC(1, 32)), 28, "32 A_PCM/FLOAT/IEEE"],
    ["ipcm without its box", entry("ipcm", 16), 28, null],
    ["lpcm little", lpcm(24, 4), 64, "24 A_PCM/INT/LIT"],
    ["lpcm float", lpcm(32, 1), 64, "32 A_PCM/FLOAT/IEEE"],
    ["lpcm big", lpcm(16, 6), 64, "16 A_PCM/INT/BIG"],
    ["lpcm cut off", entry("lpcm", 16), 28, null],
  ];
  for (const [name, bytes, inner, wanted] of cases) {
    const type = ascii(bytes.subarray(4, 8));
    const form = pcmFormOf({ type, view: viewOf(bytes), start: 8, end: bytes.length }, 8 + inner);
    assertEquals(form === null ? null : `${form.bitDepth} ${matroskaPcmId(form)}`, wanted, name);
  }
});

const WISH = { fileName: "a.mov", signal: NEVER, transcode: { mp3: false, ac3: false } };

/** A file with one track of 16-bit stereo PCM: chunks of 3000, 3000 and 500 moments, 100 bytes apart. */
function pcmFile(declared = 6500): Uint8Array {
  return fileOf((offset) =>
    movieBox([{
      id: 1,
      kind: "soun",
      timescale: 48000,
      entry: entry("sowt", 16),
      tables: [
        fullBox("stts", 0, 0, u32(1, declared, 1)),
        fullBox("stsc", 0, 0, u32(2, 1, 3000, 1, 3, 500, 1)),
        fullBox("stsz", 0, 0, u32(4, declared)),
        fullBox("stco", 0, 0, u32(3, offset, offset + 12_100, offset + 24_200)),
      ],
    }]), [new Uint8Array(26_300)]);
}

test("openMp4() puts moments of PCM together to access units, with their times", async () => {
  const bytes = pcmFile();
  const index = await openMp4(new MemorySource(bytes), WISH);
  assertEquals(index.warnings, []);
  assertEquals([index.tracks[0]!.codec, index.tracks[0]!.matroskaId], ["pcm", "A_PCM/INT/LIT"]);
  const table = (index.timeline as TabledTimeline).tables[0]!;
  assertEquals([...table.sizes], [4096, 4096, 3808, 4096, 4096, 3808, 2000]);
  const first = table.offsets.at(0);
  assertEquals([...table.offsets].map((at) => at - first), [0, 4096, 8192, 12_100, 16_196, 20_292, 24_200]);
  assertEquals([...table.dts90k], [0, 1920, 3840, 5625, 7545, 9465, 11_250]);
});

test("openMp4() uses the part of PCM that a truncated file has", async () => {
  const bytes = pcmFile();
  const cut = await openMp4(new MemorySource(bytes.subarray(0, bytes.length - 14_000)), WISH);
  const table = (cut.timeline as TabledTimeline).tables[0]!;
  assertEquals([...table.sizes].reduce((sum, size) => sum + size, 0), 12_000 + 200);
  const more = await openMp4(new MemorySource(pcmFile(1_000_000_000)), WISH);
  assertEquals((more.timeline as TabledTimeline).tables[0]!.count, 7);
});

test("openMp4() survives damaged audio entries", async () => {
  const random = seeded(21);
  const bytes = pcmFile();
  const until = bytes.length - 26_300;
  for (let round = 0; round < 400; round++) {
    const file = bytes.slice();
    for (let i = 0; i < 4; i++) file[Math.floor(random() * until)] = random() < 0.5 ? 255 : Math.floor(random() * 256);
    try {
      await openMp4(new MemorySource(file), WISH);
    } catch (error) {
      assert(error instanceof MillraceError, String(error));
    }
  }
});
