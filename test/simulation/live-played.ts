/** What the players of a simulated broadcast got and lost. */

/** What a player got and lost so far: pieces, and the pieces that would have been played while it stood still. */
export interface Played {
  readonly delivered: number;
  readonly lost: number;
}

/** The share that players got of what they should have, each from one moment to another; null without any. */
export function continuityOf(stretches: Iterable<readonly [Played | null, Played | null]>): number | null {
  let [delivered, lost] = [0, 0];
  for (const [before, after] of stretches) {
    if (before === null || after === null) continue;
    delivered += after.delivered - before.delivered;
    lost += after.lost - before.lost;
  }
  return delivered + lost === 0 ? null : delivered / (delivered + lost);
}

/** The value below which `share` of the values lie; NaN without any. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
}
