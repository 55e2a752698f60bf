/**
 * Which substreams we push to which neighbours: as many as the measured uplink carries. Places go to the neighbours
 * that report the most uplink: we cannot see what they pass on, only how they respond to a probe. No share is kept for
 * newcomers. At uplinks of 1.44 × bitrate on average and a load of 0.92, viewers have 1.32 × what they need, and with a
 * fifth kept free they would have 1.06. Notice protects newcomers instead: a displaced child is served until it has
 * another parent.
 */
import { fedThrough } from "./fed-through.ts";
import type { LivePeer } from "../neighbour/live-peer.ts";
import type { NodeView } from "../neighbour/node-view.ts";
import type { Parents } from "./parents.ts";
import { CLOSED, eighths, NEEDY, UNFED } from "../neighbour/place.ts";
import { POLICY } from "../policy.ts";
import type { Seats } from "./seats.ts";
import { type Entry, SourcePlaces } from "./source-places.ts";
import type { Uploader } from "../line/uploader.ts";

/** Subscriptions are dropped for lack of uplink no more often than this, ms. */
const EXCESS_MS = 500;

/** The outcome of a subscription. */
export interface Admission {
  /** Mask of the substreams accepted. */
  readonly accepted: number;
  /** Children that had to make room. */
  readonly displaced: readonly [LivePeer, number][];
}

/** Our children. */
export class Children {
  readonly #view: NodeView;
  readonly #uploader: Uploader;
  readonly #parents: Parents;
  /** The rules of a source; null for a viewer. */
  readonly atSource: SourcePlaces | null;
  readonly #seats: Seats;
  #droppedMs = -Infinity;

  constructor(view: NodeView, seats: Seats, uploader: Uploader, parents: Parents) {
    this.#view = view;
    this.#uploader = uploader;
    this.#parents = parents;
    this.#seats = seats;
    this.atSource = !view.isSource ? null : new SourcePlaces({
      seats,
      random: view.random,
      peers: () => view.peers,
      conduct: view.conduct,
      upOf: (peer) => this.#upOf(peer),
      pushDelayMs: () => uploader.standingDelayMs,
      leastUpBytesPerS: () => POLICY.parentUplinkShare * view.rate.bytesPerS,
    });
  }

