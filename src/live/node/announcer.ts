/** What a member reports to its neighbours about itself: its WINDOW, the headers a newcomer needs, and its PLACE in the trees. */
import { windowNewest } from "../messages.ts";
import type { LivePeer } from "./live-peer.ts";
import type { PieceWindow } from "./piece-window.ts";
import { emptyPaths, extendPath, type Mark, type Place, samePaths, samePlace, UNFED } from "./place.ts";
import { POLICY } from "./policy.ts";

/** What it reports. */
export interface AnnouncerHost {
  readonly isSource: boolean;
  readonly substreams: number;
  readonly window: PieceWindow;
  readonly peers: ReadonlySet<LivePeer>;
  /** The mark we leave in the paths of those below us. */
  readonly mark: Mark;
  /** Paths of our parent on a substream; null without one. */
  path(substream: number): Uint32Array | null;
  /** The source's tag for a neighbour, its whole path; null for a viewer. */
  tagOf(peer: LivePeer): Mark | null;
  /** Our own depth on a substream; `UNFED` when it does not reach us. */
  depth(substream: number): number;
  /** As in `Place.bars`. */
  bar(substream: number, nowMs: number): number;
  /** Depth that a step from us adds. */
  step(): number;
  /** As in `Place`. */
  toldUpBytesPerS(): number | null;
}

/** Sends WINDOW, HEADER and PLACE to the neighbours of one member. */
export class Announcer {
  private readonly host: AnnouncerHost;
  /** Substreams that came from the source when last looked at. */
  private fedMask = 0;

  constructor(host: AnnouncerHost) {
    this.host = host;
  }

  /** Reports to everybody what has changed, each at most as often as `POLICY.windowIntervalMs` says. */
  tick(nowMs: number): void {
    this.warn(nowMs);
    const place = this.place(nowMs);
    for (const peer of this.host.peers) {
      this.announce(peer, nowMs);
      this.announcePlace(peer, place, nowMs);
    }
  }

  /** What a newcomer needs to join through us: WINDOW, the newest header, and the header of the piece where it would start. */
  introduce(peer: LivePeer, nowMs: number): void {
    this.sendWindow(peer);
    this.sendHeaders(peer);
    this.announcePlace(peer, this.place(nowMs), nowMs);
  }

  /** Sends `peer` our PLACE at once, if it has changed. */
  answer(peer: LivePeer, nowMs: number): void {
    const place = this.placeFor(peer, this.place(nowMs));
    if (peer.placeSent === null || !samePlace(place, peer.placeSent)) this.tellPlace(peer, place, nowMs);
  }

  private sendHeaders(peer: LivePeer): void {
    for (const header of [this.host.window.accessPoint(POLICY.joinBehindMs), this.host.window.newest]) {
      if (header !== null && peer.knowsHeader(header.seq)) peer.send({ type: "header", bytes: header.bytes });
    }
  }

  private sendWindow(peer: LivePeer): void {
    peer.windowVersion = this.host.window.version;
    peer.sendEncoded(this.host.window.encodedMessage());
  }

  private announce(peer: LivePeer, nowMs: number): void {
    if (peer.windowVersion === this.host.window.version) return;
    if (nowMs - peer.windowSentMs < POLICY.windowIntervalMs) return;
    if (peer.window === null || windowNewest(peer.window) < peer.window.base) this.sendHeaders(peer);
    peer.windowSentMs = nowMs;
    this.sendWindow(peer);
  }

  private place(nowMs: number): Place {
    const { host } = this;
    const up = host.toldUpBytesPerS();
    const step = host.step();
    const depths = new Uint8Array(host.substreams);
    const bars = new Uint8Array(host.substreams);
    const paths = emptyPaths(host.substreams);
    for (let substream = 0; substream < depths.length; substream++) {
      const depth = host.isSource ? 0 : host.depth(substream);
      depths[substream] = Math.min(UNFED, depth + step);
      bars[substream] = host.bar(substream, nowMs);
      extendPath(paths, host.path(substream), substream, host.mark);
    }
    return { upBytesPerS: up === null ? null : Math.round(up), depths, bars, paths };
  }

  /** `place` as `peer` shall know it. */
  private placeFor(peer: LivePeer, place: Place): Place {
    const tag = this.host.tagOf(peer);
    if (tag === null) return place;
    const paths = emptyPaths(this.host.substreams);
    for (let substream = 0; substream < this.host.substreams; substream++) extendPath(paths, null, substream, tag);
    return { ...place, paths };
  }

  private announcePlace(peer: LivePeer, base: Place, nowMs: number): void {
    const { placeSent } = peer;
    const place = this.placeFor(peer, base);
    if (placeSent !== null) {
      const waitMs = samePlace(place, placeSent) ? POLICY.pathIntervalMs : POLICY.windowIntervalMs;
      if (nowMs - peer.placeSentMs < waitMs) return;
      if (waitMs === POLICY.pathIntervalMs && samePaths(place, placeSent)) return;
    }
    this.tellPlace(peer, place, nowMs);
  }

  private tellPlace(peer: LivePeer, place: Place, nowMs: number): void {
    const isSameWay = peer.placeSent !== null && samePaths(place, peer.placeSent);
    peer.placeSent = place;
    peer.placeSentMs = nowMs;
    peer.send({ type: "place", ...place, paths: isSameWay ? null : place.paths });
  }

  /** Reports to children at once what no longer reaches us, or does again: others choose them as parents by that. */
  warn(nowMs: number): void {
    const { host } = this;
    if (host.isSource) return;
    let fed = 0;
    for (let s = 0; s < host.substreams; s++) if (host.depth(s) !== UNFED) fed |= 1 << s;
    const changed = this.fedMask ^ fed;
    this.fedMask = fed;
    if (changed === 0) return;
    const place = this.place(nowMs);
    for (const peer of host.peers) if ((peer.pushMask & changed) !== 0) this.tellPlace(peer, place, nowMs);
  }
}
