/** AAC laid into the packets of other sound. */
import { assert, assertEquals, assertGreaterOrEqual } from "@std/assert";
import { test } from "node:test";
import { fillPackets, type LaidPes, roomOf } from "../../../src/media/ts-file/sound/fill.ts";
import { spansOf, StretchCollector } from "../../../src/media/ts-file/sound/window.ts";
import { seeded } from "../support/files.ts";
import { concatBytes } from "../../../src/bytes/hex.ts";

const PID = 0x101;

/** Packets with counters from `first`; those in `clocks` carry a PCR. */
function slotsOf(count: number, first: number, clocks: ReadonlySet<number> = new Set()) {
  return Array.from({ length: count }, (_, i) => {
    const bytes = new Uint8Array(188).fill(0xaa);
    bytes.set([0x47, 0x40 | (PID >> 8), PID & 255, 0x10 | ((first + i) & 15)]);
    if (clocks.has(i)) bytes.set([bytes[0]!, bytes[1]!, bytes[2]!, bytes[3]! | 0x20, 7, 0x10, 1, 2, 3, 4, 0x7e, i]);
    return { number: 10 * i, bytes };
  });
}

const pes = (begin: number, end: number, size: number, fill: number): LaidPes => ({
  begin,
  end,
  pts90k: fill * 1920,
  payload: new Uint8Array(size).fill(fill),
});

/** What a demultiplexer finds in the packets: PES payloads, the packet in which each began, and counter errors. */
function read(packets: Uint8Array, firstCounter: number) {
  const found: { at: number; parts: Uint8Array[] }[] = [];
  let counter = (firstCounter + 15) & 15;
  let faults = 0;
  const clocks: number[] = [];
  for (let at = 0; at < packets.length; at += 188) {
    const pid = ((packets[at + 1]! & 31) << 8) | packets[at + 2]!;
    if (pid === 0x1fff) continue;
    const control = packets[at + 3]!;
    const field = (control & 0x20) === 0 ? 0 : packets[at + 4]! + 1;
    if (field > 7 && (packets[at + 5]! & 0x10) !== 0) clocks.push(packets[at + 11]!);
    if ((control & 0x10) !== 0) counter = (counter + 1) & 15;
    if ((control & 15) !== counter) faults++;
    if ((control & 0x10) === 0) continue;
    const payload = packets.subarray(at + 4 + field, at + 188);
    if ((packets[at + 1]! & 0x40) !== 0) found.push({ at: at / 188, parts: [payload] });
    else found.at(-1)!.parts.push(payload);
  }
  return {
    faults,
    counter,
    clocks,
    units: found.map(({ at, parts }) => ({
      at,
      bytes: concatBytes(parts).subarray(14),
      head: concatBytes(parts).subarray(0, 6),
    })),
  };
}

test("fillPackets() begins each PES where the sound of its time began and ends the counters where they ended", () => {
  const slots = slotsOf(40, 3);
  const list = [pes(0, 10, 400, 1), pes(10, 20, 400, 2), pes(20, 40, 500, 3)];
  const { packets, inTime } = fillPackets(slots, list, (3 + 40) & 15);
  assert(inTime);
  const { faults, counter, units } = read(packets, 3);
  assertEquals([faults, counter], [0, (3 + 40 - 1) & 15]);
  assertEquals(units.map(({ at }) => at), [0, 10, 20]);
  assertEquals(units.map(({ bytes }) => [bytes.length, bytes[0]]), [[400, 1], [400, 2], [500, 3]]);
  assertEquals([...units[0]!.head], [0, 0, 1, 0xc0, 408 >> 8, 408 & 255]);
});

test("fillPackets() lets a large PES begin early, and says when there is no room in time", () => {
  const slots = slotsOf(16, 0);
  const early = fillPackets(slots, [pes(0, 8, 300, 1), pes(8, 16, 1800, 2)], 0);
  assert(early.inTime);
  const { units, faults } = read(early.packets, 0);
  assertEquals(faults, 0);
  assertEquals(units.map(({ bytes }) => bytes.length), [300, 1800]);
  assert(units[1]!.at < 8, String(units[1]!.at));
  const tight = fillPackets(slots, [pes(0, 8, 1700, 1), pes(8, 16, 1700, 2)], 0);
  assertEquals(tight.inTime, false);
  assertEquals(read(tight.packets, 0).units.map(({ bytes }) => bytes.length), [1700]);
});

