import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { simulateStreamers } from "./streamer-swarm.ts";

const SMALL = { viewers: 20, filmS: 60, order: "engine" } as const;

test("Scheduler asks a seed for different pieces when all viewers are at one place, so that the swarm is not starved", () => {
  const spread = simulateStreamers(SMALL);
  const inOrder = simulateStreamers({ ...SMALL, order: "in order" });
  assertEquals(spread.finished, SMALL.viewers);
  assert(spread.startP95S < 5, `starts within ${spread.startP95S} s`);
  // The seeder alone needs 50 s for one copy; asked for the next piece by everybody it sends each one several times.
  assert(spread.secondCopyS! < 150, `second copy after ${spread.secondCopyS} s`);
  assert(inOrder.secondCopyS === null || inOrder.secondCopyS > 1.5 * spread.secondCopyS!, `${inOrder.secondCopyS} s`);
  assert(spread.duplicateShare < 0.05, `${spread.duplicateShare} twice`);
});
