/**
 * Which neighbours of a source others are fed through. The source gives each neighbour a secret tag. Members that are fed
 * through that neighbour carry the tag in the paths that they report. The neighbour cannot forge that, because it does
 * not control the reports of members that it does not feed.
 */
import type { Census } from "./census.ts";
import type { LivePeer } from "../neighbour/live-peer.ts";
import { isOnPath, type Mark, newTag, pathBits, UNFED } from "../neighbour/place.ts";
import { POLICY } from "../policy.ts";
import type { Seats } from "./seats.ts";

/** What is known about a neighbour. */
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
}

/** What the reports of neighbours say about those that feed them. */
export class Vouchers {
  readonly #substreams: number;
  readonly #seats: Seats;
  readonly #random: () => number;
  readonly #census: Census;
  readonly #standings = new WeakMap<LivePeer, Standing>();

  /** `random`: in [0, 1), for tags. */
  constructor(seats: Seats, random: () => number, census: Census) {
    this.#seats = seats;
    this.#substreams = seats.substreams;
    this.#random = random;
    this.#census = census;
  }

  /** The secret tag of `peer`, which goes into the paths that are reported to it. */
  tagOf(peer: LivePeer): Mark {
    return this.#standing(peer).tag;
  }

  /** True when others are fed on `substream` through `peer`. */
  isVouched(peer: LivePeer, substream: number, nowMs: number): boolean {
    return this.isShown(peer, substream, nowMs) && (this.#standing(peer).isSolidMask & (1 << substream)) !== 0;
  }

  /** True when a neighbour showed its tag lately. */
  isShown(peer: LivePeer, substream: number, nowMs: number): boolean {
    return nowMs - this.#standing(peer).vouchedMs[substream]! < POLICY.vouchedMs;
  }

  /** True when others have been fed on `substream` through `peer` for long without a break. */
  isProven(peer: LivePeer, substream: number, nowMs: number): boolean {
    const { vouchedMs, vouchedSinceMs } = this.#standing(peer);
    return vouchedMs[substream]! - vouchedSinceMs[substream]! >= POLICY.provenMs &&
      this.isVouched(peer, substream, nowMs);
  }

  /** True when others were fed through `peer` for long on any substream, and were when this was asked last. */
  isHead(peer: LivePeer, nowMs: number): boolean {
    return this.#standing(peer).vouchedSinceMs.some((ms) => nowMs - ms >= POLICY.provenMs);
  }

  /** True when nobody is fed through `peer` on any substream. */
  isIdle(peer: LivePeer, nowMs: number): boolean {
    return this.#standing(peer).vouchedMs.every((ms) => nowMs - ms >= POLICY.vouchedMs);
  }

  /** Notes since when others have been fed through a child. Returns true when they were until now. */
  follow(peer: LivePeer, substream: number, nowMs: number): boolean {
    const { vouchedMs, vouchedSinceMs } = this.#standing(peer);
    const isVouched = this.isVouched(peer, substream, nowMs);
    const hasLapsed = !isVouched && vouchedMs[substream]! >= vouchedSinceMs[substream]!;
    if (!isVouched) vouchedSinceMs[substream] = Infinity;
    else if (vouchedSinceMs[substream] === Infinity) vouchedSinceMs[substream] = nowMs;
    return hasLapsed;
  }

  /** `peer` lost or left the places of `mask`. */
  left(peer: LivePeer, mask: number): void {
    this.#standing(peer).vouchedSinceMs.forEach((_, substream, since) =>
      (mask & (1 << substream)) !== 0 && (since[substream] = Infinity)
    );
  }

  /** Notes which tags the paths of `peers` show. */
  observe(peers: () => Iterable<LivePeer>, nowMs: number): void {
    const most = new Uint16Array(this.#substreams);
    for (const child of peers()) {
      if (!this.#seats.hasAny(child)) continue;
      const { tag, vouchedMs, vouchers } = this.#standing(child);
      vouchers.fill(0);
      for (const other of peers()) {
        const { place } = other;
        if (other === child || place === null) continue;
        for (let substream = 0; substream < this.#substreams; substream++) {
          if (!this.#seats.has(child, substream) || place.depths[substream] === UNFED) continue;
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

  #standing(peer: LivePeer): Standing {
    let standing = this.#standings.get(peer);
    if (standing === undefined) {
      standing = {
        tag: newTag(this.#random),
        vouchedMs: new Float64Array(this.#substreams).fill(-Infinity),
        vouchedSinceMs: new Float64Array(this.#substreams).fill(Infinity),
        vouchers: new Uint16Array(this.#substreams),
        isSolidMask: 0xff,
      };
      this.#standings.set(peer, standing);
    }
    return standing;
  }
}
