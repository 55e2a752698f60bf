import { assert, assertEquals, assertGreater, assertLess, assertRejects } from "@std/assert";
import { test } from "node:test";
import { MemorySource } from "../support/memory-source.ts";
import { MillraceError } from "../../src/errors.ts";
import { CounterRewriter, splitPacket } from "../../src/bytes/ts/counters.ts";
import { readPat, readPmt, SectionAssembler } from "../../src/bytes/ts/psi.ts";
import { openTransportStream } from "../../src/media/ts-file/open-ts.ts";
import { isAccessPoint } from "../../src/bytes/ts/random-access.ts";
import { trackOf } from "../../src/media/ts-file/stream-types.ts";
import { crc32Mpeg } from "../../src/bytes/ts/crc.ts";
import { checkTs } from "../support/ts-check.ts";
import { CountingSource, fixture, seeded } from "./mkv-support.ts";
import { counterErrors, gather, never, openTs, repeatTs, segments } from "./ts-input-support.ts";
import { concatBytes } from "../../src/bytes/hex.ts";
import type { IndexedPresentation } from "../../src/media/model/types.ts";

const CLIPS = [
  "ts-188.ts",
  "ts-192.m2ts",
  "ts-204.ts",
  "ts-wrap.ts",
  "ts-mpeg2.ts",
  "ts-hevc.ts",
  "ts-open-gop.ts",
  "ts-two-programs.ts",
  "ts-audio-only.ts",
];

/** The file's packets without what is stored around them. */
function bare(bytes: Uint8Array, stride: number, first: number): Uint8Array {
  const packets: Uint8Array[] = [];
  for (let at = first; at + 188 <= bytes.length; at += stride) packets.push(bytes.subarray(at, at + 188));
  return concatBytes(packets);
}

test("openTransportStream() returns bare packets of files with 188, 192 and 204 bytes per packet", async () => {
  for (
    const [name, stride, first] of [["ts-188.ts", 188, 0], ["ts-192.m2ts", 192, 4], ["ts-204.ts", 204, 0]] as const
  ) {
    const bytes = fixture(name);
    const presentation = await openTs(bytes);
    const expected = bare(bytes, stride, first);
    assertEquals(presentation.ts.sizeBytes, expected.length, name);
    assert(sameBytes(await gather(presentation.ts.read(0, null, new MemorySource(bytes), never)), expected), name);
  }
});

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

test("ts.read() returns any range, in chunks of at most 64 KiB", async () => {
  const random = seeded(3);
  for (const [name, stride, first] of [["ts-192.m2ts", 192, 4], ["ts-188.ts", 188, 0]] as const) {
    const bytes = fixture(name);
    const source = new MemorySource(bytes);
    const expected = bare(bytes, stride, first);
    const { ts } = await openTs(bytes);
    for (let round = 0; round < 40; round++) {
      const start = Math.floor(random() * expected.length);
      const end = start + Math.floor(random() * (expected.length - start));
      const parts: Uint8Array[] = [];
      for await (const chunk of ts.read(start, end, source, never)) {
        assertLess(chunk.length, 65_537);
        parts.push(chunk);
      }
      assert(sameBytes(concatBytes(parts), expected.subarray(start, end)), `${name} ${start}-${end}`);
    }
  }
});

test("openTransportStream() finds the packets after junk and leaves a cut packet out", async () => {
  const bytes = fixture("ts-188.ts");
  const junk = Uint8Array.from({ length: 1000 }, (_, i) => i % 50 === 0 ? 0x47 : i & 255);
  const file = concatBytes([junk, bytes.subarray(0, bytes.length - 100)]);
  const presentation = await openTs(file);
  assertEquals(presentation.ts.sizeBytes, bytes.length - 188);
  const ts = await gather(presentation.ts.read(0, null, new MemorySource(file), never));
  assert(sameBytes(ts, bytes.subarray(0, bytes.length - 188)));
});

test("openTransportStream() recognises codecs and takes the programme with video", async () => {
  const tracks = async (name: string) => (await openTs(fixture(name))).outputTracks.map((t) => `${t.id} ${t.codec}`);
  assertEquals(await tracks("ts-188.ts"), ["256 h264", "257 aac"]);
  assertEquals(await tracks("ts-192.m2ts"), ["4113 h264", "4352 ac3"]);
  assertEquals(await tracks("ts-hevc.ts"), ["256 hevc", "257 eac3"]);
  assertEquals(await tracks("ts-mpeg2.ts"), ["256 mpeg2video", "257 mp2"]);
  assertEquals(await tracks("ts-audio-only.ts"), ["256 aac"]);
  assertEquals(await tracks("ts-two-programs.ts"), ["257 h264", "258 aac"]);
  assertEquals((await openTs(fixture("ts-two-programs.ts"))).warnings.length, 1);
});

