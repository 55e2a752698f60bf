/**
 * Which substreams reach the neighbours of a source, as they report themselves. Liars can vouch for one another, but they
 * can't hide that the other members get nothing.
 */
import type { LivePeer } from "../neighbour/live-peer.ts";
import { UNFED } from "../neighbour/place.ts";
import { POLICY } from "../policy.ts";

/** What the neighbours reported when `take` was called last. */
export class Census {
  readonly #unfed: number[];
  readonly #lackedSinceMs: number[];
  #judges = 0;

  constructor(substreams: number) {
    this.#unfed = new Array<number>(substreams).fill(0);
    this.#lackedSinceMs = new Array<number>(substreams).fill(Infinity);
  }

  /** Counts again. Members that have just come lack everything, and are left out. */
  take(peers: Iterable<LivePeer>, nowMs: number): void {
    this.#judges = 0;
    this.#unfed.fill(0);
    for (const { place, connectedMs } of peers) {
      if (place === null || nowMs - connectedMs < POLICY.settleMs) continue;
      this.#judges++;
      for (let substream = 0; substream < this.#unfed.length; substream++) {
        if (place.depths[substream] === UNFED) this.#unfed[substream]!++;
      }
    }
    this.#lackedSinceMs.forEach((sinceMs, substream, all) => {
      all[substream] = this.isLacked(substream) ? Math.min(sinceMs, nowMs) : Infinity;
    });
  }

  /** True when `substream` reaches enough of the neighbours for what they say of it to be believed, or few can judge. */
  reaches(substream: number): boolean {
    return this.#judges < POLICY.leastJudges ||
      this.#judges - this.#unfed[substream]! >= POLICY.reachedShare * this.#judges;
  }

  /** Monotonic ms since when many neighbours have lacked `substream`; `Infinity` while they don't. */
  lackedSinceMs(substream: number): number {
    return this.#lackedSinceMs[substream]!;
  }

  /** True when many neighbours lack `substream`. */
  isLacked(substream: number): boolean {
    return this.#judges >= POLICY.leastJudges && this.#unfed[substream]! >= POLICY.lackedShare * this.#judges;
  }
}
