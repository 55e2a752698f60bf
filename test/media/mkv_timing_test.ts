/** Matroska files whose index gives times badly or late: every access unit comes out, and the clock never runs backwards. */
import { test } from "node:test";
import { assertEquals, assertLess } from "@std/assert";
import { PACKET_BYTES, pcrAt } from "../../src/bytes/ts/packet.ts";
import { readPcr } from "../../src/bytes/ts/stamps.ts";
import { MemorySource } from "../support/memory-source.ts";
import { checkTs } from "../support/ts-check.ts";
import { cluster, cues, matroska, simpleBlock } from "./mkv-support.ts";
import { collect, fixture, NEVER, openBytes } from "./support/files.ts";

/** A second of sound, 32 ms a frame, from `fromMs` on, in blocks relative to it. */
function sound(fromMs: number): Uint8Array[] {
  const blocks: Uint8Array[] = [];
  for (let n = Math.ceil(fromMs / 32); n * 32 < fromMs + 1000; n++) {
    blocks.push(simpleBlock(2, n * 32 - fromMs, 0x80, new Uint8Array(100).fill(n & 255)));
  }
  return blocks;
}

/** Pictures of one second. */
function pictures(count: number, sizeBytes: number): Uint8Array[] {
  return Array.from(
    { length: count },
    (_, i) => simpleBlock(1, Math.round(i * 1000 / count), i === 0 ? 0x80 : 0, new Uint8Array(sizeBytes).fill(i + 1)),
  );
}

async function played(file: Uint8Array) {
  const { ts } = await openBytes(file);
  const { problems, streams } = checkTs(await collect(ts.read(0, null, new MemorySource(file), NEVER)));
  // Pictures, and frames of sound; a PES holds several of the latter.
  const [video, audio] = streams;
  const soundBytes = audio!.units.reduce((sum, { data }) => sum + data.length, 0);
  return { problems, units: [video!.units.length, soundBytes / 100] };
}

test("TsLayout.read() loses nothing when a file without Cues changes its bit rate by a factor of 20", async () => {
  const seconds = Array.from(
    { length: 40 },
    (_, second) => cluster(second * 1000, [...pictures(25, second < 8 ? 4000 : 200), ...sound(second * 1000)]),
  );
  const { problems, units } = await played(matroska(seconds, { durationMs: 40_000 }));
  assertEquals(units, [1000, 1250]);
  assertEquals(problems, []);
});

test("TsLayout.read() keeps pictures that come once a second, and the sound beside them", async () => {
  // In decoding order, every third picture is shown before its predecessor.
  const order = [0, 2, 1, 4, 3, 6, 5, 8, 7, 9];
  const tens = Array.from({ length: 4 }, (_, ten) =>
    cluster(
      ten * 10_000,
      order.flatMap((shown, i) => [
        simpleBlock(1, shown * 1000, i === 0 ? 0x80 : 0, new Uint8Array(3000).fill(shown + 1)),
        ...sound(ten * 10_000 + i * 1000).map((block) => {
          // Block times are relative to the cluster.
          const moved = block.slice();
          const at = block.length - 103;
          const time = (block[at]! << 8 | block[at + 1]!) + i * 1000;
          moved.set([time >> 8, time & 255], at);
          return moved;
        }),
      ]),
    ));
  const at = tens.map((_, n) => tens.slice(0, n).reduce((sum, part) => sum + part.length, 0));
  const file = matroska(tens, {
    durationMs: 40_000,
    after: (base) => [cues(base, at.map((position, n) => [n * 10_000, position, null] as const))],
  });
  const { problems, units } = await played(file);
  assertEquals(units, [40, 1250]);
  assertEquals(problems.filter((problem) => /runs back/.test(problem)), []);
});

test("StreamedSlot writes a clock that grows with each value, also where pictures come before their random access point", async () => {
  const bytes = fixture("mkv-mpeg2.mkv");
  const { ts } = await openBytes(bytes);
  const data = await collect(ts.read(0, null, new MemorySource(bytes), NEVER));
  let last = -1;
  for (let at = 0; at < data.length; at += PACKET_BYTES) {
    const place = pcrAt(data, at);
    if (place < 0) continue;
    assertLess(last, readPcr(data, place));
    last = readPcr(data, place);
  }
});
