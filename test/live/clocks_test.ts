/** Wall clocks that are wrong: the broadcaster's, a viewer's. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { CaptureClock, UNSAVED_MS } from "../../src/live/broadcast/capture-clock.ts";
import { clockTrouble } from "../../src/live/node/fetch/clock-trouble.ts";
import { Stage } from "./support.ts";

const HOUR_MS = 3_600_000;

/** A clock whose wall time can be set. */
class SetClock {
  wallMs = 1_800_000_000_000;
  #ms = 0;

  now(): number {
    return this.wallMs;
  }

  monotonic(): number {
    return this.#ms;
  }

  pass(ms: number): void {
    this.#ms += ms;
    this.wallMs += ms;
  }
}

test("CaptureClock.now() grows at the speed of time when the wall clock is set, and drifts to it by a hundredth", () => {
  const clock = new SetClock();
  const capture = new CaptureClock(clock, 0);
  const firstMs = capture.now();
  assertEquals(firstMs, clock.wallMs);
  for (const set of [-HOUR_MS, 2 * HOUR_MS]) {
    const beforeMs = capture.now();
    clock.wallMs += set;
    clock.pass(1000);
    assertEquals(capture.now() - beforeMs, 1000 + Math.sign(set) * 10);
  }
  for (let i = 0; i < 200; i++, clock.pass(HOUR_MS)) capture.now();
  assertEquals(capture.now(), clock.wallMs);
});

test("CaptureClock begins with the wall clock, or above all that was stamped before when that has gone back", () => {
  const clock = new SetClock();
  assertEquals(new CaptureClock(clock, clock.wallMs - 500).now(), clock.wallMs);
  const savedMs = clock.wallMs + HOUR_MS;
  assertEquals(new CaptureClock(clock, savedMs).now(), savedMs + UNSAVED_MS);
});

test("CaptureClock.at() gives what was captured before the clock was made the times at which it came", () => {
  const clock = new SetClock();
  const [startMs, startWallMs] = [clock.monotonic(), clock.wallMs];
  clock.pass(3000);
  const capture = new CaptureClock(clock, 0, startMs);
  assertEquals([startMs, startMs + 500, startMs + 2900].map((ms) => capture.at(ms) - startWallMs), [0, 500, 2900]);
  assertEquals(capture.now(), clock.wallMs);
});

test("LiveNode joins a stream that moves on, whatever the wall clocks say, and tells that one of them is wrong", () => {
  for (const ageMs of [HOUR_MS, -HOUR_MS]) {
    const stage = new Stage();
    const peers = [stage.neighbour(), stage.neighbour(), stage.neighbour()];
    for (const peer of peers) stage.window(peer, 10, 21);
    for (let seq = 20; seq <= 24; seq++) {
      for (const peer of peers) stage.header(peer, seq, { ageMs });
      stage.pass(500);
    }
    assert(stage.node.joined);
    assert(/one of the two is wrong/.test(stage.node.clockTrouble ?? ""));
  }
});

test("LiveNode does not join old pieces that are shown all at once", () => {
  const stage = new Stage();
  const peer = stage.neighbour();
  stage.window(peer, 10, 31);
  stage.header(peer, 20, { ageMs: HOUR_MS });
  stage.pass(100);
  for (let seq = 21; seq <= 30; seq++) stage.header(peer, seq, { ageMs: HOUR_MS });
  stage.pass(500);
  assert(!stage.node.joined);
  stage.pass(30_000);
  assert(!stage.node.joined);
});

test("clockTrouble() says whose clock is wrong when neighbours told theirs", () => {
  assertEquals(clockTrouble(20_000, [0, 0, 0]), null);
  assertEquals(clockTrouble(null, [0, 0, 0]), null);
  assertEquals(
    clockTrouble(HOUR_MS, [HOUR_MS]),
    "the broadcaster's clock is 60 min behind this machine's: one of the two is wrong",
  );
  assertEquals(
    clockTrouble(-45_000, [10, -10, HOUR_MS]),
    "the broadcaster's clock is wrong: 45 s ahead of all others",
  );
  assertEquals(
    clockTrouble(HOUR_MS, [-HOUR_MS, -HOUR_MS + 5, 0]),
    "this machine's clock is wrong: 60 min ahead of all others",
  );
});
