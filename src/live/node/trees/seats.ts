/**
 * Our children: who has a seat on which substream, and who is still served for a moment after it lost one. `Children` gives
 * and takes seats, `SourcePlaces` ends trials; everybody else only asks (`SeatBook`).
 */
import type { LivePeer } from "../neighbour/live-peer.ts";
import type { SeatBook } from "../neighbour/seat-book.ts";

/** The place of one child on one substream. */
export interface Seat {
  /** Monotonic ms since when it has the seat. */
  readonly sinceMs: number;
  /** The seat is on trial, beyond the regular ones of a source. */
  isOnTrial: boolean;
}

/** What outlasts the seats of a neighbour. Times are monotonic ms. */
interface Limits {
  /** Until when it is served on the substreams of which it was given notice. */
  noticeUntilMs: number;
  /** Until when it gets no more seats: its connection does not carry those it has. */
  narrowUntilMs: number;
}

/** The seats of all our children. */
export class Seats implements SeatBook {
  readonly substreams: number;
  /** Substream → its children. */
  readonly #seats: readonly Map<LivePeer, Seat>[];
  /** Substream → neighbours that lost their seat and are served until they have found another parent. */
  readonly #onNotice: readonly Set<LivePeer>[];
  readonly #limits = new WeakMap<LivePeer, Limits>();
  #total = 0;

  constructor(substreams: number) {
    this.substreams = substreams;
    this.#seats = Array.from({ length: substreams }, () => new Map());
    this.#onNotice = Array.from({ length: substreams }, () => new Set());
  }

  /** Seats in all. */
  get total(): number {
    return this.#total;
  }

  /** Seats on `substream`. */
  count(substream: number): number {
    return this.#seats[substream]!.size;
  }

  /** Substream → its seats. */
  get counts(): readonly number[] {
    return this.#seats.map((seats) => seats.size);
  }

  /** The seat of `peer` on `substream`; undefined without one. */
  of(peer: LivePeer, substream: number): Seat | undefined {
    return this.#seats[substream]!.get(peer);
  }

  has(peer: LivePeer, substream: number): boolean {
    return this.#seats[substream]!.has(peer);
  }

  hasAny(peer: LivePeer): boolean {
    return this.#seats.some((seats) => seats.has(peer));
  }

  mask(peer: LivePeer): number {
    return maskOf(this.#seats, peer);
  }

  pushes(peer: LivePeer, substream: number): boolean {
    return this.#seats[substream]!.has(peer) || this.#onNotice[substream]!.has(peer);
  }

  pushesAny(peer: LivePeer): boolean {
    return this.hasAny(peer) || this.#onNotice.some((peers) => peers.has(peer));
  }

  pushMask(peer: LivePeer): number {
    return this.mask(peer) | maskOf(this.#onNotice, peer);
  }

  /** `peer` is a child of `substream` from now on. */
  give(peer: LivePeer, substream: number, seat: Seat): void {
    if (!this.has(peer, substream)) this.#total++;
    this.#seats[substream]!.set(peer, seat);
    this.#onNotice[substream]!.delete(peer);
  }

  /** `peer` is no longer a child of `substream`, nor served on it. */
  take(peer: LivePeer, substream: number): void {
    this.#onNotice[substream]!.delete(peer);
    if (this.#seats[substream]!.delete(peer)) this.#total--;
  }

  /** `peer`, which lost its seat on `substream`, is served on it until its notice ends (`extendNotice`). */
  serveOn(peer: LivePeer, substream: number): void {
    this.#onNotice[substream]!.add(peer);
  }

  /** The notice of `peer` ends at `untilMs`, on all substreams of which it has notice. */
  extendNotice(peer: LivePeer, untilMs: number): void {
    this.#limitsOf(peer).noticeUntilMs = untilMs;
  }

  /** True while the last notice given to `peer` runs. */
  isOnNotice(peer: LivePeer, nowMs: number): boolean {
    return nowMs < (this.#limits.get(peer)?.noticeUntilMs ?? 0);
  }

  /** Stops serving those of `peers` whose notice is over. */
  endNotices(peers: Iterable<LivePeer>, nowMs: number): void {
    for (const peer of peers) {
      if (!this.isOnNotice(peer, nowMs)) { for (const served of this.#onNotice) served.delete(peer); }
    }
  }

  /** `peer` gets no more seats until `untilMs`: its connection does not carry those it has. */
  narrow(peer: LivePeer, untilMs: number): void {
    this.#limitsOf(peer).narrowUntilMs = untilMs;
  }

  /** True while `peer` gets no more seats. */
  isNarrow(peer: LivePeer, nowMs: number): boolean {
    return nowMs < (this.#limits.get(peer)?.narrowUntilMs ?? -Infinity);
  }

  #limitsOf(peer: LivePeer): Limits {
    let limits = this.#limits.get(peer);
    if (limits === undefined) this.#limits.set(peer, limits = { noticeUntilMs: 0, narrowUntilMs: -Infinity });
    return limits;
  }
}

/** Mask of the substreams of which `peer` is among `members`. */
function maskOf(members: readonly { has(peer: LivePeer): boolean }[], peer: LivePeer): number {
  return members.reduce((mask, one, substream) => one.has(peer) ? mask | (1 << substream) : mask, 0);
}
