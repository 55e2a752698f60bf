import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { clockOf, createClock, type Machine } from "../../platform/shared/clock.ts";
import { FakeClock } from "../support/fake-clock.ts";

/** A machine whose timers all come late after a standstill, as those of a stopped process do. */
function stoppable(): { machine: Machine; time: FakeClock; stopFor(ms: number): void } {
  const time = new FakeClock();
  let stoppedMs = 0;
  return {
    time,
    machine: {
      now: () => time.now() + stoppedMs,
      monotonic: () => time.monotonic() + stoppedMs,
      setTimeout: (fn, delayMs) => {
        const dueMs = time.monotonic() + stoppedMs + delayMs;
        // A real timer that fell due meanwhile runs at once.
        const look = () => dueMs <= time.monotonic() + stoppedMs ? fn() : timer = time.setTimeout(look, 1);
        let timer = time.setTimeout(look, Math.min(delayMs, 1));
        return () => timer.cancel();
      },
    },
    stopFor: (ms) => void (stoppedMs += ms),
  };
}

test("Clock.monotonic() leaves out the time in which the process stood still, and now() does not", () => {
  const { machine, time, stopFor } = stoppable();
  const clock = clockOf(machine);
  const fromMs = clock.monotonic();
  const wallMs = clock.now();
  time.advance(3_000);
  stopFor(80_000);
  time.advance(2_000);
  const ranMs = clock.monotonic() - fromMs;
  assertEquals([ranMs >= 4_000 && ranMs <= 6_000, clock.now() - wallMs], [true, 85_000], `${ranMs} ms`);
});

test("Clock.monotonic() counts every second in which only nothing happened", () => {
  const { machine, time } = stoppable();
  const clock = clockOf(machine);
  const fromMs = clock.monotonic();
  time.advance(600_000);
  assertEquals(clock.monotonic() - fromMs, 600_000);
});

test("Clock.setTimeout() gives a timer the rest of its time after the process stood still", () => {
  const { machine, time, stopFor } = stoppable();
  const clock = clockOf(machine);
  const rung: string[] = [];
  clock.setTimeout(() => rung.push("short"), 1_000);
  clock.setTimeout(() => rung.push("deadline"), 60_000);
  clock.setTimeout(() => rung.push("cancelled"), 60_000).cancel();
  const late = clock.setTimeout(() => rung.push("cancelled late"), 61_000);
  time.advance(20_000);
  stopFor(80_000);
  time.advance(30_000);
  assertEquals(rung, ["short"]);
  late.cancel();
  time.advance(15_000);
  assertEquals(rung, ["short", "deadline"]);
});

test("createClock() counts a timer until it ran or was cancelled, and once when both happen", async () => {
  // Timers of the clock keep no process alive.
  const alive = setInterval(() => {}, 1_000);
  const { clock, pendingTimers } = createClock((timer) => (timer as { unref?(): void }).unref?.());
  const far = clock.setTimeout(() => {}, 60_000);
  const ran = Promise.withResolvers<number>();
  const near = clock.setTimeout(() => ran.resolve(pendingTimers()), 0);
  assertEquals(pendingTimers(), 2);
  assertEquals(await ran.promise, 1);
  near.cancel();
  assertEquals(pendingTimers(), 1);
  far.cancel();
  far.cancel();
  assertEquals(pendingTimers(), 0);
  clearInterval(alive);
});
