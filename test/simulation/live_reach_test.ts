import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { assertWithin, CALM, simulateSeeds } from "./live-bounds.ts";
import { simulateLive } from "./live-sim.ts";

test("LiveNode keeps viewers playing when a third leaves and comes each minute", () => {
  const result = simulateLive({ ...CALM, name: "churn", churnPerMinute: 0.3 });
  assertWithin(result, { lagP95S: 4, continuity: 0.99, viewerShare: 0.95 });
});

test("LiveNode waits through the silence of its source and recovers within seconds of its return", () => {
  const result = simulateLive({ ...CALM, name: "outage", outageS: [46, 56], durationS: 66 });
  assert(result.recoveryP95S !== null && result.recoveryP95S <= 3, `recovery ${result.recoveryP95S}`);
  assertWithin(result, { lagP95S: 4, continuity: 0.94, viewerShare: 0.95 });
});

test("LiveNode keeps viewers playing when nobody can connect to 70 % of them", () => {
  const result = simulateLive({ ...CALM, seed: 1, name: "NAT", closedShare: 0.7, uplinkFactor: 3 });
  assertEquals(result.joined, 60);
  assert(result.joinP95S < 5, `join ${result.joinP95S}`);
  assertWithin(result, { lagP95S: 4, continuity: 0.99, viewerShare: 0.9 });
});

test("LiveNode plays to all when nobody can connect to the source, nor to half of the viewers", () => {
  const result = simulateLive({ ...CALM, seed: 1, name: "NAT", closedShare: 0.5, closedSource: true, uplinkFactor: 2 });
  assertEquals(result.joined, 60);
  assert(result.joinP95S < 5, `join ${result.joinP95S}`);
  assertWithin(result, { lagP95S: 4, continuity: 0.99, viewerShare: 0.9 });
});

test("LiveNode plays to viewers in four parts of the world whose routers queue packets and drop them", () => {
  const result = simulateLive({ ...CALM, viewers: 40, name: "regions", routerMs: 300, hasRegions: true });
  assertEquals(result.joined, 40);
  assertWithin(result, { lagP95S: 4, continuity: 0.98, viewerShare: 0.9 });
});

test("LiveNode plays to sixteen viewers when each connection loses 2 % of its packets and so carries less than a line", () => {
  const MBIT = 125_000;
  const lossy = {
    name: "loss",
    viewers: 16,
    first: 0,
    arriveFromS: 5,
    arriveS: 19,
    durationS: 70,
    bytesPerS: 1.88 * MBIT,
    uplinks: [20 * MBIT],
    sourceLine: { bytesPerS: 6 * MBIT, limitBytesPerS: 4 * MBIT },
    latencyMs: [15, 40],
    routerMs: 300,
    loss: 0.02,
  } as const;
  // In these a viewer with a narrow connection takes most of the source's places.
  const result = simulateSeeds(lossy, [6, 9, 16]);
  assertEquals(result.joined, 16);
  assert(result.joinP95S <= 4, `join ${result.joinP95S}`);
  assertWithin(result, { lagP95S: 3, continuity: 0.995, viewerShare: 0.6 });
});
