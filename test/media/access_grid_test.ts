import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { AccessGrid } from "../../src/media/ts-file/access-grid.ts";
import type { CutPlan } from "../../src/media/ts-file/cut-plan.ts";

/** Packets per second of media, and the time of the first picture. */
const RATE = 1000;
const FIRST_90K = 126_000;
const SEGMENTS = 20;

/** A plan of segments of 5 s. */
const plan = (options: Partial<CutPlan> = {}): CutPlan => ({
  cuts: Array.from({ length: SEGMENTS }, (_, i) => ({
    searchFrom: i * 5 * RATE,
    durationMs: 5000,
    discontinuity: false,
  })),
  durationMs: SEGMENTS * 5000,
  rule: "start",
  startPts90k: FIRST_90K,
  endProgram: null,
  ...options,
});

/** A grid that followed points at `timesS` through segment 0, each `offset` packets after its place by the mean rate. */
function grid(timesS: readonly number[], offset = 0, options: Partial<CutPlan> = {}): AccessGrid {
  const made = new AccessGrid(plan(options), SEGMENTS * 5 * RATE);
  const see = made.follow(0);
  for (const time of timesS) see({ packet: time * RATE + offset, pts90k: FIRST_90K + time * 90_000 });
  return made;
}

test("searchFrom() begins just before the point nearest to the cut once points were evenly spread", () => {
  const even = grid([0, 2, 4]);
  // 35 s lie between points at 34 and 36 s; 40 s are one.
  assertEquals(even.searchFrom(7), 36 * RATE - RATE / 8);
  assertEquals(even.searchFrom(8), 40 * RATE - RATE / 8);
  assertEquals(even.searchFrom(0), 0);
  assertEquals(even.searchFrom(SEGMENTS), SEGMENTS * 5 * RATE);
});

test("searchFrom() begins earlier where points came before their places, but never in the segment before", () => {
  assertEquals(grid([0, 2, 4], -100).searchFrom(8), 40 * RATE - RATE / 8 - 100);
  assertEquals(grid([0, 2, 4], 100).searchFrom(8), 40 * RATE - RATE / 8);
  const far = grid([0, 2, 4], -3000);
  for (let n = 1; n < SEGMENTS; n++) assert(far.searchFrom(n) > far.searchFrom(n - 1));
});

test("searchFrom() keeps the plan's place without even points, with sparse or dense ones, and where the clock breaks", () => {
  const planned = 8 * 5 * RATE;
  assertEquals(grid([0, 2]).searchFrom(8), planned);
  assertEquals(grid([0, 2, 3.5]).searchFrom(8), planned);
  assertEquals(grid([0, 3, 6]).searchFrom(8), planned);
  assertEquals(grid([0, 0.2, 0.4]).searchFrom(8), planned);
  assertEquals(grid([0, 2, 4], 0, { rule: "any" }).searchFrom(8), planned);
  assertEquals(grid([0, 2, 4], 0, { startPts90k: null }).searchFrom(8), planned);
  const cuts = plan().cuts.map((cut, i) => ({ ...cut, discontinuity: i === 3 }));
  assertEquals(grid([0, 2, 4], 0, { cuts }).searchFrom(8), planned);
});

test("searchFrom() never changes, whatever is learned later", () => {
  const late = grid([]);
  const before = late.searchFrom(8);
  const see = late.follow(1);
  for (const time of [6, 8, 10]) see({ packet: time * RATE, pts90k: FIRST_90K + time * 90_000 });
  assertEquals(late.searchFrom(8), before);
  assertEquals(late.searchFrom(9), 46 * RATE - RATE / 8);
});

test("follow() takes no distance from one segment to another", () => {
  const apart = grid([0, 2, 4]);
  apart.follow(3)({ packet: 15 * RATE, pts90k: FIRST_90K + 15 * 90_000 });
  assertEquals(apart.searchFrom(8), grid([0, 2, 4]).searchFrom(8));
});
