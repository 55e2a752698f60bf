import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { assertWithin } from "./live-bounds.ts";
import { simulateLive } from "./live-sim.ts";

const MBIT = 125_000;
const LINES = {
  name: "lossy lines",
  seed: 22,
  viewers: 5,
  first: 0,
  arriveFromS: 4,
  arriveS: 4,
  durationS: 22,
  bytesPerS: 1.7 * MBIT,
  uplinks: [4 * MBIT],
  sourceLine: { bytesPerS: 8 * MBIT },
  routerMs: 250,
  latencyMs: [16, 80],
} as const;

test("simulateLive() has everything come later when packets are lost, and the same figures for the same seed", () => {
  const clean = simulateLive({ ...LINES, packetLoss: { share: 0 } });
  const lossy = simulateLive({ ...LINES, packetLoss: { share: 0.01 } });
  assertEquals([clean.joined, lossy.joined], [5, 5]);
  assert(clean.continuity > 0.995, `${clean.continuity}`);
  assert(lossy.lagP95S > clean.lagP95S && lossy.continuity < clean.continuity, `${lossy.lagP95S}, ${lossy.continuity}`);
  assertEquals(simulateLive({ ...LINES, packetLoss: { share: 0.01 } }), lossy);
});

test("LiveNode takes its line for no slower because connections lose packets, and plays to twelve viewers for most of a minute", () => {
  const lossy = { ...LINES, viewers: 12, arriveFromS: 6, arriveS: 14.4, durationS: 59, packetLoss: { share: 0.01 } };
  const result = simulateLive(lossy);
  assertEquals(result.joined, 12);
  assertWithin(result, { lagP95S: 3, continuity: 0.98, viewerShare: 0.6 });
});
