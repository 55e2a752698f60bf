import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { type LiveResult, type LiveScenario, simulateLive } from "./live-sim.ts";

/** Ten viewers find one another, fifty more come within half a minute. */
const CALM = { viewers: 60, seed: 2, arriveFromS: 8, arriveS: 30, durationS: 56 };

function assertWithin(result: LiveResult, bounds: { lagP95S: number; continuity: number; viewerShare: number }): void {
  assert(result.lagP95S <= bounds.lagP95S, `lag ${result.lagP95S}`);
  assert(result.continuity >= bounds.continuity, `continuity ${result.continuity}`);
  assert(result.viewerShare >= bounds.viewerShare, `by viewers ${result.viewerShare}`);
  assertEquals(result.badBytesDelivered, 0);
}

/** The figures that `assertWithin` looks at, as means of some seeds: those of a single one are a matter of chance. */
function simulateSeeds(scenario: LiveScenario, seeds: readonly number[]): LiveResult {
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

test("LiveNode keeps sixty viewers within four seconds of the source, fed by one another", () => {
  const result = simulateLive({ ...CALM, name: "steady" });
  assertEquals(result.joined, 60);
  assertWithin(result, { lagP95S: 4, continuity: 0.995, viewerShare: 0.95 });
});

test("LiveNode keeps viewers playing when a third leaves and comes each minute", () => {
  const result = simulateLive({ ...CALM, name: "churn", churnPerMinute: 0.3 });
  assertWithin(result, { lagP95S: 4, continuity: 0.99, viewerShare: 0.95 });
});

test("LiveNode keeps viewers playing when half of them send nothing", () => {
  const result = simulateSeeds({ ...CALM, name: "zero upload", zeroUpload: 0.5 }, [2, 3, 4]);
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

test("LiveNode gives no poisoned byte to a player, and most of the rest, among 20 % poisoners", () => {
  const result = simulateLive({ ...CALM, name: "poison", poisoners: 0.2 });
  assertWithin(result, { lagP95S: 5, continuity: 0.9, viewerShare: 0.93 });
});

test("LiveNode waits through the silence of its source and recovers within seconds of its return", () => {
  const result = simulateLive({ ...CALM, name: "outage", outageS: [46, 56], durationS: 66 });
  assert(result.recoveryP95S !== null && result.recoveryP95S <= 3, `recovery ${result.recoveryP95S}`);
  assertWithin(result, { lagP95S: 4, continuity: 0.94, viewerShare: 0.95 });
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

for (const toldShare of [0.5, 2]) {
  test(`LiveNode goes by the stream's own bitrate when ${toldShare} of it is announced`, () => {
    const result = simulateLive({ ...CALM, name: "told", toldShare });
    assertEquals(result.joined, 60);
    assertWithin(result, { lagP95S: 4, continuity: 0.995, viewerShare: 0.94 });
  });
}

test("LiveNode recovers within seconds from a slate at the start that made everything seem to carry much", () => {
  const slate = { arriveFromS: 22, durationS: 70, slateS: 8, toldShare: 0.072 };
  const result = simulateSeeds({ ...CALM, ...slate, name: "slate" }, [1, 2, 3]);
  assertEquals(result.joined, 60);
  assertWithin(result, { lagP95S: 4, continuity: 0.975, viewerShare: 0.94 });
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

test("LiveNode keeps viewers playing when nobody can connect to 70 % of them", () => {
  const result = simulateLive({ ...CALM, seed: 1, name: "NAT", closedShare: 0.7, uplinkFactor: 3 });
  assertEquals(result.joined, 60);
  assert(result.joinP95S < 5, `join ${result.joinP95S}`);
  assertWithin(result, { lagP95S: 4, continuity: 0.99, viewerShare: 0.9 });
});

test("LiveNode plays to far more of many closed viewers with usual up-links when holes can be punched for four of five", () => {
  const closed = { ...CALM, viewers: 40, seed: 1, name: "NAT", closedShare: 0.9 };
  const without = simulateLive(closed);
  const punched = simulateLive({ ...closed, punchableShare: 0.8 });
  const playing = [without, punched].map(({ never }) => closed.viewers - never);
  assert(playing[1]! >= 34 && playing[1]! >= 1.5 * playing[0]!, `${playing[0]} without, ${playing[1]} with`);
});

test("LiveNode plays to all when nobody can connect to the source, nor to half of the viewers", () => {
  const result = simulateLive({ ...CALM, seed: 1, name: "NAT", closedShare: 0.5, closedSource: true, uplinkFactor: 2 });
  assertEquals(result.joined, 60);
  assert(result.joinP95S < 5, `join ${result.joinP95S}`);
  assertWithin(result, { lagP95S: 4, continuity: 0.99, viewerShare: 0.9 });
});

test("simulateLive() gives the same figures for the same seed", () => {
  const scenario = { name: "seed", viewers: 15, arriveS: 5, durationS: 20, seed: 7 };
  assertEquals(simulateLive(scenario), simulateLive(scenario));
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

test("LiveNode plays to sixteen viewers whose routers queue its PINGs with blocks and who have 1.5 × the bitrate on average", () => {
  const MBIT = 125_000;
  const mixed = {
    name: "mixed",
    viewers: 16,
    first: 0,
    arriveFromS: 6,
    arriveS: 19.2,
    durationS: 56,
    bytesPerS: 1.88 * MBIT,
    uplinks: [1.5, 0.4, 4, 2.5, 0.8, 8, 2, 3].map((uplink) => uplink * MBIT),
    sourceLine: { bytesPerS: 6 * MBIT, limitBytesPerS: 4 * MBIT },
    routerMs: 300,
  };
  const result = simulateSeeds(mixed, [1, 2, 3]);
  assertEquals(result.joined, 16);
  assert(result.joinP95S <= 3, `join ${result.joinP95S}`);
  assertWithin(result, { lagP95S: 4, continuity: 0.995, viewerShare: 0.6 });
});
