import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { assertWithin, CALM, simulateSeeds } from "./live-bounds.ts";
import { simulateLive } from "./live-sim.ts";

test("LiveNode keeps viewers playing when half of them send nothing", () => {
  const result = simulateSeeds({ ...CALM, name: "zero upload", zeroUpload: 0.5 }, [2, 3, 4]);
  assertWithin(result, { lagP95S: 4, continuity: 0.995, viewerShare: 0.95 });
});

test("LiveNode gives no poisoned byte to a player, and most of the rest, among 20 % poisoners", () => {
  const result = simulateLive({ ...CALM, name: "poison", poisoners: 0.2 });
  assertWithin(result, { lagP95S: 5, continuity: 0.9, viewerShare: 0.93 });
});

test("LiveNode plays whatever wall clocks say", () => {
  const result = simulateLive({ ...CALM, name: "clocks", clocksWrongMs: 3_600_000 });
  assertEquals([result.joined, result.never], [60, 0]);
  assertWithin(result, { lagP95S: 4, continuity: 0.99, viewerShare: 0.95 });
});

for (
  const [kind, continuity] of [["closed", 0.97], ["sinkhole", 0.97], ["flapper", 0.93], ["pathpoison", 0.97]] as const
) {
  test(`LiveNode keeps viewers playing among 5 % liars of the kind ${kind} that know the source`, () => {
    const result = simulateLive({ ...CALM, name: kind, liars: { kind, share: 0.05 }, durationS: 66 });
    assertEquals(result.never, 0);
    assertWithin(result, { lagP95S: 4.5, continuity, viewerShare: 0.94 });
  });
}
