/**
 * How long a film can be, and how much of it there can be. A file may state any time at no cost, and we would pay for
 * it: with a clock (PCR) ten times a second, tables, and a line of the playlist for each segment.
 */
import { MillraceError } from "../../errors.ts";
import type { TabledTimeline } from "./timeline.ts";

/** Any file may last this long, s (36 h): a day of a still picture takes next to no bytes. */
const SPARE_S = 36 * 3600;
/** Media takes at least this much, bytes/s: a picture that stands still 25, AAC of silence 280. */
const LEAST_BYTES_PER_SECOND = 20;
/** No file lasts longer, s (31 days). */
const MAX_S = 31 * 24 * 3600;

/** Longest time that `bytes` bytes of media can last, s. */
export function longestS(bytes: number): number {
  return Math.min(MAX_S, SPARE_S + bytes / LEAST_BYTES_PER_SECOND);
}

/** Throws `bad_media` where media of `bytes` bytes cannot last `durationS`. */
export function requirePlausible(durationS: number, bytes: number): void {
  if (durationS <= longestS(bytes)) return;
  throw new MillraceError(
    "bad_media",
    `the file says that it lasts ${
      describe(durationS)
    } or more, which its ${bytes} bytes cannot: its times are damaged`,
  );
}

/**
 * Access units may share bytes of the file, but only this many times over: a table is free to name the same bytes again
 * and again.
 */
const MAX_SHARING = 4;

/** Throws `bad_media` if tables name more bytes, or more time, than media of a file of `sourceBytes` can have. */
export function requireProportion({ tables }: TabledTimeline, sourceBytes: number): void {
  let payloadBytes = 0;
  let start90k = Infinity;
  let end90k = -Infinity;
  for (const table of tables) {
    if (table === null) continue;
    payloadBytes += table.payloadBytes;
    start90k = Math.min(start90k, table.dts90k.at(0));
    end90k = Math.max(end90k, table.dts90k.at(table.count - 1));
  }
  if (payloadBytes > sourceBytes * MAX_SHARING) {
    throw new MillraceError("bad_media", "the index names the same bytes many times over: it is damaged");
  }
  requirePlausible((end90k - start90k) / 90_000, payloadBytes);
}

function describe(durationS: number): string {
  return `${Math.min(10_000, Math.round(durationS / 8640) / 10)} days`;
}
