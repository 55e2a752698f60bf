import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { PlayClock } from "../../src/playback/play-clock.ts";

/** Of steps of a second: seconds of the film delivered, and whether the player waits. */
const stopsOf = (steps: readonly (readonly [deliveredS: number, isWaiting: boolean])[]) => {
  const clock = new PlayClock(0);
  return steps.flatMap(([deliveredS, isWaiting], i) => clock.advance(deliveredS, isWaiting, (i + 1) * 1000) ? [i] : []);
};

test("PlayClock.advance() counts no stop before the picture began, nor while the player has something to play", () => {
  assertEquals(stopsOf([[0, true], [1, true], [0, true], [0, true]]), []);
  assertEquals(stopsOf([[30, true], ...Array(29).fill([0, true])]), []);
});

test("PlayClock.advance() counts a stop when all is played and the player waits, and the next once it went on", () => {
  const drops = [...Array(6).fill([0.3, true]), [2, false]];
  const dry = Array(4).fill([0, true]);
  assertEquals(stopsOf([[2, false], ...dry, ...drops, ...dry]), [2, 15]);
});

test("PlayClock.advance() counts no stop of a player that pauses", () => {
  assertEquals(stopsOf([[5, false], ...Array(60).fill([0, false]), [1, true], [0, false]]), []);
});

test("PlayClock.stops forgets what was minutes ago", () => {
  const clock = new PlayClock(0);
  clock.advance(2, false, 1000);
  clock.advance(0, true, 3000);
  clock.advance(0, true, 4000);
  assertEquals(clock.stops, 1);
  clock.advance(0, true, 400_000);
  assertEquals(clock.stops, 0);
});
