import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { beginsWithStartCode, unitsByLength, unitsOfByteStream } from "../../src/bytes/nal-units.ts";
import { seeded } from "../support/random.ts";

const of = (...bytes: number[]) => Uint8Array.from(bytes);

test("unitsOfByteStream() splits at start codes of three and four bytes and leaves out zeros around them", () => {
  const cases: [Uint8Array, number[][]][] = [
    [of(0, 0, 0, 1, 0x67, 1, 0, 0, 1, 0x68, 2), [[0x67, 1], [0x68, 2]]],
    [of(0, 0, 1, 9, 0xf0, 0, 0, 0, 0, 0, 1, 0x65, 7, 0), [[9, 0xf0], [0x65, 7]]],
    [of(0, 0, 1), []],
    [of(0, 0, 1, 0, 0, 1, 5), [[5]]],
    [of(1, 2, 3), []],
    [of(), []],
  ];
  for (const [bytes, units] of cases) assertEquals(unitsOfByteStream(bytes, 10).map((unit) => [...unit]), units);
  assertEquals(unitsOfByteStream(cases[0]![0], 1).length, 1);
});

test("unitsByLength() returns null unless lengths fill the bytes exactly", () => {
  const cases: [Uint8Array, number, number[][] | null][] = [
    [of(0, 0, 0, 1, 5, 0, 0, 0, 2, 6, 7), 4, [[5], [6, 7]]],
    [of(0, 1, 5), 2, [[5]]],
    [of(0, 0, 0, 2, 5), 4, null],
    [of(0, 0, 0, 0), 4, null],
    [of(0, 0, 0, 1, 5, 0), 4, null],
    [of(), 4, []],
  ];
  for (const [bytes, size, units] of cases) {
    assertEquals(unitsByLength(bytes, size)?.map((unit) => [...unit]) ?? null, units);
  }
});

test("beginsWithStartCode() knows both start codes", () => {
  assert(beginsWithStartCode(of(0, 0, 1)) && beginsWithStartCode(of(0, 0, 0, 1)));
  assert(
    !beginsWithStartCode(of(0, 0, 0, 0, 1)) && !beginsWithStartCode(of(0, 0)) && !beginsWithStartCode(of(0, 0, 0, 2)),
  );
});

test("unitsOfByteStream() and unitsByLength() return views inside any bytes", () => {
  const random = seeded(8);
  for (let round = 0; round < 2000; round++) {
    const bytes = Uint8Array.from({ length: Math.floor(random() * 60) }, () => Math.floor(random() * 3));
    const size = 1 + Math.floor(random() * 4);
    for (const unit of [...unitsOfByteStream(bytes, 5), ...unitsByLength(bytes, size) ?? []]) {
      assert(unit.length > 0 && unit.buffer === bytes.buffer && unit.byteOffset + unit.length <= bytes.length);
    }
  }
});
