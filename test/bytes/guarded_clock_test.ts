import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { guardedClock } from "../../src/bytes/guarded-clock.ts";
import { FakeClock } from "../support/fake-clock.ts";

test("guardedClock() hands exceptions of timers to their owner, and goes on", () => {
  const clock = new FakeClock();
  const failures: unknown[] = [];
  const guarded = guardedClock(clock, (error) => failures.push(error));
  const ran: string[] = [];
  guarded.setTimeout(() => {
    throw new TypeError("null is not iterable");
  }, 10);
  guarded.setTimeout(() => ran.push("second"), 20);
  guarded.setTimeout(() => ran.push("cancelled"), 20).cancel();
  clock.advance(30);
  assertEquals([failures.map(String), ran], [["TypeError: null is not iterable"], ["second"]]);
});
