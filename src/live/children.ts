/** Whom we push which substream to: as many as the measured uplink carries. */
import type { LivePeer } from "./live-peer.ts";
import { bitCount } from "./parents.ts";
import { POLICY } from "./policy.ts";

/** What the admission of children depends on. */
export interface ChildrenOptions {
  readonly substreams: number;
  readonly isSource: boolean;
  /** Bitrate of the stream, bytes a second. */
  readonly bytesPerS: () => number;
  readonly uplinkBytesPerS: () => number;
  readonly peers: () => Iterable<LivePeer>;
  /** Newest piece here. */
  readonly newestSeq: () => number;
  /** True when blocks of `substream` reach us now: a parent without any only closes a circle. */
  readonly isFed: (substream: number, nowMs: number) => boolean;
}

/** Subscriptions are dropped for want of uplink no more often than this, ms. */
const EXCESS_MS = 500;

/** A peer this far behind gets nothing, pieces. */
const STARVING_PIECES = 8;

/** A child keeps its place against starving ones for this long, ms. */
const TENURE_MS = 5000;

/** What became of a subscription. */
export interface Admission {
  /** Mask of the substreams accepted. */
  readonly accepted: number;
  /** Children that had to make room. */
  readonly displaced: readonly [LivePeer, number][];
}

/** Our children. */
export class Children {
  private readonly options: ChildrenOptions;
  private readonly counts: number[];
  private droppedMs = -Infinity;

  constructor(options: ChildrenOptions) {
    this.options = options;
    this.counts = new Array<number>(options.substreams).fill(0);
  }

  /** Takes `peer` as a child of the substreams of `mask` that there is room for; answers those accepted. */
  accept(peer: LivePeer, mask: number, nowMs: number): Admission {
    let accepted = 0;
    const displaced: [LivePeer, number][] = [];
    for (let substream = 0; substream < this.options.substreams; substream++) {
      const bit = 1 << substream;
      if ((mask & bit) === 0) continue;
      if ((peer.childMask & bit) !== 0) {
        accepted |= bit;
        continue;
      }
      // Two that push each other the same substream would both wait.
      if ((peer.parentMask & bit) !== 0 || !this.options.isFed(substream, nowMs)) continue;
      if (!this.hasRoom(substream)) {
        const weaker = this.replaceable(peer, substream, nowMs);
        if (weaker === null) continue;
        this.drop(weaker, bit);
        displaced.push([weaker, bit]);
      }
      peer.childMask |= bit;
      peer.childSinceMs[substream] = nowMs;
      this.counts[substream] = this.counts[substream]! + 1;
      accepted |= bit;
    }
    return { accepted, displaced };
  }

  /**
   * The child of this substream that is to make room for `peer`: the one that can pass on least, when that is less than
   * half of what `peer` can. At the source, for a peer that gets nothing, the one that has been there longest: children
   * that pass nothing on cannot hold a tree for ever.
   */
  private replaceable(peer: LivePeer, substream: number, nowMs: number): LivePeer | null {
    let found: LivePeer | null = null;
    const starves = this.options.isSource && nowMs - peer.connectedMs > TENURE_MS &&
      this.options.newestSeq() - peer.newestSeq > STARVING_PIECES;
    const protects = this.newcomersHoldLittle(nowMs);
    for (const child of this.options.peers()) {
      if ((child.childMask & (1 << substream)) === 0 || (protects && child.isNewcomer(nowMs))) continue;
      const isOlder = nowMs - child.childSinceMs[substream]! > TENURE_MS &&
        (found === null || child.childSinceMs[substream]! < found.childSinceMs[substream]!);
      if (starves ? !isOlder : 2 * this.upOf(child) > this.upOf(found ?? peer) * (found === null ? 1 : 2)) continue;
      found = child;
    }
    return found;
  }

  /** Newcomers keep their places, as long as they have no more than their share. */
  private newcomersHoldLittle(nowMs: number): boolean {
    let held = 0;
    for (const peer of this.options.peers()) if (peer.isNewcomer(nowMs)) held += bitCount(peer.childMask);
    return held <= POLICY.newcomerShare * this.total;
  }

  private upOf(peer: LivePeer): number {
    return peer.info.upBytesPerS ?? this.options.bytesPerS();
  }

  /** `peer` is no longer a child of these. */
  drop(peer: LivePeer, mask: number): void {
    for (let substream = 0; substream < this.options.substreams; substream++) {
      const bit = 1 << substream;
      if ((peer.childMask & mask & bit) === 0) continue;
      peer.childMask &= ~bit;
      this.counts[substream] = this.counts[substream]! - 1;
    }
  }

  /**
   * Subscriptions that the uplink turned out not to carry, which are dropped here: one at a time and with time to show,
   * since each moves a whole branch.
   */
  excess(nowMs: number): [LivePeer, number][] {
    const perSubstream = this.options.bytesPerS() / this.options.substreams;
    const spare = this.options.uplinkBytesPerS() - this.total * perSubstream;
    if (spare >= 0 || this.total === 0 || nowMs - this.droppedMs < EXCESS_MS) return [];
    this.droppedMs = nowMs;
    let count = Math.ceil(-spare / perSubstream);
    const dropped: [LivePeer, number][] = [];
    // Those who came last lose the least.
    for (const peer of [...this.options.peers()].reverse()) {
      let mask = 0;
      for (let bit = 1; bit < 256 && count > 0; bit <<= 1) {
        if ((peer.childMask & bit) === 0) continue;
        mask |= bit;
        count--;
      }
      if (mask === 0) continue;
      this.drop(peer, mask);
      dropped.push([peer, mask]);
    }
    return dropped;
  }

  /** Subscriptions in all. */
  get total(): number {
    return this.counts.reduce((sum, count) => sum + count, 0);
  }

  private hasRoom(substream: number): boolean {
    const { isSource, substreams } = this.options;
    const perSubstream = this.options.bytesPerS() / substreams;
    // The source feeds each tree before any gets a second branch.
    if (isSource && this.counts[substream]! > Math.min(...this.counts)) return false;
    const uplink = this.options.uplinkBytesPerS();
    // A slow uplink delays each block of a whole branch by seconds; it is of more use in answering requests.
    if (uplink < this.options.bytesPerS() * POLICY.parentUplinkShare) return false;
    const limit = uplink * POLICY.loadLimit;
    return (this.total + 1) * perSubstream <= limit;
  }
}
