import { test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import { parseRange } from "../../src/http/range.ts";
import { seededBelow } from "../support/random.ts";
import { cpuMs } from "../support/cpu-time.ts";

const TABLE: [string | null, number, ReturnType<typeof parseRange>][] = [
  [null, 100, null],
  ["bytes=0-", 100, { start: 0, end: 100 }],
  ["bytes=0-0", 100, { start: 0, end: 1 }],
  ["bytes=10-19", 100, { start: 10, end: 20 }],
  ["bytes=90-500", 100, { start: 90, end: 100 }],
  ["bytes=-10", 100, { start: 90, end: 100 }],
  ["bytes=-500", 100, { start: 0, end: 100 }],
  ["BYTES = 5 - 6", 100, { start: 5, end: 7 }],
  ["bytes=100-", 100, "unsatisfiable"],
  ["bytes=-0", 100, "unsatisfiable"],
  ["bytes=0-", 0, "unsatisfiable"],
  ["bytes=20-10", 100, null],
  ["bytes=0-1,5-6", 100, null],
  ["bytes=-", 100, null],
  ["items=0-1", 100, null],
  ["bytes=a-b", 100, null],
  ["", 100, null],
];

test("parseRange() reads single and suffix ranges and ignores others", () => {
  for (const [header, size, expected] of TABLE) assertEquals(parseRange(header, size), expected, String(header));
});

test("parseRange() survives any header, and its ranges lie within the body", () => {
  const random = seededBelow(9);
  const parts = ["bytes", "=", "-", ",", " ", "0", "9", "99999999999999999999999", "\t", "x", "=-", "1-2"];
  for (let round = 0; round < 20_000; round++) {
    const header = Array.from({ length: random(8) }, () => parts[random(parts.length)]).join("");
    for (const size of [0, 1, 100, 2 ** 45]) {
      const range = parseRange(round % 2 === 0 ? `bytes=${header}` : header, size);
      if (range === null || range === "unsatisfiable") continue;
      assert(range.start >= 0 && range.start < range.end && range.end <= size, `${header} of ${size}`);
      assert(Number.isSafeInteger(range.start) && Number.isSafeInteger(range.end), header);
    }
  }
});

test("parseRange() takes no long header apart", () => {
  const begun = cpuMs();
  assertEquals(parseRange(`bytes=${" ".repeat(200_000)}`, 100), null);
  // Taken apart, it would be work for a minute.
  assertLess(cpuMs() - begun, 500);
});