  /** True when blocks of `substream` come from the source. A parent that gets none would only close a circle. */
  #isFed(substream: number): boolean {
    return this.#view.isSource || this.#parents.depth(substream) !== UNFED;
  }

  /** Subscriptions in all. */
  get total(): number {
    return this.#seats.total;
  }

  /** Subscriptions to `substream`. */
  count(substream: number): number {
    return this.#seats.count(substream);
  }

  /** Takes `peer` as a child of the substreams of `mask` that there is room for; returns those accepted. */
  accept(peer: LivePeer, mask: number, nowMs: number): Admission {
    let accepted = 0;
    const displaced: [LivePeer, number][] = [];
    for (let substream = 0; substream < this.#view.substreams; substream++) {
      const bit = 1 << substream;
      if ((mask & bit) === 0) continue;
      if (this.#seats.has(peer, substream)) {
        accepted |= bit;
        continue;
      }
      if (this.count(substream) !== 0 && this.#seats.isNarrow(peer, nowMs)) continue;
      // Two peers that push each other the same substream would both wait.
      if (this.#parents.feeds(peer, substream) || !this.#isFed(substream) || this.#isDeadEnd(peer, substream)) continue;
      if (this.atSource !== null && this.atSource.isKeptFor(peer, substream, nowMs)) continue;
      let isOnTrial = false;
      if (!this.#hasRoom(substream)) {
        const entry = this.#entry(peer, substream, nowMs);
        if (entry === null || this.#isOneSided(peer, substream, entry.isTrial ? null : entry.victim)) continue;
        if (entry.isTrial) isOnTrial = true;
        else {
          this.#giveNotice(entry.victim, 1 << entry.from, nowMs);
          displaced.push([entry.victim, 1 << entry.from]);
        }
      } else if (this.#isOneSided(peer, substream, null)) continue;
      this.#seats.give(peer, substream, { sinceMs: nowMs, isOnTrial });
      accepted |= bit;
    }
    return { accepted, displaced };
  }

  #isOneSided(peer: LivePeer, substream: number, victim: LivePeer | null): boolean {
    return this.atSource?.isOneSided(peer, substream, victim) ?? false;
  }

  /**
   * How `peer` can have a place when there is no room: on trial, or in the place that another child has in `from`; null
   * when it can't.
   */
  #entry(peer: LivePeer, substream: number, nowMs: number): Entry & { from: number } | null {
    const overfull = this.#overfull(substream);
    const from = overfull ?? substream;
    if (this.atSource !== null && (overfull === null || this.count(substream) !== 0)) {
      const entry = this.atSource.entry(peer, substream, nowMs);
      return entry === null ? null : { ...entry, from: substream };
    }
    // A tree that has no child here has no time to lose: ignore tenure and the queue.
    const urgent = overfull !== null && this.count(substream) === 0;
    const up = urgent ? Infinity : this.#upOf(peer);
    const victim = from === substream ? this.#weakest(from, up, nowMs) : this.#leastMissed(from, up, nowMs, urgent);
    if (victim === null || (from === substream && POLICY.strongerBy * this.#upOf(victim) > this.#upOf(peer))) {
      return null;
    }
    return { isTrial: false, victim, from };
  }

  /** Uplink that a new child of `substream` needs, in eighths of the bitrate: see `Place`. */
  bar(substream: number, nowMs: number): number {
    if (!this.#isFed(substream)) return CLOSED;
    if (this.#hasRoom(substream)) return 0;
    if (this.#overfull(substream) !== null) return NEEDY;
    if (this.atSource !== null) {
      const up = this.atSource.leastUpFor(substream, nowMs);
      return up === Infinity ? CLOSED : Math.max(NEEDY + 1, eighths(up, this.#view.rate.bytesPerS));
    }
    const weakest = this.#weakest(substream, Infinity, nowMs);
    return weakest === null
      ? CLOSED
      : Math.max(NEEDY + 1, eighths(POLICY.strongerBy * this.#upOf(weakest), this.#view.rate.bytesPerS));
  }

  /** The child of this substream that can pass on least; it makes room for a peer that can pass on more. */
  #weakest(substream: number, upBytesPerS: number, nowMs: number, urgent = false): LivePeer | null {
    let found: LivePeer | null = null;
    for (const child of this.#movable(substream, upBytesPerS, nowMs, urgent)) {
      if (found === null || this.#upOf(child) < this.#upOf(found)) found = child;
    }
    return found;
  }

  /**
   * The child of this substream through which the fewest members are fed, of several the one that can pass on least. It
   * makes room for whoever asks for a substream with far fewer children, weak ones, too: whoever heads a large branch
   * would take that with it, and finds no other parent among those that it feeds.
   */
  #leastMissed(substream: number, upBytesPerS: number, nowMs: number, urgent: boolean): LivePeer | null {
    // The source judges its children by what others vouch for. In a small swarm a head finds another parent easily.
    if (this.atSource !== null || this.#view.peers.size < POLICY.largeNeighbourhood) {
      return this.#weakest(substream, upBytesPerS, nowMs, urgent);
    }
    const own = { mark: this.#view.mark, path: this.#parents.path(substream) };
    let found: LivePeer | null = null;
    let least = Infinity;
    for (const child of this.#movable(substream, upBytesPerS, nowMs, urgent)) {
      const fed = fedThrough(child, substream, own, this.#view.peers);
      if (fed > least || (fed === least && this.#upOf(child) >= this.#upOf(found!))) continue;
      [found, least] = [child, fed];
    }
    return found;
  }

  /**
   * The children of this substream that may have to make room for a peer with this uplink. One that has just come does
   * not, unless the peer has `manyTimes` its uplink.
   */
  *#movable(substream: number, upBytesPerS: number, nowMs: number, urgent: boolean): Iterable<LivePeer> {
    // A displaced child is served for a while beside its successor, which would lengthen a queue that is already there.
    if (this.#uploader.standingDelayMs > POLICY.busyMs && !urgent) return;
    for (const child of this.#view.peers) {
      const seat = this.#seats.of(child, substream);
      if (seat === undefined) continue;
      const isNew = nowMs - seat.sinceMs < POLICY.tenureMs;
      if (!isNew || POLICY.manyTimes * this.#upOf(child) <= upBytesPerS) yield child;
    }
  }

  /** True when many neighbours of a source lack `substream`. */
  #isLacked(substream: number): boolean {
    return this.atSource !== null && this.atSource.isLacked(substream);
  }

  /** The source's only child of a substream has to pass it on, if any candidate can; likewise all while many lack it. */
  #isDeadEnd(peer: LivePeer, substream: number): boolean {
    if (!this.#view.isSource || (this.count(substream) !== 0 && !this.#isLacked(substream))) return false;
    const leastUp = POLICY.parentUplinkShare * this.#view.rate.bytesPerS;
    if (this.#upOf(peer) >= leastUp) return false;
    for (const other of this.#view.peers) if (this.#upOf(other) >= leastUp) return true;
    return false;
  }

  /** Believed uplink of `peer`: nobody is worth more than `POLICY.believedUp` streams. */
  #upOf(peer: LivePeer): number {
    const bytesPerS = this.#view.rate.bytesPerS;
    return Math.min(peer.upBytesPerS ?? bytesPerS / 2, POLICY.believedUp * bytesPerS);
  }

  /** `peer` loses its place, but is served until it has found another. */
  #giveNotice(peer: LivePeer, mask: number, nowMs: number): void {
    const had = Array.from({ length: this.#view.substreams }, (_, substream) => this.#seats.of(peer, substream));
    this.drop(peer, mask);
    had.forEach((seat, substream) => {
      const hasLost = seat !== undefined && (mask & (1 << substream)) !== 0;
      if (hasLost && nowMs - seat.sinceMs >= POLICY.noticeMs) this.#seats.serveOn(peer, substream);
    });
    this.#seats.extendNotice(peer, nowMs + POLICY.noticeMs);
  }

  /**
   * Stops serving displaced children once their notice is over, and ends trials. Returns the children that lose places,
   * with the masks of these.
   */
  tick(nowMs: number): [LivePeer, number][] {
    this.#seats.endNotices(this.#view.peers, nowMs);
    const lost: [LivePeer, number][] = [];
    if (this.atSource === null) return lost;
    const { won, failed } = this.atSource.tick(nowMs);
    for (const [, substream, weakest] of won) {
      if (this.total <= this.#slots || weakest === null) continue;
      this.#giveNotice(weakest, 1 << substream, nowMs);
      lost.push([weakest, 1 << substream]);
    }
    for (const [peer, substream] of failed) {
      this.drop(peer, 1 << substream);
      lost.push([peer, 1 << substream]);
    }
    return lost;
  }

  /**
   * The connection of `peer` does not carry its places: gives it notice of one, in which we have another child, and no more of
   * them for a while. Returns the mask of that place; 0 without one, or while notice runs. Blocks of a
   * child that has most of our places would otherwise always come late, to all below it, too.
   */
  relieve(peer: LivePeer, nowMs: number): number {
    this.#seats.narrow(peer, nowMs + POLICY.avoidMs);
    let found: number | null = null;
    let places = 0;
    for (let substream = 0; substream < this.#view.substreams; substream++) {
      if (!this.#seats.has(peer, substream)) continue;
      places++;
      if (this.count(substream) > (found === null ? 1 : this.count(found))) found = substream;
    }
    if (found === null || places === 1 || this.#seats.isOnNotice(peer, nowMs)) return 0;
    this.#giveNotice(peer, 1 << found, nowMs);
    return 1 << found;
  }

  /** `peer` is no longer a child of these. */
  drop(peer: LivePeer, mask: number): void {
    this.atSource?.left(peer, mask);
    for (let substream = 0; substream < this.#view.substreams; substream++) {
      if ((mask & (1 << substream)) !== 0) this.#seats.take(peer, substream);
    }
  }

  /**
   * Drops subscriptions that the uplink turned out not to carry, and returns them: one at a time and with time to show its
   * effect, since each moves a whole branch.
   */
  excess(nowMs: number): [LivePeer, number][] {
    const perSubstream = this.#view.rate.bytesPerS / this.#view.substreams;
    // Beyond the rate of the stream an existing queue has to drain.
    const isFull = this.#uploader.isMeasured && this.#uploader.pushDelayMs > POLICY.drainAboveMs;
    const carried = isFull ? this.#slots * perSubstream : this.#uploader.uplinkBytesPerS;
    const spare = carried - this.total * perSubstream;
    if (spare >= 0 || this.total === 0 || nowMs - this.#droppedMs < EXCESS_MS) return [];
    this.#droppedMs = nowMs;
    const dropped = new Map<LivePeer, number>();
    // Where nothing is carried, rounding can make it one more than there are.
    for (let count = Math.ceil(-spare / perSubstream); count > 0; count--) {
      const owed = this.#leastOwed();
      if (owed === null) break;
      const [peer, bit] = owed;
      // What waits this long is shed: notice would only keep the other children waiting.
      if (this.#uploader.pushDelayMs > POLICY.shedAfterMs) this.drop(peer, bit);
      else this.#giveNotice(peer, bit, nowMs);
      dropped.set(peer, (dropped.get(peer) ?? 0) | bit);
    }
    return [...dropped];
  }

  /**
   * The place to give up: of the newest child, but at a source that of an only child last, which has the whole tree below
   * it. null without children.
   */
  #leastOwed(): [LivePeer, number] | null {
    let only: [LivePeer, number] | null = null;
    for (const peer of [...this.#view.peers].reverse()) {
      for (let substream = 0; substream < this.#view.substreams; substream++) {
        if (!this.#seats.has(peer, substream)) continue;
        if (!this.#isOnlyChild(peer, substream)) return [peer, 1 << substream];
        only ??= [peer, 1 << substream];
      }
    }
    return only;
  }

  /** True when a source has no other child of `substream` than `peer`, except on trial. */
  #isOnlyChild(peer: LivePeer, substream: number): boolean {
    const { atSource } = this;
    if (atSource === null || atSource.isOnTrial(peer, substream)) return false;
    for (const other of this.#view.peers) {
      const isChild = this.#seats.has(other, substream);
      if (isChild && other !== peer && !atSource.isOnTrial(other, substream)) return false;
    }
    return true;
  }

  /** Subscriptions that the uplink carries. */
  get #slots(): number {
    const uplink = this.#uploader.uplinkBytesPerS;
    if (!this.#uploader.isMeasured) return uplink > 0 ? this.#slotsUnmeasured : 0;
    // A slow uplink delays each block of a whole branch by seconds; it is more useful for serving requests.
    if (uplink < this.#view.rate.bytesPerS * POLICY.parentUplinkShare) return 0;
    const limit = this.#view.isSource ? POLICY.sourceLoadLimit : POLICY.loadLimit;
    return this.#slotsOf(uplink * (this.#isScarce ? POLICY.scarceLoadLimit : limit));
  }

  /** True when the neighbours and we have hardly more uplink than they need, by what they report. */
  get #isScarce(): boolean {
    const view = this.#view;
    const uploader = this.#uploader;
    let carried = uploader.uplinkBytesPerS;
    let viewers = view.isSource ? 0 : 1;
    for (const peer of view.peers) {
      carried += this.#upOf(peer);
      if (peer.info.role !== "source") viewers++;
    }
    return POLICY.loadLimit * carried < POLICY.scarceShare * viewers * view.rate.bytesPerS;
  }

  /** Subscriptions to take while the uplink was never the limit: more and more, as long as that works. */
  get #slotsUnmeasured(): number {
    const shown = this.#uploader.shownBytesPerS;
    const carried = this.#uploader.carriedBytesPerS;
    if (shown === 0 && !this.#view.isSource) return POLICY.firstSlots;
    const most = POLICY.unmeasuredSlots + this.#slotsOf(carried);
    if (shown === 0 || shown === Infinity) return most;
    return Math.min(most, this.#slotsOf(POLICY.loadLimit * shown));
  }

  /** Subscriptions that fill `bytesPerS`. */
  #slotsOf(bytesPerS: number): number {
    return Math.floor(bytesPerS * this.#view.substreams / this.#view.rate.bytesPerS);
  }

  /** True when it would take more children than it has. */
  get hasPlaces(): boolean {
    return this.total < this.#slots;
  }

  #hasRoom(substream: number): boolean {
    // Everything would hang on one child again, and that one may stop as well.
    if (this.#isLacked(substream) && this.count(substream) < POLICY.lackedPlaces) {
      const most = this.#slotsOf(POLICY.scarceLoadLimit * this.#uploader.uplinkBytesPerS);
      if (this.total < most) return true;
    }
    if (!this.hasPlaces) return false;
    // The source feeds each tree before any gets a second branch.
    return !this.#view.isSource || this.count(substream) <= Math.min(...this.#seats.counts);
  }

  /**
   * The substream with the most children, when it has three times as many as `substream`: it gives one of them up.
   * Otherwise a tree dies or stays thin if all the uplink of its few members near the source is taken by other trees.
   */
  #overfull(substream: number): number | null {
    if (this.#slots === 0) return null;
    const { counts } = this.#seats;
    const most = counts.indexOf(Math.max(...counts));
    return counts[most]! >= Math.max(2, 3 * counts[substream]!) ? most : null;
  }
}