test("openTransportStream() refuses scrambled streams and other data", async () => {
  const code = async (bytes: Uint8Array) => (await assertRejects(() => openTs(bytes), MillraceError)).code;
  const scrambled = fixture("ts-188.ts");
  for (let at = 0; at < scrambled.length; at += 188) {
    if (scrambled[at + 1]! << 8 === 0x100 || (scrambled[at + 1]! & 31) === 1) {
      scrambled[at + 3] = scrambled[at + 3]! | 0x80;
    }
  }
  assertEquals(await code(scrambled), "unsupported_media");
  assertEquals(await code(new Uint8Array(0)), "bad_media");
  assertEquals(await code(fixture("mp4-front.mp4")), "bad_media");
  const untabled = fixture("ts-188.ts");
  for (let at = 0; at < untabled.length; at += 188) if ((untabled[at + 1]! & 31) === 0) untabled[at + 2] = 99;
  assertEquals(await code(untabled), "bad_media");
});

test("readSegment() yields segments that join in any order and hold every access unit once", async () => {
  for (const name of CLIPS) {
    const bytes = fixture(name);
    const source = new MemorySource(bytes);
    const presentation = await openTs(bytes, { segmentTargetMs: 2000 });
    const list = await segments(presentation, source);
    assertGreater(list.length, 2, name);
    const units = new Map<number, string[]>();
    for (const [n, segment] of list.entries()) {
      const report = checkTs(segment);
      // The clock is the file's own: the clip without video has it every 363 ms.
      const problems = report.problems.filter((text) => name !== "ts-audio-only.ts" || !text.includes("PCR gap"));
      assertEquals(problems, [], `${name} segment ${n}`);
      const main = report.streams[0]!;
      if (name !== "ts-audio-only.ts") {
        assert(isFirstKey(presentation.outputTracks[0]!.codec, main.units[0]!.data), name);
      }
      for (const stream of report.streams) {
        const texts = stream.units.map((unit) => `${unit.pts} ${unit.dts} ${unit.data.length} ${crc32Mpeg(unit.data)}`);
        units.set(stream.pid, [...units.get(stream.pid) ?? [], ...texts]);
      }
    }
    const whole = checkTs(await gather(presentation.ts.read(0, null, source, never)), { isSegment: false });
    for (const [pid, texts] of units) {
      const expected = whole.streams.find((stream) => stream.pid === pid);
      if (expected === undefined) continue;
      assertEquals(
        texts,
        expected.units.map((unit) => `${unit.pts} ${unit.dts} ${unit.data.length} ${crc32Mpeg(unit.data)}`),
        `${name} ${pid}`,
      );
    }
    assertEquals(counterErrors(concatBytes([...list].reverse())), 0, name);
    assertEquals(counterErrors(concatBytes([list[0]!, list[2]!, list[2]!, list[1]!])), 0, name);
  }
});

function isFirstKey(codec: Parameters<typeof isAccessPoint>[0], data: Uint8Array): boolean {
  return isAccessPoint(codec, data) === true;
}

test("hls plan of a small file is exact, also where the clock wraps", async () => {
  for (const name of ["ts-188.ts", "ts-wrap.ts"]) {
    const { hls, durationMs } = await openTs(fixture(name), { segmentTargetMs: 2000 });
    assertEquals(hls.segments.map((s) => Math.round(s.durationMs)), [2000, 2000, 2000]);
    assertEquals(Math.round(durationMs!), 6000);
    assertEquals(hls.targetDurationS, 2);
  }
});

const NONE = new Uint8Array();

test("trackOf() takes type 0x86 for the DTS of a disc, and for the SCTE-35 data of a broadcast", () => {
  const disc = Uint8Array.from([5, 4, ...new TextEncoder().encode("HDMV")]);
  const broadcast = Uint8Array.from([5, 4, ...new TextEncoder().encode("CUEI")]);
  const kinds = [disc, broadcast, NONE].map((of) =>
    trackOf({ pid: 5, streamType: 0x86, descriptors: NONE }, of, true).kind
  );
  assertEquals(kinds, ["audio", "other", "other"]);
});

test("trackOf() reads DVB descriptors of private data", () => {
  const descriptors = new Uint8Array([0x6a, 0, 0x0a, 4, 100, 101, 117, 0]);
  const track = trackOf({ pid: 5, streamType: 0x06, descriptors }, NONE, true);
  assertEquals([track.codec, track.kind, track.language], ["ac3", "audio", "deu"]);
  assertEquals(
    trackOf({ pid: 5, streamType: 0x06, descriptors: new Uint8Array([0x59, 0]) }, NONE, true).kind,
    "subtitle",
  );
  assertEquals(trackOf({ pid: 5, streamType: 0x15, descriptors: NONE }, NONE, true).codec, "other");
});

