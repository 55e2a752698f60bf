import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { Allowance, Allowances } from "../../src/bytes/allowance.ts";

test("Allowance.take() allows a burst of a second and then the rate, and another rate once it is set", () => {
  const allowance = new Allowance(50, 50, 1000);
  const take = (ms: number, tries: number) =>
    Array.from({ length: tries }, () => allowance.take(1, ms)).filter(Boolean).length;
  assertEquals(take(1000, 80), 50);
  assertEquals(take(1100, 80), 5);
  assertEquals(take(9000, 80), 50);
  assertEquals([take(10_000, 40), take(11_000, 80)], [40, 50], "what was left over is no more than can be saved up");
  allowance.setRate(10, 10, 11_000);
  assertEquals(take(11_500, 80), 5);
  assertEquals(take(20_000, 80), 10);
});

test("Allowance.take() returns what has accumulated, then the rate per second, and never more than the limit", () => {
  let ms = 1_000;
  const now = () => ms;
  const allowance = new Allowance(10, 5, now());
  assert(allowance.take(5, now));
  assert(!allowance.take(1, now));
  ms += 100;
  assert(allowance.take(1, now));
  assert(!allowance.take(1, now));
  ms += 60_000;
  assert(!allowance.take(6, now));
  assert(allowance.take(5, now));
});

test("Allowance.widen() adds units at once and raises what can be saved up", () => {
  const allowance = new Allowance(1, 1, 0);
  allowance.widen(2);
  assert(allowance.take(3, () => 0));
  assert(!allowance.take(1, () => 0));
  assert(allowance.take(3, () => 10_000));
});

test("Allowances.take() counts each stranger separately and forgets the one served longest ago", () => {
  const allowances = new Allowances({ perSecond: 1, most: 2, limit: 2, nowMs: () => 0 });
  assertEquals(["a", "a", "a", "b"].map((key) => allowances.take(key)), [true, true, false, true]);
  // The third stranger pushes out the first, which starts again.
  assert(allowances.take("c"));
  assert(allowances.take("a"));
});
