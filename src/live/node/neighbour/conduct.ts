/**
 * What a member remembers about neighbours that let it down. The record outlasts the connection, because a liar would
 * otherwise get a clean record by hanging up and dialling again. Only doubts are kept, and they fade: a record delays
 * and ranks, it never excludes.
 */
import type { LivePeer } from "./live-peer.ts";
import { POLICY } from "../policy.ts";

/** Records kept of members that have left: several times the neighbours of a source. */
const MAX_RECORDS = 512;

interface Record {
  readonly barrenTimes: number;
  readonly barrenUntilMs: number;
  readonly failedTrials: number;
  readonly barredUntilMs: number;
}

/** Records of members that have left, by host. */
export class Conduct {
  readonly #records = new Map<string, Record>();

  /**
   * `peer` has connected: it inherits the record of the member that last left from its host. Only the first one does,
   * so that others behind the same NAT are not blamed for it.
   */
  restore(peer: LivePeer): void {
    const { host } = peer.info;
    const record = host === undefined ? undefined : this.#records.get(host);
    if (record === undefined) return;
    this.#records.delete(host!);
    Object.assign(peer, record);
  }

  /** `peer` has left. */
  keep(peer: LivePeer): void {
    const { barrenTimes, barrenUntilMs, failedTrials, barredUntilMs, info: { host } } = peer;
    if (host === undefined || barrenTimes + failedTrials === 0) return;
    this.#records.delete(host);
    this.#records.set(host, { barrenTimes, barrenUntilMs, failedTrials, barredUntilMs });
    if (this.#records.size <= MAX_RECORDS) return;
    for (const oldest of this.#records.keys()) return void this.#records.delete(oldest);
  }
}

/** How often `peer` brought nothing as a parent, less what has been forgiven. */
export function barrenTimes({ barrenTimes, barrenUntilMs }: LivePeer, nowMs: number): number {
  return afterForgiveness(barrenTimes, barrenUntilMs, nowMs);
}

/** How often `peer` let us down, as a parent or as a child of a source, less what has been forgiven. */
export function doubtsOf(peer: LivePeer, nowMs: number): number {
  return barrenTimes(peer, nowMs) + afterForgiveness(peer.failedTrials, peer.barredUntilMs, nowMs);
}

/** `peer` was asked to be a parent and brought nothing, or stopped. It is not asked again for a while. */
export function noteBarren(peer: LivePeer, nowMs: number): void {
  const times = barrenTimes(peer, nowMs);
  peer.barrenTimes = times + 1;
  peer.barrenUntilMs = nowMs + POLICY.avoidMs * (times + 1);
  peer.hasBrought = false;
}

/** Nobody is fed through `peer`, a child of a source. It gets no other trial for a while. */
export function noteFailedTrial(peer: LivePeer, nowMs: number): void {
  const times = afterForgiveness(peer.failedTrials, peer.barredUntilMs, nowMs);
  peer.failedTrials = times + 1;
  peer.barredUntilMs = nowMs + POLICY.avoidMs * (times + 1);
}

/** One of `times` is forgiven for each `POLICY.forgiveMs` since the last one's consequences ended. */
function afterForgiveness(times: number, untilMs: number, nowMs: number): number {
  if (times === 0) return 0;
  return Math.max(0, times - Math.floor(Math.max(0, nowMs - untilMs) / POLICY.forgiveMs));
}
