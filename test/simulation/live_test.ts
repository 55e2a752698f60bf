import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { assertWithin, CALM } from "./live-bounds.ts";
import { simulateLive } from "./live-sim.ts";

test("LiveNode keeps sixty viewers within four seconds of the source, fed by one another", () => {
  const result = simulateLive({ ...CALM, name: "steady" });
  assertEquals(result.joined, 60);
  assertWithin(result, { lagP95S: 4, continuity: 0.995, viewerShare: 0.95 });
});

test("LiveNode takes a crowd of five times its number within ten seconds", () => {
  const result = simulateLive({ ...CALM, name: "flash", arriveS: 10, durationS: 40 });
  assertEquals(result.joined, 60);
  assertWithin(result, { lagP95S: 4, continuity: 0.97, viewerShare: 0.95 });
});

test("LiveNode serves as many as it has proved to carry when its line takes all at once and is never measured", () => {
  const scenario = { viewers: 14, first: 14, seed: 4, arriveS: 1, durationS: 30, bytesPerS: 125_000 };
  const result = simulateLive({ ...scenario, name: "unmeasured", unmeasured: true });
  assertEquals(result.joined, 14);
  assert(result.joinP95S < 4, `join ${result.joinP95S}`);
  assertWithin(result, { lagP95S: 4, continuity: 0.995, viewerShare: 0.8 });
});

test("LiveNode stands still for three seconds at most when a third vanishes without closing a connection", () => {
  const scenario = { viewers: 40, seed: 2, arriveS: 15, durationS: 55, silentDeath: { atS: 40, share: 0.3 } };
  const result = simulateLive({ ...scenario, name: "vanish" });
  assert(result.gapP95S !== null && result.gapP95S <= 3, `gap ${result.gapP95S}`);
  assertWithin(result, { lagP95S: 4, continuity: 0.93, viewerShare: 0.9 });
});

test("LiveNode begins at random access points ten seconds apart without waiting for the next, and gives all up to the edge", () => {
  const result = simulateLive({ name: "groups", viewers: 20, seed: 1, arriveS: 20, durationS: 50, groupMs: 10_000 });
  assertEquals(result.joined, 20);
  // Those that find no point wait for the next one, for eleven seconds.
  assert(result.joinP95S < 8, `join ${result.joinP95S}`);
  assert(result.givenLagP95S < 2, `given ${result.givenLagP95S}`);
  // A player that never plays faster stays as far behind as the point was old where it began.
  assertWithin(result, { lagP95S: 12, continuity: 0.95, viewerShare: 0.8 });
});

test("LiveNode plays to far more of many closed viewers with usual up-links when holes can be punched for four of five", () => {
  const closed = { ...CALM, viewers: 40, seed: 1, name: "NAT", closedShare: 0.9 };
  const without = simulateLive(closed);
  const punched = simulateLive({ ...closed, punchableShare: 0.8 });
  const playing = [without, punched].map(({ never }) => closed.viewers - never);
  assert(playing[1]! >= 34 && playing[1]! >= 1.5 * playing[0]!, `${playing[0]} without, ${playing[1]} with`);
});

test("simulateLive() gives the same figures for the same seed", () => {
  const scenario = { name: "seed", viewers: 15, arriveS: 5, durationS: 20, seed: 7 };
  assertEquals(simulateLive(scenario), simulateLive(scenario));
});
