import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { MemorySource } from "../support/memory-source.ts";
import { PACKET_BYTES, pcrAt, pidOf } from "../../src/bytes/ts/packet.ts";
import { readPcr, readStamp, stepBetween, writeStamp } from "../../src/bytes/ts/stamps.ts";
import { detectPackets, readPackets } from "../../src/bytes/ts/packet-source.ts";
import type { LiveInputEvent } from "../../src/live/broadcast/input.ts";
import { inPackets } from "../../src/inputs/packets.ts";
import { TsLooper } from "../../src/inputs/ts-looper.ts";
import { clip } from "../support/fixtures.ts";
import { seededBelow } from "../support/random.ts";
import { checkTs, ticksBetween } from "../support/ts-check.ts";
import { concatBytes } from "../../src/bytes/hex.ts";

const NEVER = new AbortController().signal;

async function packetsOf(name: string): Promise<Uint8Array> {
  const source = new MemorySource(clip(name));
  const format = (await detectPackets(source, NEVER))!;
  return await readPackets(format, source, 0, format.packetCount, NEVER);
}

function loop(packets: Uint8Array, passes: number): Uint8Array {
  const looper = new TsLooper();
  const parts: Uint8Array[] = [];
  for (let pass = 0; pass < passes; pass++) {
    // In chunks, as files are read.
    for (let at = 0; at < packets.length; at += 100 * PACKET_BYTES) {
      parts.push(looper.push(packets.subarray(at, at + 100 * PACKET_BYTES)));
    }
    parts.push(looper.endPass());
  }
  return concatBytes(parts);
}

const FILES = ["ts-188.ts", "ts-192.m2ts", "ts-204.ts", "ts-audio-only.ts", "ts-hevc.ts", "ts-mpeg2.ts", "ts-wrap.ts"];

for (const name of FILES) {
  test(`TsLooper.push() makes one stream of three passes over ${name}: no gap, no step back, no loss`, async () => {
    const packets = await packetsOf(name);
    const once = checkTs(loop(packets, 1), { isRange: true, isSegment: false });
    const thrice = checkTs(loop(packets, 3), { isRange: true, isSegment: false });
    // Files end with sound that needs no clock: where passes join its steps are longer than 0.1 s, and shorter than 0.5 s.
    const faults = ({ problems }: typeof once) => problems.filter((text) => !text.includes("PCR gap"));
    assertEquals(faults(thrice), faults(once));
    const pcrSteps = thrice.pcrs.slice(1).map((pcr, k) => ticksBetween(pcr, thrice.pcrs[k]!));
    assert(Math.min(...pcrSteps) > 0 && Math.max(...pcrSteps) < 45_000, `PCR steps to ${Math.max(...pcrSteps)}`);
    assertEquals(thrice.streams.length, once.streams.length);
    for (const [i, { units, pid }] of thrice.streams.entries()) {
      const first = once.streams[i]!.units;
      // The last unit of a pass stays open until the next one begins; the end of a range does not close it.
      assert(Math.abs(units.length - 3 * (first.length + 1)) <= 3, `${units.length} and ${first.length} units`);
      const steps = units.slice(1).map((unit, k) => ticksBetween(unit.dts, units[k]!.dts));
      assert(Math.min(...steps) > 0, `DTS of ${pid} runs back`);
      assert(Math.max(...steps) < 90_000, `DTS of ${pid} jumps by ${Math.max(...steps)}`);
    }
  });
}

test("TsLooper.push() keeps streams in step: all times of a pass move by one offset", async () => {
  const packets = await packetsOf("ts-188.ts");
  const looper = new TsLooper();
  const first = looper.push(packets);
  assertEquals(looper.endPass().length, 0);
  const second = looper.push(packets);
  assertEquals(second.length, first.length);
  const moves = new Set<number>();
  for (let at = 0; at < first.length; at += PACKET_BYTES) {
    assertEquals(pidOf(second, at), pidOf(first, at));
    const place = pcrAt(first, at);
    if (place >= 0) moves.add(stepBetween(readPcr(first, place), readPcr(second, place)));
  }
  const [a, b] = [first, second].map((ts) => checkTs(ts, { isRange: true, isSegment: false }).streams);
  for (const [i, { units }] of a!.entries()) {
    for (const [k, unit] of units.entries()) {
      moves.add(ticksBetween(b![i]!.units[k]!.dts, unit.dts));
      moves.add(ticksBetween(b![i]!.units[k]!.pts, unit.pts));
      assertEquals(b![i]!.units[k]!.data, unit.data);
    }
  }
  assertEquals(moves.size, 1, [...moves].join());
});

