/** What a member knows of the edge of the stream: the headers that verified, and where it entered. */
import { clockTrouble } from "./clock-trouble.ts";
import { decodeHeader, type PieceHeader } from "../../header.ts";
import { HeaderGate, isReplay } from "./header-gate.ts";
import type { Headerless } from "./headerless.ts";
import { Joiner } from "./joiner.ts";
import type { LivePeer } from "../neighbour/live-peer.ts";
import type { NodeView } from "../neighbour/node-view.ts";
import type { Sightings } from "./sightings.ts";

/** The edge of one stream, as one member knows it. */
export class Edge {
  readonly #view: NodeView;
  readonly #sightings: Sightings;
  readonly #headerless: Headerless;
  readonly #gate: HeaderGate;
  readonly #joiner: Joiner;

  constructor(view: NodeView, sightings: Sightings, headerless: Headerless) {
    this.#view = view;
    this.#sightings = sightings;
    this.#headerless = headerless;
    this.#joiner = new Joiner(view.clock);
    this.#gate = new HeaderGate(view, (peer, header) => this.#verified(peer, header));
  }

  /** True when the edge is known; a broadcaster always knows it. */
  get isKnown(): boolean {
    return this.#view.isSource || this.#joiner.done;
  }

  /** Pieces up to here are fetched at once, without waiting for pushes to fail. */
  get urgentUntil(): number {
    return this.#joiner.urgentUntil;
  }

  /** Our wall clock minus the capture time of the newest piece shown while joining, ms; null before there was one. */
  get behindMs(): number | null {
    return this.#joiner.behindMs;
  }

  /** What is wrong with wall clocks, ours or the broadcaster's; null when they agree, or before the edge is known. */
  get clockTrouble(): string | null {
    if (!this.#joiner.done) return null;
    const ahead = [...this.#view.peers].flatMap(({ clockAheadMs }) => (clockAheadMs === null ? [] : [clockAheadMs]));
    return clockTrouble(this.#joiner.behindMs, ahead);
  }

  /** `peer` sent an encoded header. Throws `protocol_violation` when it is malformed. */
  offered(peer: LivePeer, bytes: Uint8Array, nowMs: number): void {
    if (this.#gate.isKnown(peer, bytes)) return;
    this.#gate.offer(peer, decodeHeader(bytes, this.#view.pieceLengthBytes), nowMs);
  }

  /** True while a header of `peer` for piece `seq` is under verification. */
  isVerifying(peer: LivePeer, seq: number): boolean {
    return this.#gate.isVerifying(peer, seq);
  }

  /** As in `HeaderGate`. */
  await(peer: LivePeer, seq: number, again: () => void): boolean {
    return this.#gate.await(peer, seq, again);
  }

  /** Enters the stream once its edge is known: once a tick until then. */
  tick(nowMs: number): void {
    if (this.isKnown) return;
    const { window, peers } = this.#view;
    const start = this.#joiner.decide(peers, nowMs);
    if (start === null) return;
    window.reset(start.base);
    for (const header of start.headers) window.addHeader(header);
    this.#sightings.noteAll(nowMs);
  }

  #verified(peer: LivePeer, header: PieceHeader): void {
    if (!this.isKnown) return this.#joiner.headerOf(peer, header);
    const { window, isSource, clock } = this.#view;
    if (isSource || isReplay(header, window)) return;
    const isNewEpoch = header.epoch !== window.epoch;
    if (isNewEpoch) window.reset(header.seq);
    const entry = window.addHeader(header);
    const isFirst = entry !== null && entry.headerMs === null;
    if (isFirst) entry.headerMs = clock.monotonic();
    if (isNewEpoch) this.#sightings.noteAll(clock.monotonic());
    if (isFirst) this.#headerless.learned(peer, header.seq);
  }
}