test("fillPackets() keeps clocks, in packets with sound and without", () => {
  const clocks = new Set([0, 3, 4, 9, 15]);
  const slots = slotsOf(16, 5, clocks);
  assertEquals([roomOf(slots[0]!.bytes), roomOf(slots[1]!.bytes)], [176, 184]);
  const filled = fillPackets(slots, [pes(0, 16, 900, 1)], 5);
  const { faults, units, clocks: seen } = read(filled.packets, 5);
  assertEquals([faults, seen], [0, [...clocks]]);
  assertEquals(units[0]!.bytes.length, 900);
  const empty = read(fillPackets(slots, [], 5).packets, 5);
  assertEquals([empty.units.length, empty.clocks, empty.faults], [0, [...clocks], 0]);
});

test("fillPackets() loses no byte of what it places, whatever the sizes", () => {
  const random = seeded(7);
  for (let round = 0; round < 500; round++) {
    const groups = 1 + Math.floor(random() * 8);
    const list: LaidPes[] = [];
    let count = 0;
    for (let g = 0; g < groups; g++) {
      const packets = 2 + Math.floor(random() * 20);
      if (g === 0 || random() < 0.8) {
        list.push(pes(count, count + packets, 128 + Math.floor(random() * 170 * packets), g + 1));
      }
      count += packets;
    }
    const clocks = new Set(Array.from({ length: Math.floor(random() * 6) }, () => Math.floor(random() * count)));
    const first = Math.floor(random() * 16);
    const { packets, inTime } = fillPackets(slotsOf(count, first, clocks), list, (first + count) & 15);
    const { units, faults, clocks: seen, counter } = read(packets, first);
    assertEquals(faults, 0);
    assertEquals(seen.length, clocks.size);
    for (const [i, { bytes }] of units.entries()) assertEquals(bytes, list[i]!.payload);
    if (inTime) {
      assertEquals(units.length, list.length);
      for (const [i, { at }] of units.entries()) assert(at <= list[i]!.begin);
      assertEquals((counter + 1) & 15, (first + count) & 15, `round ${round}`);
    } else assertGreaterOrEqual(list.length, units.length);
  }
});

test("StretchCollector and spansOf() leave repeated packets out and cut where times jump", () => {
  const collector = new StretchCollector(2 ** 33 - 90_000);
  const packet = (pts: number | null, counter: number) => {
    const bytes = new Uint8Array(188).fill(1);
    bytes.set([0x47, pts === null ? 1 : 0x41, 1, 0x10 | counter]);
    if (pts !== null) {
      const base = [
        0x21 | (Math.floor(pts / 2 ** 30) << 1),
        (pts >> 22) & 255,
        ((pts >> 14) & 254) | 1,
        (pts >> 7) & 255,
      ];
      bytes.set([0, 0, 1, 0xc0, 0, 0, 0x84, 0x80, 5, ...base, ((pts << 1) & 254) | 1], 4);
    }
    return bytes;
  };
  const times = [0, 2160, 4320, 200_000, 202_160, 1000];
  let counter = 0;
  for (const [i, time] of times.entries()) {
    collector.push(packet(time, counter), 0, 3 * i);
    counter = (counter + 1) & 15;
    collector.push(packet(null, counter), 0, 3 * i + 1);
    collector.push(packet(null, counter), 0, 3 * i + 2);
    counter = (counter + 1) & 15;
  }
  const { packets, units } = collector.finish();
  assertEquals(packets.length, 12);
  assertEquals(units.map(({ time90k }) => time90k - 90_000), times);
  assertEquals(spansOf(units), [{ from: 0, to: 3 }, { from: 3, to: 5 }, { from: 5, to: 6 }]);
  assertEquals(spansOf([]), []);
});
