/** One neighbour in a live swarm: how the network reaches it, and what is known about it. */
import type { MillraceError } from "../../../errors.ts";
import { LinkFlight } from "./link-flight.ts";
import { bundled } from "../../bundle.ts";
import { encodeLiveMessage, type LiveMessage, windowHas, type WindowMessage, windowNewest } from "../../messages.ts";
import type { Place } from "./place.ts";
import { subnetOf } from "./subnet.ts";
import { BOUNDS } from "./bounds.ts";
import { RecentNumbers } from "./recent-numbers.ts";
import { TokenBucket } from "./token-bucket.ts";

/** A connection as the live swarm sees it. Methods never throw and never call back at once. */
export interface LiveLink {
  /** Sends a `live1` message. */
  send(message: Uint8Array): void;
  request(seq: number, offset: number, length: number): void;
  cancel(seq: number, offset: number, length: number): void;
  reject(seq: number, offset: number, length: number): void;
  /** Sends a block, requested or pushed. */
  piece(seq: number, offset: number, data: Uint8Array): void;
  /** Hangs up; `error` `protocol_violation` bans the peer. */
  close(error: MillraceError | null): void;
}

/** What the handshake says: `live: {v, role, up}`. */
export interface LivePeerInfo {
  /** As it says; see `LivePeer.isSource`. */
  readonly role: "source" | "viewer";
  /** Uplink as reported, bytes/s; null when unknown. Decides about places in the trees, never about trust. */
  readonly upBytesPerS: number | null;
  /** Its wall clock at the handshake, Unix ms; absent when not reported. */
  readonly clockMs?: number;
  /** It understands BUNDLE. Default false. */
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

/** A block that a neighbour was given. */
export interface GivenBlock {
  readonly seq: number;
  readonly block: number;
  readonly atMs: number;
}

/** State of a neighbour. */
export class LivePeer {
  readonly link: LiveLink;
  readonly info: LivePeerInfo;
  /** Network that it is connected from, as in `subnetOf`; null for our own, or when its host is not known. */
  readonly subnet: string | null;
  readonly connectedMs: number;
  /** Its wall clock minus ours when it connected, ms; null when not reported. */
  clockAheadMs: number | null = null;
  readonly windowBucket: TokenBucket;
  readonly headerBucket: TokenBucket;
  readonly pongBucket: TokenBucket;
  closed = false;
  /** It has proved that it is the broadcaster. */
  isSource = false;
  window: WindowMessage | null = null;
  /** Newest piece of its WINDOW; -1 without. */
  newestSeq = -1;
  /** How far behind the newest neighbour it was on average, pieces. */
  lagPieces = 0;
  /** WINDOWs that it has sent. */
  windows = 0;
  /** Its last WINDOW has not been examined yet. */
  unread = false;
  /** The last one that was examined; null when it reported pieces beyond reach. */
  noted: WindowMessage | null = null;
  forgedHeaders = 0;
  /** Blocks that it has from others, so that they need not be pushed to it. */
  readonly unwanted = new Set<number>();
  /** Substreams that it pushes to us, and we to it. */
  parentMask = 0;
  childMask = 0;
  /** Substreams that we push to it only until it has found another parent, at most until `noticeUntilMs`. */
  noticeMask = 0;
  noticeUntilMs = 0;
  /** Monotonic ms until which it gets no more of our places: its connection does not carry those it has. */
  narrowUntilMs = -Infinity;
  /** Substreams that it gets once it has proved itself, until `heldUntilMs`, and the first piece it wants of them. */
  heldMask = 0;
  heldFrom = 0;
  heldUntilMs = 0;
  /** The block sent to it lately, while it has delivered nothing; null before. */
  given: GivenBlock | null = null;
  /** Monotonic ms at which it was asked for a proof for the first time; null before. */
  proofAskedMs: number | null = null;
  /** Headers that it is known to have. */
  readonly #headers = new RecentNumbers();
  /** Its headers under verification, with the blocks that wait for them. */
  readonly verifying = new Map<number, (() => void)[]>();
  waitingBlocks = 0;
  /**
   * Substreams that we push to it without headers, and those that we asked it to push without headers: see
   * `Headerless`.
   */
  leanMask = 0;
  toldLean = 0;
  /**
   * It is to be asked for these headers and told `toldLean`; null when it knows all that. That goes along with the PONG to
   * the PING behind the block that has just come, or with what else is sent to it before the next tick.
   */
  dueHeaders: number[] | null = null;
  readonly requests = new Map<number, OwnRequest>();
  /** Its last PLACE; null while it has sent none. */
  place: Place | null = null;
  /** PLACE last sent to it. */
  placeSent: Place | null = null;
  placeSentMs = -Infinity;
  /** Monotonic ms at which it was told of a change that is not small (`isSmallChange`). */
  movedSentMs = -Infinity;
  /**
   * Substream → the newest piece when it was given older ones. It gets those only once, however often it subscribes.
   */
  readonly caughtUp = new Float64Array(8).fill(-1);
  /** Substream → monotonic ms since when it is our child. */
  readonly childSinceMs = new Float64Array(8);
  /** Substream → monotonic ms until which it isn't asked to be parent: it refused, or it brought too little. */
  readonly refusedUntilMs = new Float64Array(8);
  readonly shunnedUntilMs = new Float64Array(8);
  snubbedUntilMs = -Infinity;
  /** It has brought something as a parent. */
  hasBrought = false;
  /** How often it was asked to be parent and brought nothing, and monotonic ms until which it isn't asked again. */
  barrenTimes = 0;
  barrenUntilMs = -Infinity;
  /**
   * How often nobody was fed through it as a child of a source, and monotonic ms until which it gets no other trial.
   */
  failedTrials = 0;
  barredUntilMs = -Infinity;
  /** Monotonic ms until which it gets no request, because it rejected one. */
  pullAfterMs = -Infinity;
  lastBlockMs = -Infinity;
  /** Verified payload that it has sent, bytes. */
  deliveredBytes = 0;
  /** Monotonic ms at which it said something last, and at which it had something new to say: see `Silence`. */
  heardMs: number;
  dueMs = -Infinity;
  /** What is under way to it. */
  readonly flight = new LinkFlight();
  /** Blocks that it has sent: each may be followed by a PING that needs a PONG. */
  owedPongs = 0;
  windowVersion = -1;
  windowSentMs = -Infinity;
  /** Monotonic ms at which we said something to it last. */
  spokeMs = -Infinity;
  /** What we have to report to it, encoded, because it is written to anyway. Set by the node. */
  news: (nowMs: number, withWindow: boolean) => Uint8Array[] = () => [];

