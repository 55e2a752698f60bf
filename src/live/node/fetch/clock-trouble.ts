/** Decides which wall clock is wrong when capture times and ours differ too much to be the age of the stream. */
import { POLICY } from "../policy.ts";

/** Neighbours whose clocks are needed to find out whether ours or the broadcaster's is wrong: fewer may all be liars. */
const LEAST_NEIGHBOURS = 3;

/**
 * What to report to a user about clocks; null when they agree. `behindMs`: our clock minus the capture time of the edge when it
 * was joined; `neighboursAheadMs`: clocks of neighbours minus ours.
 */
export function clockTrouble(behindMs: number | null, neighboursAheadMs: readonly number[]): string | null {
  if (behindMs === null || Math.abs(behindMs) <= POLICY.staleMs) return null;
  const apart = describe(Math.abs(behindMs));
  const side = behindMs > 0 ? "behind" : "ahead of";
  if (neighboursAheadMs.length < LEAST_NEIGHBOURS) {
    return `the broadcaster's clock is ${apart} ${side} this machine's: one of the two is wrong`;
  }
  const sorted = [...neighboursAheadMs].sort((a, b) => a - b);
  const median = sorted[sorted.length >> 1]!;
  if (Math.abs(median) <= POLICY.staleMs) return `the broadcaster's clock is wrong: ${apart} ${side} all others`;
  return `this machine's clock is wrong: ${describe(Math.abs(median))} ${
    median > 0 ? "behind" : "ahead of"
  } all others`;
}

function describe(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  return minutes < 2 ? `${Math.round(ms / 1000)} s` : `${minutes} min`;
}
