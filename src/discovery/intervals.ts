/** Decides when to ask a tracker again. */
import type { AnnounceAnswer } from "./announce.ts";

/** BEP 3 leaves the interval to the tracker; this is used when it names none. */
const DEFAULT_INTERVAL_MS = 30 * 60_000;

/** Lower bound: a tracker that asks for less is misconfigured and would be hammered. */
const LEAST_INTERVAL_MS = 60_000;

/** Upper bound: a tracker that asks for more would forget us (most drop peers after an hour or two) and hide new peers. */
const MOST_INTERVAL_MS = 2 * 60 * 60_000;

/** Shortest time between announces on demand when the tracker names no `min interval`; the commonly used value. */
const DEFAULT_MIN_INTERVAL_MS = 5 * 60_000;

/** The same after a reply without peers: the other end may be just starting, and a reply of 30 bytes is cheap. */
const LONELY_MIN_INTERVAL_MS = 60_000;

const FIRST_BACKOFF_MS = 15_000;
const MOST_BACKOFF_MS = 30 * 60_000;

/** Shortest time between two tries of a failing tracker, when the swarm is short of peers. */
export const FAILING_MIN_INTERVAL_MS = 60_000;

/** The next regular announce and the earliest one on demand, milliseconds after the reply. */
export interface AnnounceSchedule {
  readonly intervalMs: number;
  readonly minIntervalMs: number;
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}

/** The schedule after a reply with any values. The earliest time never comes after the regular one. */
export function scheduleAfter(
  answer: Pick<AnnounceAnswer, "intervalMs" | "minIntervalMs" | "peers">,
): AnnounceSchedule {
  const intervalMs = clamp(answer.intervalMs ?? DEFAULT_INTERVAL_MS, LEAST_INTERVAL_MS, MOST_INTERVAL_MS);
  const fallback = answer.peers.length === 0 ? LONELY_MIN_INTERVAL_MS : DEFAULT_MIN_INTERVAL_MS;
  const minIntervalMs = clamp(answer.minIntervalMs ?? fallback, LEAST_INTERVAL_MS, intervalMs);
  return { intervalMs, minIntervalMs };
}

/**
 * Delay after the `failures`th failure in a row (≥ 1): 15 s doubling to 30 min, each spread over 75–125 % so that clients
 * do not return to a recovering tracker together. `random` is in [0, 1).
 */
export function backoffMs(failures: number, random: () => number): number {
  const base = Math.min(MOST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(failures - 1, 20));
  return base * (0.75 + random() * 0.5);
}
