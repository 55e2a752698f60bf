import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { simulateLive } from "./live-sim.ts";

test("LiveNode keeps sixty viewers within seconds of the source, fed by one another", () => {
  const result = simulateLive({ name: "steady", viewers: 60, arriveS: 30, durationS: 55 });
  assertEquals(result.joined, 60);
  assert(result.continuity >= 0.995, `continuity ${result.continuity}`);
  assert(result.viewerShare >= 0.95, `share ${result.viewerShare}`);
  assert(result.lagP95S <= 6, `lag ${result.lagP95S}`);
  assertEquals(result.badBytesDelivered, 0);
});

test("LiveNode keeps viewers playing when a third leaves and comes each minute", () => {
  const result = simulateLive({ name: "churn", viewers: 50, arriveS: 20, durationS: 55, churnPerMinute: 0.3 });
  assert(result.continuity >= 0.98, `continuity ${result.continuity}`);
  assert(result.viewerShare >= 0.95, `share ${result.viewerShare}`);
});

test("LiveNode gives no poisoned byte to a player, whatever else poisoners reach", () => {
  const result = simulateLive({ name: "poison", viewers: 40, arriveS: 10, durationS: 30, poisoners: 0.2 });
  assertEquals(result.badBytesDelivered, 0);
});

test("simulateLive() gives the same figures for the same seed", () => {
  const scenario = { name: "seed", viewers: 15, arriveS: 5, durationS: 20, seed: 7 };
  assertEquals(simulateLive(scenario), simulateLive(scenario));
});
