import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { concatBytes } from "../../../src/bytes/hex.ts";
import { ContinuityWatch } from "../../../src/bytes/ts/continuity.ts";

/** A packet of `pid`; `field` is its adaptation field, without which it has a payload alone. */
function packet(pid: number, counter: number, { field, payload = true }: { field?: number[]; payload?: boolean } = {}) {
  const bytes = new Uint8Array(188).fill(0xff);
  bytes.set([0x47, pid >> 8, pid & 255, (field ? 0x20 : 0) | (payload ? 0x10 : 0) | counter, ...(field ?? [])]);
  return bytes;
}

const counters = (pid: number, ...values: number[]) => values.map((value) => packet(pid, value));

const CASES: readonly [string, Uint8Array[], number][] = [
  ["nothing", [], 0],
  ["counters that go on past 15", counters(256, 14, 15, 0, 1), 0],
  ["a start at any counter", counters(256, 9, 10), 0],
  ["one missing packet", counters(256, 3, 5), 1],
  ["seven missing packets over the wrap", counters(256, 13, 5), 7],
  ["two gaps", counters(256, 0, 2, 3, 6), 3],
  ["a packet sent twice", counters(256, 4, 4, 5), 0],
  ["PIDs side by side", [...counters(256, 4), ...counters(8190, 9), ...counters(256, 5), ...counters(8190, 10)], 0],
  ["null packets", counters(8191, 0, 9, 3), 0],
  ["a packet without payload, which has the counter before it", [
    ...counters(256, 4),
    packet(256, 4, { field: [183, 0], payload: false }),
    ...counters(256, 5),
  ], 0],
  ["a restart that is announced", [...counters(256, 4), packet(256, 11, { field: [1, 0x80] })], 0],
  ["an adaptation field that announces none", [...counters(256, 4), packet(256, 11, { field: [1, 0x40] })], 6],
  ["an empty adaptation field", [...counters(256, 4), packet(256, 11, { field: [0, 0x80] })], 6],
];

for (const [name, packets, missing] of CASES) {
  test(`ContinuityWatch.missing() returns ${missing} for ${name}, in one part or in many`, () => {
    assertEquals(new ContinuityWatch().missing(concatBytes(packets)), missing);
    const watch = new ContinuityWatch();
    assertEquals(packets.reduce((sum, one) => sum + watch.missing(one), 0), missing);
  });
}
