import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { layoutFrom, layoutOfSegments, segmentAt } from "../../src/media/layout/late-start.ts";
import type { HlsPlan, TsLayout } from "../../src/media/model/types.ts";

const never = new AbortController().signal;
const source = { sizeBytes: 0, read: () => Promise.resolve(new Uint8Array(0)) };
const BYTES = Uint8Array.from({ length: 9 }, (_, i) => i);

const plan: HlsPlan = {
  segments: [0, 4000, 9000].map((startMs, index) => ({ index, startMs, durationMs: 4000 })),
  zeroPts90k: 0,
  targetDurationS: 5,
  segmentBytes: () => null,
  async *readSegment(n) {
    yield BYTES.subarray(3 * n, 3 * n + 3);
  },
};
const layout = (sizeBytes: number | null): TsLayout => ({
  sizeBytes,
  fingerprint: "f",
  copiedFrom: 100,
  async *read(start, end) {
    yield BYTES.subarray(start, end ?? BYTES.length);
  },
});
const read = async (ts: TsLayout, start = 0, end: number | null = null) => {
  const all: number[] = [];
  for await (const chunk of ts.read(start, end, source, never)) all.push(...chunk);
  return all;
};

test("segmentAt() finds the segment of a time, and the last one of those beyond the end", () => {
  assertEquals([0, 3999, 4000, 8999, 9000, 1e9].map((ms) => segmentAt(plan, ms)), [0, 0, 1, 1, 2, 2]);
});

test("layoutFrom() returns the rest of a layout, with its own positions, length and fingerprint", async () => {
  const whole = layout(9);
  assertEquals(layoutFrom(whole, 0), whole);
  const rest = layoutFrom(whole, 3);
  assertEquals([rest.sizeBytes, rest.copiedFrom, rest.fingerprint !== "f"], [6, 103, true]);
  assertEquals([await read(rest), await read(rest, 1, 3)], [[3, 4, 5, 6, 7, 8], [4, 5]]);
});

test("layoutOfSegments() joins segments of unknown size, and has no ranges", async () => {
  const whole = layout(null);
  assertEquals(layoutOfSegments(whole, plan, 0), whole);
  const rest = layoutOfSegments(whole, plan, 1);
  assertEquals([rest.sizeBytes, rest.copiedFrom, await read(rest)], [null, undefined, [3, 4, 5, 6, 7, 8]]);
  await assertRejects(() => read(rest, 1), MillraceError, "size");
});
