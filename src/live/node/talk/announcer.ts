/** What a member reports to its neighbours about itself: its WINDOW, the headers a newcomer needs, and its PLACE in the trees. */
import { encodeLiveMessage, windowNewest } from "../../messages.ts";
import type { Children } from "../trees/children.ts";
import type { LivePeer } from "../neighbour/live-peer.ts";
import type { NodeView } from "../neighbour/node-view.ts";
import { Notes } from "../neighbour/notes.ts";
import type { Parents } from "../trees/parents.ts";
import {
  changedPaths,
  emptyPaths,
  extendPath,
  isSmallChange,
  type Place,
  samePlace,
  UNFED,
} from "../neighbour/place.ts";
import { POLICY } from "../policy.ts";
import type { Uploader } from "../line/uploader.ts";

/** What was last announced to a neighbour, and when. Times are monotonic ms. */
interface Told {
  /** Last PLACE; null before the first. */
  place: Place | null;
  placeMs: number;
  /** When a change that is not small (`isSmallChange`) was last announced to it. */
  movedMs: number;
  /** Version of the window in its last WINDOW; -1 before the first. */
  windowVersion: number;
  windowMs: number;
}

/** Sends WINDOW, HEADER and PLACE to the neighbours of one member. */
export class Announcer {
  readonly #view: NodeView;
  readonly #uploader: Uploader;
  readonly #parents: Parents;
  readonly #children: Children;
  readonly #told = new Notes<Told>(() => ({
    place: null,
    placeMs: -Infinity,
    movedMs: -Infinity,
    windowVersion: -1,
    windowMs: -Infinity,
  }));
  /** Our PLACE at the last tick; null before the first. */
  #latest: Place | null = null;
  /** Substreams that came from the source at the last check. */
  #fedMask = 0;

  constructor(view: NodeView, uploader: Uploader, parents: Parents, children: Children) {
    this.#view = view;
    this.#uploader = uploader;
    this.#parents = parents;
    this.#children = children;
  }

  /** Reports to everybody what has changed, each at most as often as `POLICY.windowIntervalMs` says. */
  tick(nowMs: number): void {
    this.warn(nowMs);
    this.#latest = this.#place(nowMs);
    for (const peer of this.#view.peers) {
      const place = this.#placeFor(peer, this.#latest);
      const isDue = this.#isWindowDue(peer, nowMs) || this.#isPlaceDue(peer, place, nowMs, false);
      if (isDue) peer.sendEncoded(this.#reports(peer, place, nowMs), nowMs);
    }
  }

  /** What there is to report to `peer`, encoded, when something else goes to it: otherwise it would go a little later, on its own. */
  news(peer: LivePeer, nowMs: number, withWindow: boolean): Uint8Array[] {
    if (this.#told.of(peer).place === null) return this.#introduction(peer, nowMs);
    // Whether a substream reaches us may have changed since the last tick, and a new parent judges us by that.
    const place = withWindow ? this.#place(nowMs) : this.#latest;
    return place === null ? [] : this.#reports(peer, this.#placeFor(peer, place), nowMs, withWindow);
  }

  /** Sends `peer`, which has just connected, what it needs to join through us, unless it got that as `news`. */
  introduce(peer: LivePeer, nowMs: number): void {
    if (this.#told.of(peer).place === null) peer.sendEncoded(this.#introduction(peer, nowMs), nowMs);
  }

  /** Sends `peer` our PLACE at once, if it has changed. */
  answer(peer: LivePeer, nowMs: number): void {
    const place = this.#placeFor(peer, this.#place(nowMs));
    const told = this.#told.of(peer).place;
    if (told === null || !samePlace(place, told)) this.#tellPlace(peer, place, nowMs);
  }

  /**
   * Reports to everybody at once that our uplink has turned out to be much larger: who refused us as a weak member is about
   * to be asked again, and would refuse again.
   */
  tellUplink(nowMs: number): void {
    const up = this.#uploader.toldBytesPerS;
    if (up === null) return;
    let place: Place | null = null;
    for (const peer of this.#view.peers) {
      const told = this.#told.of(peer).place;
      if (told === null || up <= POLICY.strongerBy * (told.upBytesPerS ?? 0)) continue;
      place ??= this.#place(nowMs);
      this.#tellPlace(peer, this.#placeFor(peer, place), nowMs);
    }
  }

  /** WINDOW, the header of the piece where a newcomer would start, the newest header, and PLACE. */
  #introduction(peer: LivePeer, nowMs: number): Uint8Array[] {
    const place = this.#placeMessage(peer, this.#placeFor(peer, this.#place(nowMs)), nowMs);
    return [this.#window(peer), ...this.#headers(peer), place];
  }

  /** The headers at which `peer` would start and at the edge, unless it has them. */
  #headers(peer: LivePeer): Uint8Array[] {
    const { window } = this.#view;
    // While the first piece of a group is still on its way to us, a newcomer can fetch it from others.
    const start = window.accessPoint() ?? window.accessHeader();
    return [start, window.newest].flatMap((header) => {
      return header !== null && peer.knowsHeader(header.seq)
        ? [encodeLiveMessage({ type: "header", bytes: header.bytes })]
        : [];
    });
  }

  #window(peer: LivePeer): Uint8Array {
    this.#told.of(peer).windowVersion = this.#view.window.version;
    return this.#view.window.encodedMessage();
  }

  /** WINDOW and PLACE for `peer`, whichever is due when it needs no packet of its own. */
  #reports(peer: LivePeer, place: Place, nowMs: number, withWindow = false): Uint8Array[] {
    const reports: Uint8Array[] = [];
    const told = this.#told.of(peer);
    const isChanged = told.windowVersion !== this.#view.window.version;
    if ((withWindow && isChanged) || this.#isWindowDue(peer, nowMs, POLICY.windowIntervalMs)) {
      if (isNewcomer(peer)) reports.push(...this.#headers(peer));
      told.windowMs = nowMs;
      reports.push(this.#window(peer));
    }
    if (this.#isPlaceDue(peer, place, nowMs, true)) reports.push(this.#placeMessage(peer, place, nowMs));
    return reports;
  }

  /**
   * True when `peer` got our last WINDOW `intervalMs` ago or earlier, and has something to learn from the next one, or has heard
   * nothing from us for long.
   */
  #isWindowDue(peer: LivePeer, nowMs: number, intervalMs = this.#windowIntervalMs(peer)): boolean {
    const { window } = this.#view;
    const told = this.#told.of(peer);
    if (told.windowVersion === window.version || nowMs - told.windowMs < intervalMs) return false;
    return isNewcomer(peer) || window.hasNewFor(peer.window!, told.windowVersion) ||
      nowMs - peer.spokeMs >= POLICY.sparseWindowMs;
  }

  /**
   * Least time between two WINDOWs to `peer` that need a packet of their own. It is longer for one that hears the same from many
   * others, and longest for one that keeps up with the stream.
   */
  #windowIntervalMs(peer: LivePeer): number {
    const { windowIntervalMs, windowIntervalPerPeerMs, sparseWindowMs } = POLICY;
    const { window, rate, peers } = this.#view;
    if (isNewcomer(peer) || peer.place === null || peer.place.depths.includes(UNFED)) return windowIntervalMs;
    if (window.solid - peer.window!.solid <= rate.pieces(POLICY.keepsUpMs, 2)) return sparseWindowMs;
    return Math.min(sparseWindowMs, Math.max(windowIntervalMs, windowIntervalPerPeerMs * peers.size));
  }

  #place(nowMs: number): Place {
    const view = this.#view;
    const uploader = this.#uploader;
    const parents = this.#parents;
    const up = uploader.toldBytesPerS;
    const { step } = uploader;
    const depths = new Uint8Array(view.substreams);
    const bars = new Uint8Array(view.substreams);
    const paths = emptyPaths(view.substreams);
    for (let substream = 0; substream < depths.length; substream++) {
      const depth = view.isSource ? 0 : parents.depth(substream);
      depths[substream] = Math.min(UNFED, depth + step);
      bars[substream] = this.#children.bar(substream, nowMs);
      extendPath(paths, parents.path(substream), substream, view.mark);
    }
    return { upBytesPerS: up === null ? null : Math.round(up), depths, bars, paths };
  }

  /** `place` as reported to `peer`: a source puts that neighbour's tag into the paths. */
  #placeFor(peer: LivePeer, place: Place): Place {
    const tag = this.#children.atSource?.vouchers.tagOf(peer) ?? null;
    if (tag === null) return place;
    const paths = emptyPaths(this.#view.substreams);
    for (let substream = 0; substream < this.#view.substreams; substream++) extendPath(paths, null, substream, tag);
    return { ...place, paths };
  }

  #tellPlace(peer: LivePeer, place: Place, nowMs: number): void {
    peer.sendEncoded([this.#placeMessage(peer, place, nowMs)], nowMs);
  }

  /**
   * Reports to children at once when a substream ceases to reach us, or reaches us again: they choose parents by that.
   */
  warn(nowMs: number): void {
    const view = this.#view;
    if (view.isSource) return;
    let fed = 0;
    for (let s = 0; s < view.substreams; s++) if (this.#parents.depth(s) !== UNFED) fed |= 1 << s;
    const changed = this.#fedMask ^ fed;
    this.#fedMask = fed;
    if (changed === 0) return;
    const place = this.#place(nowMs);
    for (const peer of view.peers) if ((view.seats.pushMask(peer) & changed) !== 0) this.#tellPlace(peer, place, nowMs);
  }

  /**
   * True when `place` differs from what was announced to `peer`, and an update is due. `rides`: something else goes to it anyway.
   * WINDOWs do every `POLICY.sparseWindowMs`, so that small changes seldom need a packet of their own.
   */
  #isPlaceDue(peer: LivePeer, place: Place, nowMs: number, rides: boolean): boolean {
    const told = this.#told.of(peer);
    if (told.place === null) return true;
    const { windowIntervalMs, sparseWindowMs, idlePlaceMs, childPlaceMs } = POLICY;
    const isSmall = isSmallChange(place, told.place);
    const smallMs = (this.#view.seats.pushesAny(peer) ? childPlaceMs : idlePlaceMs) + (rides ? 0 : sparseWindowMs);
    if (isSmall ? nowMs - told.placeMs < smallMs : nowMs - told.movedMs < windowIntervalMs) return false;
    return !isSmall || !samePlace(place, told.place) || changedPaths(place, told.place) !== 0;
  }

  /** A PLACE for `peer`, encoded, and noted as sent. */
  #placeMessage(peer: LivePeer, place: Place, nowMs: number): Uint8Array {
    const told = this.#told.of(peer);
    const pathMask = changedPaths(place, told.place);
    if (told.place !== null && !isSmallChange(place, told.place)) told.movedMs = nowMs;
    told.place = place;
    told.placeMs = nowMs;
    return encodeLiveMessage({ type: "place", ...place, pathMask });
  }
}

/** True for one that has no piece yet. */
function isNewcomer({ window }: LivePeer): boolean {
  return window === null || windowNewest(window) < window.base;
}
