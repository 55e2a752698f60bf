import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { parseRange } from "../../src/http/range.ts";

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

test("parseRange() reads single and suffix ranges and gives up on others (B17)", () => {
  for (const [header, size, expected] of TABLE) assertEquals(parseRange(header, size), expected, String(header));
});
