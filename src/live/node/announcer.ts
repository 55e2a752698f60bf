/** What a member reports to its neighbours about itself: its WINDOW, the headers a newcomer needs, and its PLACE in the trees. */
import { windowNewest } from "../messages.ts";
import type { Children } from "./children.ts";
import type { LivePeer } from "./live-peer.ts";
import type { NodeView } from "./node-view.ts";
import type { Parents } from "./parents.ts";
import { changedPaths, emptyPaths, extendPath, isSmallChange, type Place, samePlace, UNFED } from "./place.ts";
import { POLICY } from "./policy.ts";
import type { Uploader } from "./uploader.ts";

/** Sends WINDOW, HEADER and PLACE to the neighbours of one member. */
export class Announcer {
  readonly #view: NodeView;
  readonly #uploader: Uploader;
  readonly #parents: Parents;
  readonly #children: Children;
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
    const place = this.#place(nowMs);
    for (const peer of this.#view.peers) {
      this.#announce(peer, nowMs);
      this.#announcePlace(peer, place, nowMs);
    }
  }

  /**
   * Sends what a newcomer needs to join through us: WINDOW, the newest header, and the header of the piece where it
   * would start.
   */
  introduce(peer: LivePeer, nowMs: number): void {
    this.#sendWindow(peer);
    this.#sendHeaders(peer);
    this.#announcePlace(peer, this.#place(nowMs), nowMs);
  }

  /** Sends `peer` our PLACE at once, if it has changed. */
  answer(peer: LivePeer, nowMs: number): void {
    const place = this.#placeFor(peer, this.#place(nowMs));
    if (peer.placeSent === null || !samePlace(place, peer.placeSent)) this.#tellPlace(peer, place, nowMs);
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
      if (peer.placeSent === null || up <= POLICY.strongerBy * (peer.placeSent.upBytesPerS ?? 0)) continue;
      place ??= this.#place(nowMs);
      this.#tellPlace(peer, this.#placeFor(peer, place), nowMs);
    }
  }

  #sendHeaders(peer: LivePeer): void {
    const { window } = this.#view;
    // While the first piece of a group is still on its way to us, a newcomer can fetch it from others.
    const start = window.accessPoint() ?? window.accessHeader();
    for (const header of [start, window.newest]) {
      if (header !== null && peer.knowsHeader(header.seq)) peer.send({ type: "header", bytes: header.bytes });
    }
  }

  #sendWindow(peer: LivePeer): void {
    peer.windowVersion = this.#view.window.version;
    peer.sendEncoded(this.#view.window.encodedMessage());
  }

  #announce(peer: LivePeer, nowMs: number): void {
    const { window } = this.#view;
    if (peer.windowVersion === window.version) return;
    const isNewcomer = peer.window === null || windowNewest(peer.window) < peer.window.base;
    if (nowMs - peer.windowSentMs < this.#windowIntervalMs(peer, isNewcomer)) return;
    if (isNewcomer) this.#sendHeaders(peer);
    else if (!window.hasNewFor(peer.window!, peer.windowVersion)) {
      const spokeMs = Math.max(peer.windowSentMs, peer.placeSentMs, peer.flight.markedMs);
      if (nowMs - spokeMs < POLICY.sparseWindowMs) return;
    }
    peer.windowSentMs = nowMs;
    this.#sendWindow(peer);
  }

  /** Least time between two WINDOWs to `peer`. It may be longer for one that hears the same from many others. */
  #windowIntervalMs({ place }: LivePeer, isNewcomer: boolean): number {
    const { windowIntervalMs, windowIntervalPerPeerMs, sparseWindowMs } = POLICY;
    if (isNewcomer || place === null || place.depths.includes(UNFED)) return windowIntervalMs;
    return Math.min(sparseWindowMs, Math.max(windowIntervalMs, windowIntervalPerPeerMs * this.#view.peers.size));
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
    const tag = this.#children.atSource?.tagOf(peer) ?? null;
    if (tag === null) return place;
    const paths = emptyPaths(this.#view.substreams);
    for (let substream = 0; substream < this.#view.substreams; substream++) extendPath(paths, null, substream, tag);
    return { ...place, paths };
  }

  #announcePlace(peer: LivePeer, base: Place, nowMs: number): void {
    const { placeSent } = peer;
    const place = this.#placeFor(peer, base);
    if (placeSent !== null) {
      const isSmall = isSmallChange(place, placeSent);
      const smallMs = peer.pushMask === 0 ? POLICY.idlePlaceMs : POLICY.childPlaceMs;
      if (nowMs - peer.placeSentMs < (isSmall ? smallMs : POLICY.windowIntervalMs)) return;
      if (isSmall && samePlace(place, placeSent) && changedPaths(place, placeSent) === 0) return;
    }
    this.#tellPlace(peer, place, nowMs);
  }

  #tellPlace(peer: LivePeer, place: Place, nowMs: number): void {
    const pathMask = changedPaths(place, peer.placeSent);
    peer.placeSent = place;
    peer.placeSentMs = nowMs;
    peer.send({ type: "place", ...place, pathMask });
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
    for (const peer of view.peers) if ((peer.pushMask & changed) !== 0) this.#tellPlace(peer, place, nowMs);
  }
}