test("openTransportStream() reads only the first 64 KiB, since MPEG TS needs no plan", async () => {
  const source = new CountingSource(new MemorySource(repeatTs(fixture("ts-188.ts"), 100, 6 * 90_000)));
  const { ts, bytesPerSecond } = await openTransportStream(source, { fileName: "a.ts", signal: never });
  assertLess(source.furthestByte, 66 * 1024);
  assertEquals([ts.sizeBytes, ts.copiedFrom], [source.sizeBytes, 0]);
  // 6 s of 127 kB; 64 KiB are three of them.
  assertLess(Math.abs(bytesPerSecond! / (source.sizeBytes / 600) - 1), 0.3);
});

test("ts.copiedFrom is there only where no packet is changed or left out", async () => {
  const copiedFrom = async (bytes: Uint8Array) => (await openTs(bytes)).ts.copiedFrom;
  assertEquals(await copiedFrom(fixture("ts-188.ts")), 0);
  assertEquals(await copiedFrom(concatBytes([new Uint8Array(77), fixture("ts-188.ts")])), 77);
  assertEquals(await copiedFrom(fixture("ts-192.m2ts")), undefined);
});

test("hls plan of a large file reads little, never changes, and its segments hold everything once", async () => {
  const clip = fixture("ts-188.ts");
  const bytes = repeatTs(clip, 100, 6 * 90_000);
  const source = new CountingSource(new MemorySource(bytes));
  const presentation = await openTs(source);
  // The tables, the beginning by which segments are measured, and the last times.
  assertLess(source.bytesRead, 768 * 1024);
  assertLess(Math.abs(presentation.durationMs! - 600_000), 1000);
  const again = await openTs(bytes);
  assertEquals(again.hls.segments, presentation.hls.segments);
  assertEquals(presentation.hls.segments.length, 120);
  let units = 0;
  let last: Uint8Array | null = null;
  for (const n of [7, 3, 60, 118, 119]) {
    const segment = await gather(presentation.hls.readSegment(n, source, never));
    assertEquals(checkTs(segment).problems, []);
    assert(sameBytes(segment, await gather(again.hls.readSegment(n, new MemorySource(bytes), never))));
  }
  for (const { index } of presentation.hls.segments) {
    const segment = await gather(presentation.hls.readSegment(index, source, never));
    units += checkTs(segment).streams.find((stream) => stream.pid === 256)!.units.length;
    if (last !== null) assertEquals(counterErrors(concatBytes([segment, last])), 0);
    last = segment;
  }
  assertEquals(units, 150 * 100);
});

/** The stream with `count` null packets after each packet, as one of that much higher bit rate. */
function stuffed(ts: Uint8Array, count: number): Uint8Array {
  const out = new Uint8Array(ts.length * (count + 1));
  for (let at = 0; at < out.length; at += 188) out.set([0x47, 0x1f, 0xff, 0x10], at);
  for (let at = 0; at < ts.length; at += 188) out.set(ts.subarray(at, at + 188), at * (count + 1));
  return out;
}

test("readSegment() finds where a segment begins with less reading once it has read a few", async () => {
  // A random access point every second, which is half a megabyte.
  const bytes = stuffed(repeatTs(fixture("ts-188.ts"), 10, 6 * 90_000), 24);
  const bytesToFirst = async (presentation: IndexedPresentation) => {
    const source = new CountingSource(new MemorySource(bytes));
    for (let n = 4; n < presentation.hls.segments.length; n++) {
      for await (const _ of presentation.hls.readSegment(n, source, never)) break;
    }
    return source.bytesRead;
  };
  const taught = await openTs(bytes);
  for (let n = 0; n < 2; n++) await gather(taught.hls.readSegment(n, new MemorySource(bytes), never));
  assertLess(await bytesToFirst(taught), 0.8 * await bytesToFirst(await openTs(bytes)));
});

test("hls plan bridges a jump of the clock by the bitrate", async () => {
  const clip = fixture("ts-188.ts");
  const first = repeatTs(clip, 50, 6 * 90_000);
  const later = repeatTs(concatBytes([clip, clip]), 1, 0);
  const file = concatBytes([first, repeatTs(later.subarray(0, clip.length), 50, 6 * 90_000)]);
  const presentation = await openTs(file);
  assertLess(Math.abs(presentation.durationMs! - 600_000), 60_000);
});

