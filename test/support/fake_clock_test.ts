import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { FAKE_EPOCH_MS, FakeClock } from "./fake-clock.ts";

test("FakeClock.advance() runs timers in order of time, then of creation", () => {
  const clock = new FakeClock();
  const seen: string[] = [];
  clock.setTimeout(() => seen.push(`late ${clock.monotonic()}`), 20);
  clock.setTimeout(() => seen.push(`first ${clock.monotonic()}`), 10);
  clock.setTimeout(() => seen.push(`second ${clock.monotonic()}`), 10);
  clock.advance(15);
  assertEquals(seen, ["first 10", "second 10"]);
  assertEquals(clock.nextTimerMs, 5);
  clock.advance(5);
  assertEquals(seen, ["first 10", "second 10", "late 20"]);
  assertEquals(clock.now(), FAKE_EPOCH_MS + 20);
  assertEquals(clock.pendingTimers, 0);
});

test("FakeClock.advance() runs timers set by timers when they fall due", () => {
  const clock = new FakeClock();
  let ticks = 0;
  const tick = () => {
    ticks++;
    clock.setTimeout(tick, 10);
  };
  clock.setTimeout(tick, 10);
  clock.advance(55);
  assertEquals(ticks, 5);
  assertEquals(clock.monotonic(), 55);
});

test("FakeClock.setTimeout() does not run what was cancelled", () => {
  const clock = new FakeClock();
  let ran = false;
  clock.setTimeout(() => (ran = true), 10).cancel();
  clock.advance(100);
  assertEquals(ran, false);
});

test("FakeClock.advanceAsync() settles promises between timers", async () => {
  const clock = new FakeClock();
  const sleep = (ms: number) => new Promise<void>((resolve) => void clock.setTimeout(resolve, ms));
  const seen: number[] = [];
  const run = (async () => {
    for (let i = 0; i < 3; i++) {
      await sleep(10);
      seen.push(clock.monotonic());
    }
  })();
  await clock.advanceAsync(30);
  await run;
  assertEquals(seen, [10, 20, 30]);
});
