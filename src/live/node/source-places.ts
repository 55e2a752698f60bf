/**
 * Which members keep a place next to the source. Uplinks and depths are only claims: one member with false claims that
 * passes nothing on would stop whole trees from there. So a place at the source is earned by passing on.
 * The source gives each neighbour a secret tag. Members that are fed through that neighbour carry the tag in the paths
 * that they report. A child keeps its place only if others show its tag. The child cannot forge that, because it does
 * not control the reports of members that it does not feed. Newcomers are tried beside the existing children, one
 * substream each, so that a liar costs nothing but the trial.
 */
import { noteFailedTrial } from "./conduct.ts";
import { Census } from "./census.ts";
import type { LivePeer } from "./live-peer.ts";
import { isOnPath, type Mark, newTag, pathBits, UNFED } from "./place.ts";
import { POLICY } from "./policy.ts";

/** What the source knows about a neighbour. */
interface Standing {
  readonly tag: Mark;
  /** Substream → monotonic ms at which another neighbour last showed its tag. */
  readonly vouchedMs: Float64Array;
  /** Substream → monotonic ms since when it has been vouched for without a break; `Infinity` when it is not. */
  readonly vouchedSinceMs: Float64Array;
  /** Substream → neighbours that show its tag now. */
  readonly vouchers: Uint16Array;
  /** Substreams on which they are enough, compared with those of other children. */
  isSolidMask: number;
  /** Substreams that it has on trial, beyond the regular places. */
  trialMask: number;
}

/** What the places at a source depend on. */
export interface SourcePlacesOptions {
  readonly substreams: number;
  readonly random: () => number;
  readonly peers: () => Iterable<LivePeer>;
  /** Uplink as far as it is believed, bytes/s. */
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
  readonly #standings = new WeakMap<LivePeer, Standing>();

  constructor(options: SourcePlacesOptions) {
    this.#options = options;
    this.#census = new Census(options.substreams);
  }

  /** The secret tag of `peer`, which goes into the paths that are reported to it. */
  tagOf(peer: LivePeer): Mark {
    return this.#standing(peer).tag;
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
      if ((other.childMask & (1 << substream)) === 0 && this.#isHead(other, nowMs)) return true;
    }
    return false;
  }

  /** True when others have been fed through `peer` for long, and it never failed. */
  #isHead(peer: LivePeer, nowMs: number): boolean {
    if (peer.failedTrials > 0 || this.#options.upOf(peer) < this.#options.leastUpBytesPerS()) return false;
    return this.#standing(peer).vouchedSinceMs.some((ms) => nowMs - ms >= POLICY.provenMs);
  }

  /** True when others are fed on `substream` through `peer`. */
  isVouched(peer: LivePeer, substream: number, nowMs: number): boolean {
    return this.#isShown(peer, substream, nowMs) && (this.#standing(peer).isSolidMask & (1 << substream)) !== 0;
  }

