/** Computes when an external playlist is fetched next: section 2.9, `update_interval` and `next_update`. */
import { MillraceError } from "../errors.ts";

/** Shortest interval, seconds; 0 means that updates are started by hand only. */
const MIN_UPDATE_INTERVAL_S = 60;
/** Longest interval, seconds: a year. */
const MAX_UPDATE_INTERVAL_S = 365 * 86_400;
/** Longest wait after failures, seconds, unless the interval itself is longer. */
const MAX_BACKOFF_S = 6 * 3600;
/** Largest random part of the wait, so that engines started together do not stay together. */
const JITTER = 0.1;

/** Throws `invalid_argument` unless `seconds` is 0 or an interval within the bounds. */
export function requireUpdateInterval(seconds: number): void {
  if (seconds === 0) return;
  if (Number.isInteger(seconds) && seconds >= MIN_UPDATE_INTERVAL_S && seconds <= MAX_UPDATE_INTERVAL_S) return;
  throw new MillraceError(
    "invalid_argument",
    `invalid update_interval: 0 or ${MIN_UPDATE_INTERVAL_S} to ${MAX_UPDATE_INTERVAL_S} seconds are expected`,
  );
}

/** Latest time that `nextUpdateAt` returns at `now`: a later one was stored by a clock that was ahead. */
export function latestUpdateAt(now: number, intervalSeconds: number, failures: number): number {
  return Math.ceil(now + longestWait(intervalSeconds, failures) * (1 + JITTER));
}

function longestWait(intervalSeconds: number, failures: number): number {
  return failures === 0 ? intervalSeconds : Math.max(MAX_BACKOFF_S, intervalSeconds);
}

/**
 * Unix seconds of the next fetch after one that ended at `now`; 0 for none. Each of `failures` in a row doubles the wait,
 * from one minute up to six hours, or up to the interval if that is longer. `random` is in [0, 1): up to a tenth of the wait
 * is added.
 */
export function nextUpdateAt(now: number, intervalSeconds: number, failures: number, random: number): number {
  if (intervalSeconds === 0) return 0;
  const longest = longestWait(intervalSeconds, failures);
  const wait = failures === 0 ? intervalSeconds : Math.min(longest, MIN_UPDATE_INTERVAL_S * 2 ** (failures - 1));
  return Math.ceil(now + wait * (1 + JITTER * random));
}
