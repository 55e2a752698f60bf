/** One neighbour in a live swarm: how the network reaches it, and what is known about it. */
import { bundled } from "../../bundle.ts";
import { LiveLane, type LiveLink } from "./live-lane.ts";
import type { LinkFlight } from "./link-flight.ts";
import { encodeLiveMessage, type LiveMessage, windowHas, type WindowMessage, windowNewest } from "../../messages.ts";
import type { Place } from "./place.ts";
import { subnetOf } from "./subnet.ts";
import { RecentNumbers } from "./recent-numbers.ts";

/** What the handshake says: `live: {v, role, up}`. */
export interface LivePeerInfo {
  /** As it says; see `LivePeer.isSource`. */
  readonly role: "source" | "viewer";
  /** Uplink as reported, bytes/s; null when unknown. Decides about places in the trees, never about trust. */
  readonly upBytesPerS: number | null;
  /** Its wall clock at the handshake, Unix ms; absent when not reported. */
  readonly clockMs?: number;
  /** The neighbour understands BUNDLE. Default false. */
  readonly takesBundles?: boolean;
  /** Its address without the port. A record about it is kept under this address after it has left; absent: none is. */
  readonly host?: string;
}

/** A request of ours. */
export interface OwnRequest {
  readonly seq: number;
  readonly block: number;
  /** Requested length: the whole block, or its beginning as a proof. */
  readonly bytes: number;
  readonly atMs: number;
}

/** State of a neighbour. */
export class LivePeer {
  /** The connection that everything but pushed blocks takes. It is there as long as the neighbour. */
  readonly lane: LiveLane;
  /** Others for pushed blocks. */
  readonly spares: LiveLane[] = [];
  readonly info: LivePeerInfo;
  /** Network that it is connected from, as in `subnetOf`; null for our own, or when its host is not known. */
  readonly subnet: string | null;
  readonly connectedMs: number;
  /** Its wall clock minus ours when it connected, ms; null when not reported. */
  clockAheadMs: number | null = null;
  closed = false;
  /** True once the neighbour has proved that it is the broadcaster. */
  isSource = false;
  window: WindowMessage | null = null;
  /** Newest piece of its WINDOW; -1 without. */
  newestSeq = -1;
  /** How far behind the newest neighbour it was on average, pieces. */
  lagPieces = 0;
  /** Headers that it is known to have. */
  readonly #headers = new RecentNumbers();
  readonly requests = new Map<number, OwnRequest>();
  /** Its last PLACE; null while it has sent none. */
  place: Place | null = null;
  /** Monotonic ms at which its last genuine block came. */
  lastBlockMs = -Infinity;
  /** Verified payload that it has sent, bytes. */
  deliveredBytes = 0;
  /** Monotonic ms at which it said something last, and at which it had something new to say: see `Silence`. */
  heardMs: number;
  dueMs = -Infinity;
  /** Monotonic ms at which we said something to it last. */
  spokeMs = -Infinity;
  /** What we have to say to it, encoded, because it is written to anyway. Set by the node. */
  news: (nowMs: number, withWindow: boolean) => Uint8Array[] = () => [];

  constructor(link: LiveLink, info: LivePeerInfo, nowMs: number) {
    this.lane = new LiveLane(link);
    this.info = info;
    this.subnet = info.host === undefined ? null : subnetOf(info.host);
    this.connectedMs = this.heardMs = nowMs;
  }

  get link(): LiveLink {
    return this.lane.link;
  }

  /** What is under way to it on its first connection. */
  get flight(): LinkFlight {
    return this.lane.flight;
  }

  /** Its connections, the first one first. */
  get lanes(): readonly LiveLane[] {
    return [this.lane, ...this.spares];
  }

  /** Least round trip of the last minutes, ms; null before the first. */
  get rttMs(): number | null {
    return this.flight.rttMs;
  }

  send(message: LiveMessage): void {
    if (!this.closed) this.link.send(encodeLiveMessage(message));
  }

  /** Uplink as last reported, bytes/s; null when unknown. */
  get upBytesPerS(): number | null {
    return this.place === null ? this.info.upBytesPerS : this.place.upBytesPerS;
  }

  /**
   * As `send`, at `nowMs`, behind what there is to report to it: a packet costs more than what is in it. `withWindow`: it is to
   * know which pieces we have now.
   */
  sendWithNews(message: LiveMessage, nowMs: number, withWindow = false): void {
    this.sendEncoded([...this.news(nowMs, withWindow), encodeLiveMessage(message)], nowMs);
  }

  /** Sends encoded messages at `nowMs`, in as few BUNDLEs as hold them if the peer understands those. */
  sendEncoded(messages: readonly Uint8Array[], nowMs: number): void {
    if (this.closed || messages.length === 0) return;
    this.spokeMs = nowMs;
    const whole = this.info.takesBundles === true ? bundled(messages) : messages;
    for (const message of whole) this.link.send(message);
  }

  /** True once the neighbour has delivered a genuine block. Its claim to be the source proves nothing. */
  get isProven(): boolean {
    return this.deliveredBytes > 0;
  }

  /** True when the neighbour reported spare uplink. */
  get hasRoom(): boolean {
    return this.place !== null && this.place.bars.includes(0);
  }

  has(seq: number): boolean {
    return this.window !== null && windowHas(this.window, seq);
  }

  setWindow(window: WindowMessage): void {
    // The bitmap is a view of what the network will use again.
    this.window = window.bitmap.length === 0 ? window : { ...window, bitmap: window.bitmap.slice() };
    this.newestSeq = windowNewest(window);
  }

  /**
   * Notes that it has the header of `seq`. Returns whether that is new among the last few hundred headers.
   */
  knowsHeader(seq: number): boolean {
    return this.#headers.add(seq);
  }

  /**
   * Notes that a block of `seq` goes to it over `lane`. Returns whether the header has to go before it: the neighbour does not have
   * it, or it may come later because it takes the other connection.
   */
  needsHeader(seq: number, lane: LiveLane): boolean {
    const isNew = this.knowsHeader(seq);
    if (this.spares.length === 0) return isNew;
    const isElsewhere = this.lanes.some((other) => other !== lane && other.headers.has(seq));
    return (isNew || isElsewhere) && lane.headers.add(seq);
  }
}
