/**
 * Which members keep a place next to the source. Uplinks and depths are only claims: one member with false claims that
 * passes nothing on would stop whole trees from there. So a place at the source is earned by passing on.
 * A child keeps its place only if others are fed through it (`Vouchers`). Newcomers are tried beside the existing children,
 * one substream each, so that a liar costs nothing but the trial.
 */
import type { Conduct } from "../neighbour/conduct.ts";
import { Census } from "./census.ts";
import type { LivePeer } from "../neighbour/live-peer.ts";
import { UNFED } from "../neighbour/place.ts";
import { POLICY } from "../policy.ts";
import type { Seats } from "./seats.ts";
import { Vouchers } from "./vouchers.ts";

/** What the places at a source depend on. */
export interface SourcePlacesOptions {
  readonly seats: Seats;
  readonly random: () => number;
  readonly peers: () => Iterable<LivePeer>;
  readonly conduct: Conduct;
  /** Believed uplink, bytes/s. */
  readonly upOf: (peer: LivePeer) => number;
  /** How long a block that is pushed now waits for the uplink, ms. */
  readonly pushDelayMs: () => number;
  /** Uplink of a member that is worth a place, bytes/s. */
  readonly leastUpBytesPerS: () => number;
}

/** How a subscription gets a place when none is free: on trial, or in the place of another child. */
export type Entry = { readonly isTrial: true } | { readonly isTrial: false; readonly victim: LivePeer };

/** The places at a source. */
export class SourcePlaces {
  readonly #options: SourcePlacesOptions;
  readonly #census: Census;
  /** What neighbours show of those that feed them. */
  readonly vouchers: Vouchers;

