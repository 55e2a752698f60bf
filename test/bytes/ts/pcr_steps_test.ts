import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { PcrSteps } from "../../../src/bytes/ts/pcr-steps.ts";
import { wrap33 } from "../../../src/bytes/ts/stamps.ts";

/** Steps in ms; "jump" for those that are one. */
function steps(pcrsMs: readonly number[]): (number | "jump")[] {
  const clock = new PcrSteps();
  return pcrsMs.map((ms) => {
    const { ticks, isJump } = clock.next(0x100, wrap33(ms * 90))!;
    return isJump ? "jump" : ticks / 90;
  });
}

test("PcrSteps.next() tells steps from jumps", () => {
  const table: [string, number[], (number | "jump")[]][] = [
    ["a usual clock", [0, 40, 80, 580], [0, 40, 40, 500]],
    ["a hole of two seconds", [0, 40, 2040], [0, 40, 2000]],
    ["a longer one", [0, 40, 2041, 2081], [0, 40, "jump", 40]],
    ["back", [0, 40, 0, 40], [0, 40, "jump", 40]],
    ["pictures every 5 s", [0, 5000, 10_000], [0, 5000, 5000]],
    ["two PCRs with each", [0, 40, 5000, 5040, 10_000, 10_040], [0, 40, "jump", 40, 4960, 40]],
    ["every 15 s", [0, 15_000, 30_000], [0, "jump", 15_000]],
    ["every 61 s", [0, 61_000, 122_000], [0, "jump", "jump"]],
    ["a jump long after the last", [0, ...Array.from({ length: 9 }, (_, i) => 5000 + 40 * i), 10_320], [
      0,
      5000,
      ...Array(8).fill(40),
      "jump",
    ]],
  ];
  for (const [name, pcrsMs, expected] of table) assertEquals(steps(pcrsMs), expected, name);
});

test("PcrSteps.next() follows one PID until it is gone, and cut() starts over", () => {
  const clock = new PcrSteps();
  assertEquals(clock.next(1, 0)?.ticks, 0);
  assertEquals(clock.next(2, 500), null);
  assertEquals(clock.next(1, 90)?.ticks, 90);
  clock.cut();
  assertEquals(clock.next(1, 90_000_000), { ticks: 0, isJump: false });
  for (let i = 0; i < 63; i++) assertEquals(clock.next(2, i), null);
  assertEquals(clock.next(2, 64), { ticks: 0, isJump: false });
  assertEquals(clock.next(2, 154)?.ticks, 90);
});