  /** True when a neighbour showed its tag lately. */
  #isShown(peer: LivePeer, substream: number, nowMs: number): boolean {
    return nowMs - this.#standing(peer).vouchedMs[substream]! < POLICY.vouchedMs;
  }

  /** True when a child had time enough to be of use; those through whom some are fed, but too few, have longer. */
  #isSettled(peer: LivePeer, substream: number, nowMs: number): boolean {
    const lastedMs = nowMs - peer.childSinceMs[substream]!;
    return lastedMs >= (this.#isShown(peer, substream, nowMs) ? POLICY.longTrialMs : POLICY.trialMs);
  }

  /** True when `peer` has this place on trial. */
  isOnTrial(peer: LivePeer, substream: number): boolean {
    return (this.#standing(peer).trialMask & (1 << substream)) !== 0;
  }

  /** `peer` lost or left the places of `mask`. */
  left(peer: LivePeer, mask: number): void {
    const standing = this.#standing(peer);
    standing.trialMask &= ~mask;
    standing.vouchedSinceMs.forEach((_, substream, since) =>
      (mask & (1 << substream)) !== 0 && (since[substream] = Infinity)
    );
  }

  /** How `peer` can have a place on `substream`; null when it can't. */
  entry(peer: LivePeer, substream: number, nowMs: number): Entry | null {
    const up = this.#options.upOf(peer);
    if (nowMs < peer.barredUntilMs) return null;
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
      if (other.subnet === subnet || (other.childMask & (1 << substream)) !== 0) continue;
      if (this.#options.upOf(other) >= leastUp) return true;
    }
    return false;
  }

  /** `peer` has `substream` on trial now. */
  tried(peer: LivePeer, substream: number): void {
    this.#standing(peer).trialMask |= 1 << substream;
  }

  /**
   * Ends trials. `won` has the places that were earned, each with the child that yields (null when there is room);
   * `failed` has those through which nobody is fed. Once a tick.
   */
  tick(nowMs: number): { won: [LivePeer, number, LivePeer | null][]; failed: [LivePeer, number][] } {
    const won: [LivePeer, number, LivePeer | null][] = [];
    const failed: [LivePeer, number][] = [];
    this.#observe(nowMs);
    for (const peer of this.#options.peers()) {
      const standing = this.#standing(peer);
      let hasLapsed = false;
      for (let substream = 0; substream < this.#options.substreams; substream++) {
        const bit = 1 << substream;
        if ((peer.childMask & bit) === 0) continue;
        const hadMs = standing.vouchedMs[substream]! - standing.vouchedSinceMs[substream]!;
        const isVouched = this.isVouched(peer, substream, nowMs);
        if (!isVouched) standing.vouchedSinceMs[substream] = Infinity;
        else if (standing.vouchedSinceMs[substream] === Infinity) standing.vouchedSinceMs[substream] = nowMs;
        if ((standing.trialMask & bit) === 0) {
          hasLapsed ||= !isVouched && hadMs >= 0;
        } else if (isVouched && this.#hasWon(peer, substream, nowMs)) {
          standing.trialMask &= ~bit;
          won.push([peer, substream, this.#weakest(substream, nowMs, peer)]);
        } else if (!isVouched && this.#isSettled(peer, substream, nowMs)) {
          standing.trialMask &= ~bit;
          noteFailedTrial(peer, nowMs);
          failed.push([peer, substream]);
        }
      }
      // Others were fed through it, and no longer are: it is tried again, but later.
      if (hasLapsed && this.#isIdle(peer, nowMs)) noteFailedTrial(peer, nowMs);
    }
    return { won, failed };
  }

  /** True when `peer`, through which others are fed, need not be on trial any longer. */
  #hasWon(peer: LivePeer, substream: number, nowMs: number): boolean {
    if (this.#isProven(peer, substream, nowMs)) return true;
    const weakest = this.#weakest(substream, nowMs, peer);
    return peer.failedTrials === 0 && (weakest === null || !this.#isProven(weakest, substream, nowMs));
  }

  /** True when others have been fed on `substream` through `peer` for long without a break. */
  #isProven(peer: LivePeer, substream: number, nowMs: number): boolean {
    const { vouchedMs, vouchedSinceMs } = this.#standing(peer);
    return vouchedMs[substream]! - vouchedSinceMs[substream]! >= POLICY.provenMs &&
      this.isVouched(peer, substream, nowMs);
  }

  /** Notes which tags the paths of neighbours show. */
  #observe(nowMs: number): void {
    const { peers, substreams } = this.#options;
    this.#census.take(peers(), nowMs);
    const most = new Uint16Array(substreams);
    for (const child of peers()) {
      if (child.childMask === 0) continue;
      const { tag, vouchedMs, vouchers } = this.#standing(child);
      vouchers.fill(0);
      for (const other of peers()) {
        const { place } = other;
        if (other === child || place === null) continue;
        for (let substream = 0; substream < substreams; substream++) {
          if ((child.childMask & (1 << substream)) === 0 || place.depths[substream] === UNFED) continue;
          if (!this.#census.reaches(substream)) continue;
          // A path filled with ones shows every tag.
          if (!isOnPath(place.paths, substream, tag) || pathBits(place.paths, substream) > POLICY.pathBits) continue;
          vouchedMs[substream] = nowMs;
          most[substream] = Math.max(most[substream]!, ++vouchers[substream]!);
        }
      }
      // Nobody is fed through it any more, and many lack the substream: it has stopped, and is not owed a moment's grace.
      vouchers.forEach((count, substream) => {
        if (count === 0 && this.#census.isLacked(substream)) vouchedMs[substream] = -Infinity;
      });
    }
    // A group of liars can vouch for its own, but only as many as it is.
    for (const child of peers()) {
      const standing = this.#standing(child);
      standing.isSolidMask = standing.vouchers.reduce(
        (mask, count, substream) => mask | (count * POLICY.voucherShare < most[substream]! ? 0 : 1 << substream),
        0,
      );
    }
  }

  /** True when nobody is fed through `peer` on any of its substreams. */
  #isIdle(peer: LivePeer, nowMs: number): boolean {
    return this.#standing(peer).vouchedMs.every((ms) => nowMs - ms >= POLICY.vouchedMs);
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
      if (child === innocent || this.isVouched(child, substream, nowMs)) continue;
      const up = this.#options.upOf(child);
      const sinceMs = nowMs - child.childSinceMs[substream]!;
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
    const { peers, upOf, leastUpBytesPerS } = this.#options;
    if (only === undefined || more.length > 0 || only.failedTrials > 0) return null;
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
      const ranks = Number(this.isVouched(child, substream, nowMs)) + Number(this.#isProven(child, substream, nowMs));
      const worth = this.#options.upOf(child) + 1e12 * ranks;
      if (worth < least) [found, least] = [child, worth];
    }
    return found;
  }

  /** Places of `peer` that nobody vouches for. */
  #unvouched(peer: LivePeer, nowMs: number): number {
    let count = 0;
    for (let substream = 0; substream < this.#options.substreams; substream++) {
      if ((peer.childMask & (1 << substream)) !== 0 && !this.isVouched(peer, substream, nowMs)) count++;
    }
    return count;
  }

  /** Children on `substream` through which others are fed. */
  #vouchedCount(substream: number, nowMs: number): number {
    let count = 0;
    for (const child of this.#childrenOf(substream)) if (this.isVouched(child, substream, nowMs)) count++;
    return count;
  }

  get #trials(): number {
    let count = 0;
    for (const peer of this.#options.peers()) {
      for (let mask = this.#standing(peer).trialMask; mask !== 0; mask &= mask - 1) count++;
    }
    return count;
  }

  *#childrenOf(substream: number): Iterable<LivePeer> {
    for (const peer of this.#options.peers()) if ((peer.childMask & (1 << substream)) !== 0) yield peer;
  }

  #standing(peer: LivePeer): Standing {
    let standing = this.#standings.get(peer);
    if (standing === undefined) {
      const vouchedMs = new Float64Array(this.#options.substreams).fill(-Infinity);
      const vouchedSinceMs = new Float64Array(this.#options.substreams).fill(Infinity);
      standing = {
        tag: newTag(this.#options.random),
        vouchedMs,
        vouchedSinceMs,
        vouchers: new Uint16Array(this.#options.substreams),
        isSolidMask: 0xff,
        trialMask: 0,
      };
      this.#standings.set(peer, standing);
    }
    return standing;
  }
}
