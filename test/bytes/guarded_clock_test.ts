import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { guarded, guardedClock, leadTo } from "../../src/bytes/guarded-clock.ts";
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

test("guarded() hands over what a callback throws, and what its promise rejects with", async () => {
  const failures: unknown[] = [];
  const failed = (error: unknown) => failures.push((error as Error).message);
  guarded((what: string) => {
    throw new TypeError(what);
  }, failed)("thrown");
  guarded((what: string) => Promise.reject(new TypeError(what)), failed)("rejected");
  guarded(() => 7, failed)();
  await Promise.resolve();
  assertEquals(failures, ["thrown", "rejected"]);
});

test("leadTo() hands what a promise rejects with to the owner of the clock", async () => {
  const clock = new FakeClock();
  const failures: unknown[] = [];
  const guarded = guardedClock(clock, (error) => failures.push((error as Error).message));
  leadTo(guarded, Promise.reject(new TypeError("rejected")));
  leadTo(guarded, Promise.resolve());
  guarded.setTimeout(() => Promise.reject(new TypeError("a timer's promise")), 0);
  await clock.advanceAsync(1);
  assertEquals(failures, ["a timer's promise", "rejected"]);
});
