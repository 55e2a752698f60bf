/**
 * Payload on its way to neighbours. A PING follows each block on the same connection, so its PONG says that the block
 * has arrived, and when. That a socket accepted the block says neither. The amount of payload in the network is just
 * enough to keep the line busy. Everything else waits in the node, where it can still be shed or overtaken.
 */
import { BLOCK_BYTES } from "../../../wire/types.ts";
import { LineMeter } from "./line-meter.ts";
import { LineProbe } from "./line-probe.ts";
import { type LinkFlight, newNonce, type UnansweredPing } from "../neighbour/link-flight.ts";
import { laneStalledMs, type LiveLane } from "../neighbour/live-lane.ts";
import type { LivePeer } from "../neighbour/live-peer.ts";
import { encodeLiveMessage } from "../../messages.ts";
import { POLICY } from "../policy.ts";

/** PINGs without a response on one connection: more blocks than that are acknowledged together. */
const MAX_MARKS = 32;
/** Less payload than this needs no PING of its own, bytes. */
const LEAST_MARKED_BYTES = 4096;
/** A connection may always have this much under way, bytes, whatever the others have. */
const LEAST_LINK_BYTES = 2 * BLOCK_BYTES;
/**
 * How far one connection may exceed the window while all payload under way is its own, bytes: a block for another
 * connection. A neighbour that takes nothing could otherwise fill the window. Then nothing would arrive anywhere else,
 * which is how its stall is noticed, and viewers near the edge would lose a piece.
 */
const OTHERS_BYTES = BLOCK_BYTES;
/** A connection counts as held up after this long without a hand-over or arrival, ms: two blocks usually take less. */
const HELD_UP_MS = 50;
/** Share of the window that one connection may fill, so that a slow one does not keep the others waiting. */
const LINK_SHARE = 0.75;
/** A block that waits longer than others by this much waited for its connection, and not for our line, ms. */
const NARROW_MS = 100;
/** Payload of a connection on which nothing has arrived for this long does not hold up others, ms. */
const STALLED_MS = 1000;
/**
 * The same while others receive theirs, ms: then our line is not the cause. It is less than a player that joined 0.3 s
 * behind the edge can lose without missing a piece.
 */
const ALONE_MS = 250;
/** Lost time that the pace makes up for, ms: timers come late. */
const SAVED_MS = 10;

/** What a flight depends on. */
export interface FlightOptions {
  /** The line's assumed rate until something is measured. */
  readonly guessBytesPerS: () => number;
  /** True when a user stated that rate. */
  readonly isTold: boolean;
  /** True when the line is to be measured before it is used. */
  readonly isProbed: boolean;
  /** Limit on what is handed over, whatever the line carries, bytes/s. */
  readonly limitBytesPerS: number;
  readonly random: () => number;
}

/** The payload of one member that is under way, over all its connections. */
export class Flight {
  readonly line: LineMeter;
  readonly #probe: LineProbe | null;
  readonly #random: () => number;
  /** Neighbours whose least times are not settled. */
  readonly #unsettled = new Set<LivePeer>();
  #inFlight = 0;
  /** Connections with payload under way. */
  #busyLinks = 0;
  #arrivedMs = -Infinity;
  /** Monotonic ms at which a block was handed over last. */
  #handedMs = -Infinity;
  /** Monotonic ms at which the next block may go, for the pace's sake. */
  #paceMs = -Infinity;
  readonly #limitBytesPerS: number;
  /** More waits in the node than the network may be given. Set by the caller that hands blocks over. */
  isLimited = false;

  constructor(options: FlightOptions) {
    this.line = new LineMeter(options.guessBytesPerS, options.isTold);
    this.#limitBytesPerS = options.limitBytesPerS;
    this.#random = options.random;
    this.#probe = options.isProbed ? new LineProbe(this.line, options.random) : null;
  }

  /** Payload under way, bytes, without that of connections that are set aside. */
  get inFlightBytes(): number {
    return this.#inFlight;
  }

  /** True when the network may be given another block. */
  hasRoom(nowMs: number): boolean {
    const isHeldUp = this.#busyLinks === 1 && nowMs - Math.max(this.#arrivedMs, this.#handedMs) > HELD_UP_MS;
    const mostBytes = this.line.windowBytes + (isHeldUp ? OTHERS_BYTES : 0);
    return this.#inFlight < mostBytes && this.#paceMs <= nowMs;
  }