  constructor(options: SourcePlacesOptions) {
    this.#options = options;
    this.#census = new Census(options.seats.substreams);
    this.vouchers = new Vouchers(options.seats, options.random, this.#census);
  }

  /** True when many neighbours lack `substream`. */
  isLacked(substream: number): boolean {
    return this.#census.isLacked(substream);
  }

  /**
   * True when `peer` should leave a place on `substream`, which many lack, to the members that have long fed others on other
   * substreams.
   */
  isKeptFor(peer: LivePeer, substream: number, nowMs: number): boolean {
    const sinceMs = this.#census.lackedSinceMs(substream);
    if (sinceMs === Infinity || nowMs - sinceMs >= POLICY.headStartMs || this.#isHead(peer, nowMs)) return false;
    for (const other of this.#options.peers()) {
      if (!this.#seats.has(other, substream) && this.#isHead(other, nowMs)) return true;
    }
    return false;
  }

  /** True when others have been fed through `peer` for long, and it never failed. */
  #isHead(peer: LivePeer, nowMs: number): boolean {
    if (this.#options.conduct.hasFailed(peer) || this.#options.upOf(peer) < this.#options.leastUpBytesPerS()) {
      return false;
    }
    return this.vouchers.isHead(peer, nowMs);
  }

  /** True when a child had time enough to be of use; those through whom some are fed, but too few, have longer. */
  #isSettled(peer: LivePeer, substream: number, nowMs: number): boolean {
    const lastedMs = nowMs - (this.#seats.of(peer, substream)?.sinceMs ?? 0);
    return lastedMs >= (this.vouchers.isShown(peer, substream, nowMs) ? POLICY.longTrialMs : POLICY.trialMs);
  }

  /** True when `peer` has this place on trial. */
  isOnTrial(peer: LivePeer, substream: number): boolean {
    return this.#seats.of(peer, substream)?.isOnTrial === true;
  }

  /** `peer` lost or left the places of `mask`. */
  left(peer: LivePeer, mask: number): void {
    this.vouchers.left(peer, mask);
  }

  /** How `peer` can have a place on `substream`; null when it can't. */
  entry(peer: LivePeer, substream: number, nowMs: number): Entry | null {
    const up = this.#options.upOf(peer);
    if (this.#options.conduct.isBarred(peer, nowMs)) return null;
    const idle = this.#idlest(substream, nowMs);
    const isDoubtful = this.#unvouched(peer, nowMs) >= POLICY.unvouchedPlaces;
    // While few members are there nobody is vouched for: one that claims much would take all places from those that came first.
    const mayTakeIdle = idle !== null && up >= idle.leastUp &&
      (!isDoubtful || this.#options.upOf(idle.child) < this.#options.leastUpBytesPerS());
    if (mayTakeIdle) return { isTrial: false, victim: idle.child };
    // Nobody takes a useful place before it has shown that it is worth one.
    if (isDoubtful) return null;
    const weakest = this.#replaceable(substream, nowMs);
    if (weakest === undefined || up < this.#upToReplace(weakest)) return null;
    if (weakest !== null && this.#vouchedCount(substream, nowMs) > 1) return { isTrial: false, victim: weakest };
    return this.#trials < POLICY.trials ? { isTrial: true } : null;
  }

  /** Least uplink with which a newcomer has a place on `substream`, bytes/s; `Infinity` when it has none. */
  leastUpFor(substream: number, nowMs: number): number {
    const weakest = this.#replaceable(substream, nowMs);
    const isOpen = weakest !== undefined && (this.#trials < POLICY.trials || this.#vouchedCount(substream, nowMs) > 1);
    return Math.min(
      this.#idlest(substream, nowMs)?.leastUp ?? Infinity,
      isOpen ? this.#upToReplace(weakest) : Infinity,
    );
  }

  /**
   * True when all children of `substream`, without `victim`, are of the network of `peer`, while a neighbour of another one
   * could be a child: whoever owns that network would own the tree.
   */
  isOneSided(peer: LivePeer, substream: number, victim: LivePeer | null): boolean {
    const { subnet } = peer;
    if (subnet === null) return false;
    let count = 0;
    for (const child of this.#childrenOf(substream)) {
      if (child === victim) continue;
      if (child.subnet !== subnet) return false;
      count++;
    }
    return count > 0 && this.#hasCandidateBeyond(subnet, substream);
  }

  /** True when a neighbour of another network than `subnet` that can pass `substream` on is no child of it yet. */
  #hasCandidateBeyond(subnet: string, substream: number): boolean {
    const leastUp = this.#options.leastUpBytesPerS();
    for (const other of this.#options.peers()) {
      if (other.subnet === subnet || this.#seats.has(other, substream)) continue;
      if (this.#options.upOf(other) >= leastUp) return true;
    }
    return false;
  }

  /**
   * Ends trials. `won` has the places that were earned, each with the child that yields (null when there is room);
   * `failed` has those through which nobody is fed. Once a tick.
   */
  tick(nowMs: number): { won: [LivePeer, number, LivePeer | null][]; failed: [LivePeer, number][] } {
    const won: [LivePeer, number, LivePeer | null][] = [];
    const failed: [LivePeer, number][] = [];
    const { peers, conduct } = this.#options;
    this.#census.take(peers(), nowMs);
    this.vouchers.observe(peers, nowMs);
    for (const peer of peers()) {
      let hasLapsed = false;
      for (let substream = 0; substream < this.#seats.substreams; substream++) {
        const seat = this.#seats.of(peer, substream);
        if (seat === undefined) continue;
        const isOver = this.vouchers.follow(peer, substream, nowMs);
        const isVouched = this.vouchers.isVouched(peer, substream, nowMs);
        if (!seat.isOnTrial) hasLapsed ||= isOver;
        else if (isVouched && this.#hasWon(peer, substream, nowMs)) {
          seat.isOnTrial = false;
          won.push([peer, substream, this.#weakest(substream, nowMs, peer)]);
        } else if (!isVouched && this.#isSettled(peer, substream, nowMs)) {
          seat.isOnTrial = false;
          conduct.noteFailedTrial(peer, nowMs);
          failed.push([peer, substream]);
        }
      }
      // Others were fed through it, and no longer are: it is tried again, but later.
      if (hasLapsed && this.vouchers.isIdle(peer, nowMs)) conduct.noteFailedTrial(peer, nowMs);
    }
    return { won, failed };
  }

  /** True when `peer`, through which others are fed, need not be on trial any longer. */
  #hasWon(peer: LivePeer, substream: number, nowMs: number): boolean {
    if (this.vouchers.isProven(peer, substream, nowMs)) return true;
    const weakest = this.#weakest(substream, nowMs, peer);
    return !this.#options.conduct.hasFailed(peer) &&
      (weakest === null || !this.vouchers.isProven(weakest, substream, nowMs));
  }

  /**
   * The most easily replaced child through which nobody is fed, and the uplink that replaces it: little once the child
   * has had time enough to be of use, otherwise more than it reports itself.
   */
  #idlest(substream: number, nowMs: number): { child: LivePeer; leastUp: number } | null {
    const isBusy = this.#options.pushDelayMs() > POLICY.busyMs;
    let found: { child: LivePeer; leastUp: number } | null = null;
    const innocent = this.#innocent(substream, nowMs);
    for (const child of this.#childrenOf(substream)) {
      if (child === innocent || this.vouchers.isVouched(child, substream, nowMs)) continue;
      const up = this.#options.upOf(child);
      const sinceMs = nowMs - this.#seats.of(child, substream)!.sinceMs;
      const isSettled = this.#isSettled(child, substream, nowMs);
      if (isBusy && !isSettled) continue;
      const leastUp = isSettled
        ? Math.min(up, this.#options.leastUpBytesPerS())
        : (sinceMs < POLICY.tenureMs ? POLICY.manyTimes : POLICY.strongerBy) * up;
      if (found === null || leastUp < found.leastUp) found = { child, leastUp };
    }
    return found;
  }

  /**
   * The only child of `substream` when it can pass on and nobody lacks the substream: while few members are there, nobody
   * need be fed through it. Another is tried beside it before it yields. null: there is none.
   */
  #innocent(substream: number, nowMs: number): LivePeer | null {
    const [only, ...more] = this.#childrenOf(substream);
    const { peers, upOf, leastUpBytesPerS, conduct } = this.#options;
    if (only === undefined || more.length > 0 || conduct.hasFailed(only)) return null;
    if (upOf(only) < leastUpBytesPerS()) return null;
    for (const { place, connectedMs } of peers()) {
      const isLacking = place !== null && place.depths[substream] === UNFED && nowMs - connectedMs >= POLICY.settleMs;
      if (isLacking) return null;
    }
    return only;
  }

  /**
   * The child that a stronger member replaces. null: there is no child; undefined: moving children would lengthen a
   * queue.
   */
  #replaceable(substream: number, nowMs: number): LivePeer | null | undefined {
    return this.#options.pushDelayMs() > POLICY.busyMs ? undefined : this.#weakest(substream, nowMs);
  }

  #upToReplace(weakest: LivePeer | null): number {
    const { upOf, leastUpBytesPerS } = this.#options;
    return Math.max(leastUpBytesPerS(), weakest === null ? 0 : POLICY.strongerBy * upOf(weakest));
  }

  /**
   * The child with the weakest claim to its place, without those on trial: unvouched ones, then those through whom others have
   * not been fed for long, then by uplink. One that passes on by fits and starts would otherwise take the place of
   * one that always has, and soon leave the whole tree without blocks.
   */
  #weakest(substream: number, nowMs: number, except: LivePeer | null = null): LivePeer | null {
    let found: LivePeer | null = null;
    let least = Infinity;
    for (const child of this.#childrenOf(substream)) {
      if (child === except || this.isOnTrial(child, substream)) continue;
      const ranks = Number(this.vouchers.isVouched(child, substream, nowMs)) +
        Number(this.vouchers.isProven(child, substream, nowMs));
      const worth = this.#options.upOf(child) + 1e12 * ranks;
      if (worth < least) [found, least] = [child, worth];
    }
    return found;
  }

  /** Places of `peer` that nobody vouches for. */
  #unvouched(peer: LivePeer, nowMs: number): number {
    let count = 0;
    for (let substream = 0; substream < this.#seats.substreams; substream++) {
      if (this.#seats.has(peer, substream) && !this.vouchers.isVouched(peer, substream, nowMs)) count++;
    }
    return count;
  }

  /** Children on `substream` through which others are fed, without those on trial, which may stop as soon as they have won. */
  #vouchedCount(substream: number, nowMs: number): number {
    let count = 0;
    for (const child of this.#childrenOf(substream)) {
      if (!this.isOnTrial(child, substream) && this.vouchers.isVouched(child, substream, nowMs)) count++;
    }
    return count;
  }

  get #trials(): number {
    let count = 0;
    for (const peer of this.#options.peers()) {
      for (let substream = 0; substream < this.#seats.substreams; substream++) {
        if (this.isOnTrial(peer, substream)) count++;
      }
    }
    return count;
  }

  *#childrenOf(substream: number): Iterable<LivePeer> {
    for (const peer of this.#options.peers()) if (this.#seats.has(peer, substream)) yield peer;
  }

  get #seats(): Seats {
    return this.#options.seats;
  }
}
