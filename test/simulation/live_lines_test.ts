import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { assertWithin, CALM, simulateSeeds } from "./live-bounds.ts";
import { simulateLive } from "./live-sim.ts";

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
