/**
 * What a member remembers about neighbours that let it down. The record outlasts the connection, because a liar would
 * otherwise get a clean record by hanging up and dialling again. Only doubts are kept, and they fade: a record delays
 * and ranks, it never excludes.
 */
import type { LivePeer } from "./live-peer.ts";
import { Notes } from "./notes.ts";
import { POLICY } from "../policy.ts";

/** Records kept of members that have left: several times the neighbours of a source. */
const MAX_RECORDS = 512;

/** What outlasts the connection. Times are monotonic ms. */
interface Doubts {
  /** How often it was asked to be parent and brought nothing, and until when it isn't asked again. */
  barrenTimes: number;
  barrenUntilMs: number;
  /** How often nobody was fed through it as a child of a source, and until when it gets no other trial. */
  failedTrials: number;
  barredUntilMs: number;
}

/** What is known about a neighbour. */
export interface ConductRecord extends Doubts {
  /** The neighbour has delivered something as a parent. */
  hasBrought: boolean;
  /** Monotonic ms until which it is asked for nothing: it served a request too late. */
  snubbedUntilMs: number;
}

/** Records of neighbours, and of members that have left, by host. */
export class Conduct {
  readonly #records = new Notes<ConductRecord>(() => ({
    barrenTimes: 0,
    barrenUntilMs: -Infinity,
    failedTrials: 0,
    barredUntilMs: -Infinity,
    hasBrought: false,
    snubbedUntilMs: -Infinity,
  }));
  readonly #left = new Map<string, Doubts>();

  /**
   * `peer` has connected: it inherits the record of the member that last left from its host. Only the first one does,
   * so that others behind the same NAT are not blamed for it.
   */
  restore(peer: LivePeer): void {
    const { host } = peer.info;
    const doubts = host === undefined ? undefined : this.#left.get(host);
    if (doubts === undefined) return;
    this.#left.delete(host!);
    Object.assign(this.#records.of(peer), doubts);
  }

  /** `peer` has left. */
  keep(peer: LivePeer): void {
    const { barrenTimes, barrenUntilMs, failedTrials, barredUntilMs } = this.#records.of(peer);
    const { host } = peer.info;
    if (host === undefined || barrenTimes + failedTrials === 0) return;
    this.#left.delete(host);
    this.#left.set(host, { barrenTimes, barrenUntilMs, failedTrials, barredUntilMs });
    if (this.#left.size <= MAX_RECORDS) return;
    for (const oldest of this.#left.keys()) return void this.#left.delete(oldest);
  }

  /** What is known about `peer`. */
  of(peer: LivePeer): Readonly<ConductRecord> {
    return this.#records.of(peer);
  }

  /** How often `peer` brought nothing as a parent, less what has been forgiven. */
  barrenTimes(peer: LivePeer, nowMs: number): number {
    const { barrenTimes, barrenUntilMs } = this.#records.of(peer);
    return afterForgiveness(barrenTimes, barrenUntilMs, nowMs);
  }

  /** True while `peer`, which brought nothing as a parent, is not asked again. */
  isBarren(peer: LivePeer, nowMs: number): boolean {
    return nowMs < this.#records.of(peer).barrenUntilMs;
  }

  /** True when `peer` has brought something as a parent, and did not stop since. */
  hasBrought(peer: LivePeer): boolean {
    return this.#records.of(peer).hasBrought;
  }

  /** `peer` has brought something as a parent. */
  noteBrought(peer: LivePeer): void {
    this.#records.of(peer).hasBrought = true;
  }

  /** How often `peer` let us down, as a parent or as a child of a source, less what has been forgiven. */
  doubts(peer: LivePeer, nowMs: number): number {
    const { failedTrials, barredUntilMs } = this.#records.of(peer);
    return this.barrenTimes(peer, nowMs) + afterForgiveness(failedTrials, barredUntilMs, nowMs);
  }

  /** `peer` was asked to be a parent and brought nothing, or stopped. It is not asked again for a while. */
  noteBarren(peer: LivePeer, nowMs: number): void {
    const record = this.#records.of(peer);
    const times = this.barrenTimes(peer, nowMs);
    record.barrenTimes = times + 1;
    record.barrenUntilMs = nowMs + POLICY.avoidMs * (times + 1);
    record.hasBrought = false;
  }

  /** Nobody is fed through `peer`, a child of a source. It gets no other trial for a while. */
  noteFailedTrial(peer: LivePeer, nowMs: number): void {
    const record = this.#records.of(peer);
    const times = afterForgiveness(record.failedTrials, record.barredUntilMs, nowMs);
    record.failedTrials = times + 1;
    record.barredUntilMs = nowMs + POLICY.avoidMs * (times + 1);
  }

  /** True when a trial of `peer` ever failed. */
  hasFailed(peer: LivePeer): boolean {
    return this.#records.of(peer).failedTrials > 0;
  }

  /** True while `peer` gets no other trial. */
  isBarred(peer: LivePeer, nowMs: number): boolean {
    return nowMs < this.#records.of(peer).barredUntilMs;
  }

  /** `peer` served a request too late: it is asked for nothing for a while. */
  snub(peer: LivePeer, nowMs: number): void {
    this.#records.of(peer).snubbedUntilMs = nowMs + POLICY.avoidMs;
  }

  /** True while `peer` is asked for nothing. */
  isSnubbed(peer: LivePeer, nowMs: number): boolean {
    return nowMs < this.#records.of(peer).snubbedUntilMs;
  }
}

/** One of `times` is forgiven for each `POLICY.forgiveMs` since the last one's consequences ended. */
function afterForgiveness(times: number, untilMs: number, nowMs: number): number {
  if (times === 0) return 0;
  return Math.max(0, times - Math.floor(Math.max(0, nowMs - untilMs) / POLICY.forgiveMs));
}
