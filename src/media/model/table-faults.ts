/** Faults that tables show before anything is muxed. */
import type { Column } from "./column.ts";
import { END_SLACK_90K, FaultLedger, NO_FAULTS } from "./faults.ts";
import type { IndexWork } from "../source/work.ts";
import type { SampleTable } from "./timeline.ts";

/** Access units checked between two checks of the clock. */
const STRIDE = 4096;

/** Faults that `tables` already show. `end90k`: the end that the container states, null without one. */
export async function faultsOfTables(
  tables: readonly SampleTable[],
  end90k: number | null,
  work: Pick<IndexWork, "spend">,
): Promise<FaultLedger> {
  const counts = { ...NO_FAULTS };
  for (const { count, offsets, sizes, dts90k, ranBack } of tables) {
    counts.ranBack += ranBack ?? 0;
    if (end90k !== null) counts.beyondEnd += count - firstAfter(dts90k, end90k + END_SLACK_90K);
    for (let i = 1, before = offsets.at(0); i < count; i++) {
      if (i % STRIDE === 0) await work.spend(STRIDE);
      const offset = offsets.at(i);
      if (offset === before && sizes.at(i) > 0) counts.repeated++;
      before = offset;
    }
  }
  return new FaultLedger(counts, tables.map(({ count }) => count));
}

/** Index of the first number above `value` in the ascending `column`. */
function firstAfter(column: Column, value: number): number {
  let low = 0;
  let high = column.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column.at(middle) <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}