  constructor(link: LiveLink, info: LivePeerInfo, nowMs: number) {
    this.link = link;
    this.info = info;
    this.subnet = info.host === undefined ? null : subnetOf(info.host);
    this.connectedMs = this.heardMs = nowMs;
    this.windowBucket = new TokenBucket(BOUNDS.windowsPerS, nowMs);
    this.headerBucket = new TokenBucket(BOUNDS.headersPerS, nowMs);
    this.pongBucket = new TokenBucket(BOUNDS.pongsPerS, nowMs);
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
    const news = this.info.takesBundles === true ? this.news(nowMs, withWindow) : [];
    this.sendEncoded([...news, ...this.#takeHeaders(), encodeLiveMessage(message)], nowMs);
  }

  /** Sends what is due of HEADERS, unless it went along with another message. */
  tellHeaders(nowMs: number): void {
    this.sendEncoded(this.#takeHeaders(), nowMs);
  }

  /** What is due of HEADERS, encoded. */
  #takeHeaders(): Uint8Array[] {
    const seqs = this.dueHeaders;
    this.dueHeaders = null;
    return seqs === null ? [] : [encodeLiveMessage({ type: "headers", lean: this.toldLean, seqs })];
  }

  /** Sends encoded messages at `nowMs`, in as few BUNDLEs as hold them if the peer understands those. */
  sendEncoded(messages: readonly Uint8Array[], nowMs: number): void {
    if (this.closed || messages.length === 0) return;
    this.spokeMs = nowMs;
    const whole = this.info.takesBundles === true ? bundled(messages) : messages;
    for (const message of whole) this.link.send(message);
  }

  /** It has delivered a genuine block. Its claim to be the source proves nothing. */
  get isProven(): boolean {
    return this.deliveredBytes > 0;
  }

  /** It reported uplink to spare. */
  get hasRoom(): boolean {
    return this.place !== null && this.place.bars.includes(0);
  }

  /** Substreams that it gets from us. */
  get pushMask(): number {
    return this.childMask | this.noticeMask;
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
   * Notes that it has the header of `seq`. Returns whether that is new, as far as the last few hundred headers show.
   */
  knowsHeader(seq: number): boolean {
    return this.#headers.add(seq);
  }

  isSnubbed(nowMs: number): boolean {
    return nowMs < this.snubbedUntilMs;
  }
}