  /** Time until the pace allows another block, ms; 0 when it does. */
  pauseMs(nowMs: number): number {
    return Math.max(0, this.#paceMs - nowMs);
  }

  /** True when no connection to `peer` may have more under way. */
  isFull(peer: LivePeer): boolean {
    return this.laneTo(peer) === null;
  }

  /** True when the connection has as much under way as one may have. */
  isLaneFull({ flight }: LiveLane): boolean {
    const mostBytes = Math.min(flight.mostBytes, LINK_SHARE * this.line.windowBytes);
    return flight.isAside || flight.unackedBytes >= Math.max(LEAST_LINK_BYTES, mostBytes);
  }

  /** The connection of `peer` with the least under way; null when each is full, or both together have as much as one may have. */
  laneTo({ lane, lanes, spares }: LivePeer): LiveLane | null {
    if (spares.length === 0) return this.isLaneFull(lane) ? null : lane;
    let unackedBytes = 0;
    let least: LiveLane | null = null;
    for (const one of lanes) {
      unackedBytes += one.flight.unackedBytes;
      if (this.isLaneFull(one)) continue;
      if (least === null || one.flight.unackedBytes < least.flight.unackedBytes) least = one;
    }
    const mostBytes = Math.max(2 * LEAST_LINK_BYTES, LINK_SHARE * this.line.windowBytes);
    return unackedBytes < mostBytes ? least : null;
  }

  /** For how long payload has been under way to `peer` without any of it arriving, ms. */
  stalledMs({ lane, spares }: LivePeer, nowMs: number): number {
    let stalledMs = laneStalledMs(lane, nowMs);
    for (const spare of spares) {
      if (spare.flight.unackedBytes > 0) stalledMs = Math.min(stalledMs, laneStalledMs(spare, nowMs));
    }
    return stalledMs;
  }

  /** `bytes` of payload were just handed over for `peer` on `lane`. */
  handed(peer: LivePeer, bytes: number, nowMs: number, lane = peer.lane): void {
    const { flight } = lane;
    const pace = Math.min(this.#limitBytesPerS, this.line.paceBytesPerS(nowMs));
    this.#paceMs = Math.max(this.#paceMs, nowMs - SAVED_MS) + bytes / pace * 1000;
    this.#handedMs = nowMs;
    this.#uncount(flight);
    if (flight.unackedBytes === 0) flight.movedMs = nowMs;
    flight.unackedBytes += bytes;
    flight.unmarkedBytes += bytes;
    this.#count(flight);
    if (flight.unmarkedBytes >= LEAST_MARKED_BYTES && flight.marks.length < MAX_MARKS) this.mark(peer, nowMs, lane);
  }

  /**
   * Sends `peer` a PING. Its PONG gives the round trip, and says that everything handed over before it has arrived. The
   * first PING goes before any block: later round trips are compared with that one.
   */
  mark(peer: LivePeer, nowMs: number, lane = peer.lane): void {
    const { flight } = lane;
    const nonce = newNonce(this.#random);
    let bytes = flight.unmarkedBytes;
    if (flight.marks.length >= MAX_MARKS) bytes += flight.marks.pop()!.bytes;
    flight.marks.push({ nonce, bytes, aheadBytes: this.#aheadBytes, sentMs: nowMs });
    flight.unmarkedBytes = 0;
    flight.markedMs = nowMs;
    if (!flight.isSettled) this.#unsettled.add(peer);
    if (lane === peer.lane) peer.sendWithNews({ type: "ping", nonce }, nowMs);
    else lane.link.send(encodeLiveMessage({ type: "ping", nonce }));
  }

  /**
   * `peer` sent a PING with `nonce`, or a PONG with that and the time `atMs` at which ours came; false when it is not one of
   * ours, and so wants a PONG.
   */
  echoed(peer: LivePeer, nonce: bigint, atMs: number | null, nowMs: number): boolean {
    const lane = peer.spares.find((spare) => hasMark(spare, nonce)) ?? peer.lane;
    const { flight } = lane;
    const at = flight.marks.findIndex((mark) => mark.nonce === nonce);
    if (at < 0) return this.#probe?.echoed(peer, nonce, atMs, nowMs) ?? false;
    const last = flight.marks[at]!;
    let bytes = 0;
    for (const mark of flight.marks.splice(0, at + 1)) bytes += mark.bytes;
    const queuedMs = last.aheadBytes === 0 ? null : this.line.queuedMs(nowMs);
    const ownMs = last.bytes / this.line.bytesPerS * 1000;
    const waitedMs = flight.measured({ sentMs: last.sentMs, atMs, queuedMs, ownMs }, nowMs);
    if (flight.isSettled) {
      this.#unsettled.delete(peer);
      this.#probe?.reached(peer, nowMs);
    }
    if (bytes > 0) this.#arrived(lane, bytes, last, waitedMs, nowMs);
    // A busy line is idle only for moments, and a guess stays wrong until one of them is used.
    for (const other of this.#unsettled) if (this.#isUnsure(other.flight)) this.mark(other, nowMs);
    if (flight.marks.length === 0 && flight.unmarkedBytes >= LEAST_MARKED_BYTES) this.mark(peer, nowMs, lane);
    return true;
  }

  /** The connections of `peer` are gone, with the payload under way. */
  drop(peer: LivePeer): void {
    this.#probe?.drop(peer);
    this.#unsettled.delete(peer);
    for (const lane of peer.lanes) this.dropLane(lane);
  }

  /** One connection is gone, with the payload under way. */
  dropLane({ flight }: LiveLane): void {
    this.#uncount(flight);
    flight.unackedBytes = flight.unmarkedBytes = 0;
    flight.marks.length = 0;
  }

  /**
   * Measures idle connections, and those whose least times are not settled while the line is idle; sets aside connections on
   * which nothing arrives, and pings them again. Once a tick.
   */
  tick(peers: Iterable<LivePeer>, nowMs: number): void {
    this.#probe?.tick(nowMs);
    const aloneMs = Math.max(ALONE_MS, 2000 * this.line.windowBytes / this.line.bytesPerS);
    for (const peer of peers) {
      for (const lane of peer.lanes) this.#tickLane(peer, lane, aloneMs, nowMs);
    }
  }

  #tickLane(peer: LivePeer, lane: LiveLane, aloneMs: number, nowMs: number): void {
    const { flight } = lane;
    const isUnsure = lane === peer.lane && this.#isUnsure(flight);
    if (isUnsure || nowMs - flight.markedMs >= POLICY.pingIntervalMs) this.mark(peer, nowMs, lane);
    if (flight.unackedBytes === 0) return;
    const silentMs = nowMs - flight.movedMs;
    if (silentMs > STALLED_MS / 2 && nowMs - flight.markedMs > STALLED_MS / 2) this.mark(peer, nowMs, lane);
    if (flight.isAside) return;
    const isAlone = silentMs > aloneMs && this.#arrivedMs - flight.movedMs > aloneMs;
    if (!isAlone && silentMs <= STALLED_MS) return;
    this.#uncount(flight);
    flight.isAside = true;
  }

  /** Payload under way over all connections, bytes, that of the probe included. */
  get #aheadBytes(): number {
    return this.#inFlight + (this.#probe?.underWayBytes ?? 0);
  }

  /** True when the least times of a connection can be measured now, on the idle line, and have to be. */
  #isUnsure(flight: LinkFlight): boolean {
    return !flight.isSettled && flight.marks.length === 0 && this.#aheadBytes === 0;
  }

  /** Adds the payload under way on a connection to the sum over all connections. */
  #count(flight: LinkFlight): void {
    if (flight.isAside || flight.unackedBytes === 0) return;
    this.#inFlight += flight.unackedBytes;
    this.#busyLinks++;
  }

  /** Subtracts it again, before it changes. */
  #uncount(flight: LinkFlight): void {
    if (flight.isAside || flight.unackedBytes === 0) return;
    this.#inFlight -= flight.unackedBytes;
    this.#busyLinks--;
  }

  #arrived({ flight }: LiveLane, bytes: number, last: UnansweredPing, waitedMs: number, nowMs: number): void {
    this.#uncount(flight);
    const aloneMs = waitedMs - last.bytes / this.line.bytesPerS * 1000 - this.line.leastWaitMs(nowMs);
    if (aloneMs > NARROW_MS) flight.mostBytes = Math.max(LEAST_LINK_BYTES, flight.unackedBytes / 2);
    else flight.mostBytes += bytes;
    flight.unackedBytes -= bytes;
    const wasAside = flight.isAside;
    flight.isAside = false;
    this.#count(flight);
    flight.movedMs = this.#arrivedMs = nowMs;
    // How long payload took on a connection that was set aside says nothing about our line.
    if (wasAside) return this.line.arrivedLate(bytes);
    const { aheadBytes } = last;
    const baseMs = flight.rttMs!;
    const isSure = !flight.isGuessed;
    this.line.arrived(
      {
        link: flight,
        bytes: last.bytes,
        aheadBytes,
        allBytes: bytes,
        waitedMs,
        baseMs,
        isSure,
        wasLimited: this.isLimited,
      },
      nowMs,
    );
  }
}

function hasMark({ flight }: LiveLane, nonce: bigint): boolean {
  return flight.marks.some((mark) => mark.nonce === nonce);
}