test("TsLooper.push() leaves out what began before the file and null packets, but keeps the clock", () => {
  const pes = (pid: number, counter: number, start: boolean, pcr: number | null): Uint8Array => {
    const packet = new Uint8Array(PACKET_BYTES).fill(0xaa);
    packet.set([0x47, (start ? 0x40 : 0) | (pid >> 8), pid & 255, (pcr === null ? 0x10 : 0x30) | counter]);
    let body = 4;
    if (pcr !== null) {
      packet.set([7, 0x10, 0, 0, 0, pcr >> 1, (pcr & 1) << 7 | 0x7e, 0], 4);
      body = 12;
    }
    if (start) packet.set([0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 5, 0x21, 0, 1, 0, 1], body);
    return packet;
  };
  const file = concatBytes([
    pes(0x100, 7, false, null),
    pes(0x100, 8, false, 4),
    pes(0x1fff, 0, false, null),
    pes(0x100, 9, true, 6),
    pes(0x100, 10, false, null),
  ]);
  const looper = new TsLooper();
  const first = looper.push(file);
  const kinds = (ts: Uint8Array) =>
    Array.from(
      { length: ts.length / PACKET_BYTES },
      (_, i) => [ts[i * PACKET_BYTES + 3]! >> 4, ts[i * PACKET_BYTES + 3]! & 15],
    );
  assertEquals(kinds(first), [[2, 8], [3, 9], [1, 10]]);
  looper.endPass();
  // Times continue from the end of the units, not from the clock.
  assertEquals(kinds(looper.push(file)), [[2, 10], [3, 11], [1, 12]]);
});

test("TsLooper.push() moves times in a header that is spread over packets, also from chunk to chunk", () => {
  const looper = new TsLooper();
  const header = [0, 0, 1, 0xe0, 0, 0, 0x80, 0xc0, 10, ...Array(10).fill(0)];
  const bytes = new Uint8Array(24).fill(0);
  bytes.set(header);
  writeStamp(bytes, 9, 3, 7200);
  writeStamp(bytes, 14, 1, 3600);
  // One byte of payload a packet.
  const packets = Array.from(bytes, (byte, i) => {
    const packet = new Uint8Array(PACKET_BYTES).fill(0xff);
    packet.set([0x47, i === 0 ? 0x41 : 1, 0, 0x30 | i & 15, 182, 0]);
    packet[187] = byte;
    return packet;
  });
  const pass = (chunk: number): number[] => {
    const parts: Uint8Array[] = [];
    for (let i = 0; i < packets.length; i += chunk) parts.push(looper.push(concatBytes(packets.slice(i, i + chunk))));
    parts.push(looper.endPass());
    const all = concatBytes(parts);
    assertEquals(all.length, packets.length * PACKET_BYTES);
    const sent = Uint8Array.from(packets, (_, i) => all[i * PACKET_BYTES + 187]!);
    return [readStamp(sent, 9), readStamp(sent, 14)];
  };
  assertEquals([pass(24), pass(1), pass(7)], [[7200, 3600], [10_800, 7200], [14_400, 10_800]]);
});

test("TsLooper.push() and inPackets() survive damage of every kind, in whole packets", async () => {
  const below = seededBelow(11);
  const packets = await packetsOf("ts-188.ts");
  for (let round = 0; round < 60; round++) {
    const damaged = packets.slice(0, PACKET_BYTES * (1 + below(300)));
    for (let k = below(400); k > 0; k--) damaged[below(damaged.length)] = below(256);
    const looper = new TsLooper();
    for (let pass = 0; pass < 2; pass++) {
      const sent = looper.push(damaged.slice()).length + looper.endPass().length;
      assert(sent % PACKET_BYTES === 0 && sent <= damaged.length);
    }
    const cut = async function* (): AsyncGenerator<LiveInputEvent> {
      for (let at = 0; at < damaged.length;) {
        const end = at + 1 + below(1000);
        yield { kind: "data", bytes: damaged.slice(at, end) };
        at = end;
      }
    };
    let bytes = 0;
    for await (const event of inPackets(cut())) {
      if (event.kind !== "data") continue;
      assert(event.bytes.length % PACKET_BYTES === 0 && event.bytes[0] === 0x47);
      bytes += event.bytes.length;
    }
    assert(bytes <= damaged.length);
  }
});
