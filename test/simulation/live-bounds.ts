/** What the tests of whole live swarms share: a calm swarm, and what its viewers must get. */
import { assert, assertEquals } from "@std/assert";
import { type LiveResult, type LiveScenario, simulateLive } from "./live-sim.ts";

/** Ten viewers find one another, fifty more come within half a minute. */
export const CALM = { viewers: 60, seed: 2, arriveFromS: 8, arriveS: 30, durationS: 56 };

/** The lag in seconds and the shares of the stream that viewers get; and that none of it is false. */
export function assertWithin(
  result: LiveResult,
  bounds: { lagP95S: number; continuity: number; viewerShare: number },
): void {
  assert(result.lagP95S <= bounds.lagP95S, `lag ${result.lagP95S}`);
  assert(result.continuity >= bounds.continuity, `continuity ${result.continuity}`);
  assert(result.viewerShare >= bounds.viewerShare, `by viewers ${result.viewerShare}`);
  assertEquals(result.badBytesDelivered, 0);
}

/** The figures that `assertWithin` looks at, as means of some seeds: those of a single one are a matter of chance. */
export function simulateSeeds(scenario: LiveScenario, seeds: readonly number[]): LiveResult {
  const results = seeds.map((seed) => simulateLive({ ...scenario, seed }));
  const mean = (of: (result: LiveResult) => number) =>
    results.reduce((sum, result) => sum + of(result), 0) / results.length;
  return {
    ...results[0]!,
    joined: mean(({ joined }) => joined),
    joinP95S: mean(({ joinP95S }) => joinP95S),
    lagP95S: mean(({ lagP95S }) => lagP95S),
    continuity: mean(({ continuity }) => continuity),
    viewerShare: mean(({ viewerShare }) => viewerShare),
    badBytesDelivered: mean(({ badBytesDelivered }) => badBytesDelivered),
  };
}
