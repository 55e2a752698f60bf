/** Finds the place where a newcomer enters the stream. */
import type { Clock } from "../../../ports.ts";
import { FLAG_RANDOM_ACCESS, type PieceHeader } from "../../header.ts";
import type { LivePeer } from "../neighbour/live-peer.ts";
import { windowNewest } from "../../messages.ts";
import { POLICY } from "../policy.ts";

/** Verified headers kept per peer while joining: its newest, and the random access points before that. */
const HEADERS_PER_PEER = 4;

/** The place found. */
export interface JoinPoint {
  /** First piece to fetch. */
  readonly base: number;
  /** Verified headers from there on, including the edge. */
  readonly headers: readonly PieceHeader[];
}

/** Collects what peers show of the edge, and decides once enough have. */
export class Joiner {
  readonly #clock: Pick<Clock, "now">;
  readonly #shown = new Map<LivePeer, PieceHeader[]>();
  #firstMs: number | null = null;
  /** The edge as first seen, and as it is now, each with its monotonic ms: an edge that moves on belongs to a live stream. */
  #first: { readonly header: PieceHeader; readonly atMs: number } | null = null;
  #last: { readonly header: PieceHeader; readonly atMs: number } | null = null;
  /** The place is found. */
  done = false;
  /** Pieces up to here are fetched at once, without waiting for pushes to fail. */
  urgentUntil = -1;
  /** Own wall clock minus the capture time of the newest piece that was shown, ms; null before there was one. */
  behindMs: number | null = null;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** `peer` sent a header that verified. */
  headerOf(peer: LivePeer, header: PieceHeader): void {
    const list = this.#shown.get(peer) ?? [];
    list.push(header);
    // Headers verify in any order, and a fast stream has many new ones: drop the oldest one at which nobody can start.
    list.sort((a, b) => (isNewer(a, b) ? 1 : -1));
    if (list.length > HEADERS_PER_PEER) {
      const useless = list.findIndex((one, i) => i < list.length - 1 && (one.flags & FLAG_RANDOM_ACCESS) === 0);
      list.splice(Math.max(0, useless), 1);
    }
    this.#shown.set(peer, list);
  }

  /** The place to enter, once three peers (or all there are) have shown their edge; null before. */
  decide(peers: ReadonlySet<LivePeer>, nowMs: number): JoinPoint | null {
    for (const peer of this.#shown.keys()) if (peer.closed) this.#shown.delete(peer);
    if (this.#shown.size === 0) return null;
    this.#firstMs ??= nowMs;
    let able = 0;
    for (const peer of peers) if (peer.window === null || windowNewest(peer.window) >= peer.window.base) able++;
    const wanted = Math.min(POLICY.quorum, able);
    if (this.#shown.size < wanted && nowMs - this.#firstMs < POLICY.joinWaitMs) return null;
    const all = [...this.#shown.values()].flat();
    const edge = all.reduce((best, header) => (isNewer(header, best) ? header : best));
    if (!this.#isLive(edge, nowMs)) return null;
    const usable = all.filter((header) => header.epoch === edge.epoch).sort((a, b) => a.seq - b.seq);
    const starts = usable.filter((header) => (header.flags & FLAG_RANDOM_ACCESS) !== 0);
    const start = starts.at(-1) ?? edge;
    this.done = true;
    this.urgentUntil = edge.seq;
    this.#shown.clear();
    return { base: start.seq, headers: usable.filter((header) => header.seq >= start.seq) };
  }

  /**
   * False while `edge` may be left over from a stream that has ended. Wall clocks are only a hint, since any of them may
   * be wrong by hours: an edge that seems too old is still live when it moves on.
   */
  #isLive(edge: PieceHeader, nowMs: number): boolean {
    this.behindMs = this.#clock.now() - edge.timestampMs;
    if (this.behindMs <= POLICY.staleMs) return true;
    if (this.#first?.header.epoch !== edge.epoch) this.#first = { header: edge, atMs: nowMs };
    if (this.#last?.header.bytes !== edge.bytes) this.#last = { header: edge, atMs: nowMs };
    const movedMs = edge.timestampMs - this.#first.header.timestampMs;
    return Math.min(movedMs, this.#last.atMs - this.#first.atMs) >= POLICY.aliveMs;
  }
}

function isNewer(a: PieceHeader, b: PieceHeader): boolean {
  return a.epoch !== b.epoch ? a.epoch > b.epoch : a.timestampMs > b.timestampMs;
}
