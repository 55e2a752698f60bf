/** A set of trackers that behave as scripted. */
import type { Announce, AnnounceAnswer } from "../../src/discovery/announce.ts";
import { TrackerSet } from "../../src/discovery/tracker-set.ts";
import type { ServerScope } from "../../src/discovery/types.ts";
import { MillraceError } from "../../src/errors.ts";
import type { Logger } from "../../src/ports.ts";
import { FakeClock } from "../support/fake-clock.ts";

export const MINUTE = 60_000;

export interface Call {
  readonly url: string;
  readonly atMs: number;
  readonly event: string;
  readonly announce: Announce;
}

export type Behaviour = (announce: Announce, signal: AbortSignal) => Promise<AnnounceAnswer>;

export function answer(parts: Partial<AnnounceAnswer> = {}): AnnounceAnswer {
  return {
    peers: [{ host: "10.0.0.1", port: 6881 }],
    intervalMs: 30 * MINUTE,
    minIntervalMs: null,
    seeders: 1,
    leechers: 0,
    warning: null,
    trackerId: null,
    ...parts,
  };
}

export const works: Behaviour = () => Promise.resolve(answer());
export const fails: Behaviour = () => Promise.reject(new MillraceError("connection_failed", "refused"));
export const hangs: Behaviour = (_announce, signal) =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

/**
 * A set whose trackers behave as scripted; `random` keeps the order (Fisher–Yates with j = i) and centres jitter
 * elsewhere.
 */
export function setUp(
  behaviours: Record<string, Behaviour>,
  random = () => 0.999,
  leftBytes = 1,
  admitted: (scope: () => ServerScope) => void = () => {},
  onPeers: () => void = () => {},
) {
  const clock = new FakeClock();
  const calls: Call[] = [];
  const found: string[] = [];
  const told: string[] = [];
  const logger: Logger = {
    log: (level, message, fields) => void told.push([level, message, ...Object.values(fields ?? {})].join(" ")),
    child: () => logger,
  };
  const set = new TrackerSet({
    clock,
    log: logger,
    random,
    infohash: new Uint8Array(20),
    peerId: new Uint8Array(20),
    key: 1,
    peerPort: () => 8621,
    state: () => ({ uploadedBytes: 0, downloadedBytes: 0, leftBytes }),
    onPeers: (peers) => {
      onPeers();
      found.push(...peers.map((peer) => peer.host));
    },
    createAnnouncer: (url, scope) => {
      admitted(scope);
      const behaviour = behaviours[url];
      if (behaviour === undefined) return null;
      return (announce, signal) => {
        calls.push({ url, atMs: clock.monotonic(), event: announce.event, announce });
        return behaviour(announce, signal);
      };
    },
  });
  /** Closes the set and lets its deadline pass. */
  const shut = async () => {
    const closing = set.close();
    await clock.advanceAsync(1_500);
    await closing;
  };
  const log = () => calls.map(({ url, atMs, event }) => `${atMs / 1000} ${url} ${event}`.trim());
  return { clock, calls, found, told, set, log, shut };
}