function pmt(streams: number): Uint8Array {
  const body = [2, 0xb0, 0, 0, 1, 0xc1, 0, 0, 0xe1, 0, 0xf0, 0];
  for (let i = 0; i < streams; i++) body.push(0x0f, 0xe1, i, 0xf0, 6, 0x0a, 4, 101, 110, 103, 0);
  const length = body.length + 4 - 3;
  body[1] = 0xb0 | (length >> 8);
  body[2] = length & 255;
  const section = new Uint8Array([...body, 0, 0, 0, 0]);
  new DataView(section.buffer).setUint32(section.length - 4, crc32Mpeg(section.subarray(0, section.length - 4)));
  return section;
}

test("SectionAssembler joins sections over packets, several in one, and drops wrong CRCs", () => {
  const large = pmt(60);
  assertGreater(large.length, 500);
  const stream = concatBytes([new Uint8Array([0]), large]);
  const assembler = new SectionAssembler();
  const found: Uint8Array[] = [];
  for (let at = 0; at < stream.length; at += 184) {
    found.push(...assembler.push(stream.subarray(at, at + 184), at === 0));
  }
  assertEquals(readPmt(found[0]!)!.streams.length, 60);
  const two = concatBytes([new Uint8Array([0]), pmt(1), pmt(2), new Uint8Array(20).fill(255)]);
  assertEquals(assembler.push(two, true).map((section) => readPmt(section)!.streams.length), [1, 2]);
  const wrong = two.slice();
  wrong[10] = wrong[10]! ^ 1;
  assertEquals(assembler.push(wrong, true).length, 1);
  assertEquals(readPat(pmt(1)).size, 0);
});

test("isAccessPoint() knows IDR, recovery points, IRAP and sequence headers", () => {
  const nal = (...bytes: number[]) => new Uint8Array([0, 0, 0, 1, ...bytes, 0, 0]);
  assertEquals(isAccessPoint("h264", nal(0x09, 0xf0, 0, 0, 1, 0x65)), true);
  assertEquals(isAccessPoint("h264", nal(0x09, 0xf0, 0, 0, 1, 0x06, 6)), true);
  assertEquals(isAccessPoint("h264", nal(0x09, 0xf0, 0, 0, 1, 0x06, 1, 0, 0, 1, 0x41)), false);
  assertEquals(isAccessPoint("h264", nal(0x09, 0xf0)), null);
  assertEquals(isAccessPoint("hevc", nal(0x26, 1)), true);
  assertEquals(isAccessPoint("hevc", nal(0x02, 1)), false);
  assertEquals(isAccessPoint("mpeg2video", nal(0xb3)), true);
  assertEquals(isAccessPoint("mpeg2video", nal(0x00, 0, 8)), false);
  assertEquals(isAccessPoint("mpeg4", nal(0xb0, 1, 0, 0, 1, 0x20)), true);
  assertEquals(isAccessPoint("mpeg4", nal(0xb6, 0x10)), true);
  assertEquals(isAccessPoint("mpeg4", nal(0xb6, 0x50)), false);
  assertEquals(isAccessPoint("mpeg4", nal(0xb2, 1)), null);
});

test("splitPacket() keeps the payload, with and without an adaptation field", () => {
  const payload = (packet: Uint8Array) => [...packet.subarray(4 + ((packet[3]! & 0x20) === 0 ? 0 : packet[4]! + 1))];
  for (const field of [[], [0], [1, 0], [7, 0x10, 1, 2, 3, 4, 5, 6]]) {
    const packet = Uint8Array.from({ length: 188 }, (_, i) => i);
    packet.set([0x47, 0x41, 0, field.length > 0 ? 0x30 : 0x10, ...field]);
    for (let more = 1; more < 16; more++) {
      const parts = splitPacket(packet, more);
      assertEquals(parts.length, more + 1);
      assertEquals(parts.flatMap(payload), payload(packet));
      assertEquals(parts.map((part) => part[1]! & 0x40), [0x40, ...new Array(more).fill(0)]);
      if (field.length > 2) assertEquals([...parts[0]!.subarray(5, 12)], field.slice(1));
    }
  }
});

test("CounterRewriter ends every count at 15", () => {
  for (let count = 1; count < 40; count++) {
    const out: Uint8Array[] = [];
    const rewriter = new CounterRewriter((bytes, at, counter) => {
      const packet = bytes.slice(at, at + 188);
      packet[3] = (packet[3]! & 0xf0) | counter;
      out.push(packet);
    });
    for (let i = 0; i < count; i++) {
      const packet = new Uint8Array(188).fill(1);
      packet.set(i % 3 === 2 ? [0x47, 1, 0, 0x30, 180, 0] : [0x47, 1, 0, 0x10]);
      rewriter.push(packet, 0);
      if (i % 7 === 0) {
        rewriter.detach();
        packet.fill(0);
      }
    }
    rewriter.finish();
    assertEquals(out.length % 16, 0);
    assertEquals(out.map((packet) => packet[3]! & 15), out.map((_, i) => i % 16));
  }
});
