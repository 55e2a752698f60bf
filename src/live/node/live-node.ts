/**
 * One member of a live swarm, broadcaster or viewer, apart from any network: links hand it messages and blocks, a clock
 * ticks, and it decides. The simulation runs this very class.
 */
import { MillraceError } from "../../errors.ts";
import { BLOCK_BYTES } from "../../wire/types.ts";
import { Announcer } from "./talk/announcer.ts";
import { Children } from "./trees/children.ts";
import type { Conduct } from "./neighbour/conduct.ts";
import { Edge } from "./fetch/edge.ts";
import { dueUntil, LiveFeed, oldestWanted } from "./stream/feed.ts";
import { blockCount, type PieceHeader } from "../header.ts";
import { Headerless } from "./fetch/headerless.ts";
import { Inbox } from "./talk/inbox.ts";
import { Intake } from "./fetch/intake.ts";
import type { LiveCounters } from "./live-counters.ts";
import { expendableOf } from "./neighbour/expendable.ts";
import type { LiveNodeOptions } from "./live-options.ts";
import { laneStalledMs, LiveLane, type LiveLink, MAX_SPARES } from "./neighbour/live-lane.ts";
import { LivePeer, type LivePeerInfo } from "./neighbour/live-peer.ts";
import { Parents } from "./trees/parents.ts";
import { NodeView } from "./neighbour/node-view.ts";
import { isStored, type PieceWindow } from "./stream/piece-window.ts";
import { POLICY } from "./policy.ts";
import type { SignedPiece } from "../broadcast/publisher.ts";
import { Probation } from "./talk/probation.ts";
import { Puller } from "./fetch/puller.ts";
import { Seats } from "./trees/seats.ts";
import { Serving } from "./talk/serving.ts";
import { Sightings } from "./fetch/sightings.ts";
import type { SeatBook } from "./neighbour/seat-book.ts";
import { Silence, silentMs } from "./neighbour/silence.ts";
import { Uploader } from "./line/uploader.ts";
import { Waker } from "./line/waker.ts";

/** The decisions of one member. Call `tick` every 100 ms or so. */
export class LiveNode {
  readonly uploader: Uploader;
  readonly #options: LiveNodeOptions;
  readonly #view: NodeView;
  readonly parents: Parents;
  readonly children: Children;
  readonly #puller: Puller;
  readonly #serving: Serving;
  readonly #intake: Intake;
  readonly probation: Probation;
  readonly #edge: Edge;
  readonly #sightings: Sightings;
  readonly #silence: Silence;
  readonly #announcer: Announcer;
  readonly #inbox: Inbox;
  readonly #feeds = new Set<LiveFeed>();
  readonly #waker: Waker;
  readonly #headerless: Headerless;

  constructor(options: LiveNodeOptions) {
    this.#options = options;
    const seats = new Seats(options.stream.substreams);
    const view = this.#view = new NodeView(options, seats, (peer, error) => this.#ban(peer, error));
    this.#waker = new Waker(options.clock, () => this.pump());
    const uploader = this.uploader = new Uploader(view, options, (afterMs) => this.#waker.wake(afterMs));
    const parents = this.parents = new Parents(view, uploader);
    const children = this.children = new Children(view, seats, uploader, parents);
    const announcer = this.#announcer = new Announcer(view, uploader, parents, children);
    const puller = this.#puller = new Puller(view, parents);
    const serving = this.#serving = new Serving(view, children, uploader, announcer);
    const probation = this.probation = new Probation(view, puller, serving, uploader);
    const sightings = this.#sightings = new Sightings(view);
    const headerless = this.#headerless = new Headerless(view, parents);
    const edge = this.#edge = new Edge(view, sightings, headerless);
    this.#silence = new Silence(view);
    this.#intake = new Intake(view, puller, parents, edge, headerless, {
      proved: (peer, bytes) => this.#proved(peer, bytes),
      store: (header, block, data, from) => this.#stored(header, block, data, from),
    });
    this.#inbox = new Inbox(view, { uploader, sightings, edge, probation, serving, children, parents, announcer });
  }

  /** The pieces that are downloaded or wanted. */
  get window(): PieceWindow {
    return this.#view.window;
  }

  /** Neighbours. */
  get peers(): ReadonlySet<LivePeer> {
    return this.#view.peers;
  }

  /** Our children, to be asked about. */
  get seats(): SeatBook {
    return this.#view.seats;
  }

  /** True when `peer` pushes us something, or we it. */
  isUsed(peer: LivePeer): boolean {
    return this.parents.feedsAny(peer) || this.seats.pushesAny(peer);
  }

  /** What neighbours have done before. */
  get conduct(): Conduct {
    return this.#view.conduct;
  }

  /** What happened so far. */
  get counters(): LiveCounters {
    return this.#view.counters;
  }

  /** True when the edge of the stream is known; a broadcaster knows it. */
  get joined(): boolean {
    return this.#edge.isKnown;
  }

  /** Our wall clock minus the capture time of the newest piece shown while joining, ms; null before there was one. */
  get behindMs(): number | null {
    return this.#edge.behindMs;
  }

  /** What is wrong with wall clocks, ours or the broadcaster's; null when they agree, or before the edge is known. */
  get clockTrouble(): string | null {
    return this.#edge.clockTrouble;
  }

  /** Uplink to report to others, bytes/s; null before anything was measured. */
  get toldUpBytesPerS(): number | null {
    return this.uploader.toldBytesPerS;
  }

  /** Subscriptions that we serve. */
  get childCount(): number {
    return this.children.total;
  }

  /** Substreams that somebody pushes to us. */
  get parentCount(): number {
    return this.parents.count;
  }

  /**
   * The neighbour to hang up on when another peer wants its place, or to look for a better one: the one that has
   * exchanged nothing with us for the longest time. null when all are of use. A swarm whose members know only peers of
   * their own age cannot have shallow trees. So ask for this when full, and every `POLICY.exploreMs`.
   */
  expendable(): LivePeer | null {
    return expendableOf(this.#view, (peer) => this.isUsed(peer), this.#now());
  }

  /** A new reader of the stream. */
  openFeed(): LiveFeed {
    const feed = new LiveFeed(this.window, this.peers);
    this.#feeds.add(feed);
    return feed;
  }

  /** A reader left. */
  closeFeed(feed: LiveFeed): void {
    this.#feeds.delete(feed);
  }

  /** Both handshakes of `link` are done. Returns the peer to hand its messages to. */
  connected(link: LiveLink, info: LivePeerInfo): LivePeer {
    const peer = new LivePeer(link, info, this.#now());
    if (info.clockMs !== undefined) peer.clockAheadMs = info.clockMs - this.#options.clock.now();
    this.#view.conduct.restore(peer);
    this.#view.peers.add(peer);
    const reports = info.takesBundles === true;
    peer.news = (nowMs, withWindow) => [
      ...(reports ? this.#announcer.news(peer, nowMs, withWindow) : []),
      ...this.#headerless.take(peer),
    ];
    this.uploader.flight.mark(peer, this.#now());
    this.#announcer.introduce(peer, this.#now());
    return peer;
  }

  /** True when another connection to `peer` would have its blocks come sooner: packets are lost, and we push to it. */
  wantsSpare(peer: LivePeer): boolean {
    if (peer.closed || peer.spares.length >= MAX_SPARES) return false;
    return this.uploader.flight.line.losesPackets && this.seats.pushesAny(peer);
  }

  /** `link` is another connection to `peer`, for blocks that are pushed. Returns it as a lane; null when it is not wanted. */
  spareOpened(peer: LivePeer, link: LiveLink): LiveLane | null {
    if (peer.closed || peer.spares.length >= MAX_SPARES) {
      link.close(null);
      return null;
    }
    const spare = new LiveLane(link, peer.flight.times);
    peer.spares.push(spare);
    this.uploader.pump(this.#now());
    return spare;
  }

  /** That connection to `peer` is gone. What was under way on it is pulled. */
  spareClosed(peer: LivePeer, spare: LiveLane): void {
    const at = peer.spares.indexOf(spare);
    if (at < 0) return;
    this.uploader.flight.dropLane(spare);
    peer.spares.splice(at, 1);
  }

  /** The link of `peer` is gone. */
  disconnected(peer: LivePeer): void {
    if (peer.closed) return;
    peer.closed = true;
    this.#view.peers.delete(peer);
    this.children.drop(peer, 0xff);
    this.parents.lost(peer, this.parents.mask(peer), this.#now(), false);
    this.#puller.dropPeer(peer);
    this.uploader.dropPeer(peer);
    this.#view.conduct.keep(peer);
    if (this.joined && this.#options.role === "viewer") this.parents.tick(this.#now(), this.#edge.urgentUntil + 1);
  }

  /** A piece of our own (broadcaster): it is served at once. */
  publish(piece: SignedPiece): void {
    if (piece.header.epoch !== this.window.epoch || this.window.newest === null) this.window.reset(piece.header.seq);
    const entry = this.window.addHeader(piece.header);
    if (entry === null) return;
    for (let block = 0; block < blockCount(piece.header.lengthBytes); block++) {
      const data = piece.data.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES);
      this.#stored(piece.header, block, data, null);
    }
    this.uploader.pump(this.#now());
  }

  /** A `live1` message came. */
  message(peer: LivePeer, bytes: Uint8Array): void {
    if (peer.closed) return;
    peer.heardMs = this.#now();
    try {
      this.#inbox.handle(peer, bytes, this.#now());
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
      this.#ban(peer, error);
    }
  }

  /** The peer asks for a block. */
  requested(peer: LivePeer, seq: number, offset: number, length: number): void {
    if (peer.closed) return;
    const block = offset / BLOCK_BYTES;
    const entry = this.window.get(seq);
    const fits = Number.isInteger(block) && length > 0 && length <= BLOCK_BYTES && isStored(entry?.blocks[block]);
    if (!fits || this.uploader.uplinkBytesPerS === 0 || !this.uploader.request(peer, seq, block, length)) {
      return peer.link.reject(seq, offset, length);
    }
    this.uploader.pump(this.#now());
  }

  /** The peer withdraws a request, or has from another peer a block that is being pushed to it. */
  cancelled(peer: LivePeer, seq: number, offset: number): void {
    this.uploader.cancel(peer, seq, offset / BLOCK_BYTES);
  }

  /** The peer refuses a request of ours. */
  rejected(peer: LivePeer, seq: number, offset: number): void {
    this.#puller.rejected(peer, seq, offset / BLOCK_BYTES, this.#now());
  }

  /** The gate has opened. */
  pump(): void {
    this.uploader.pump(this.#now());
  }

  /** Stops sending anything of its own accord. */
  close(): void {
    this.#waker.close();
  }

  /** For how long `peer` has seemed gone, ms: nothing sent to it arrives, or it is silent while the stream goes on. */
  stalledMs(peer: LivePeer): number {
    return Math.max(this.uploader.flight.stalledMs(peer, this.#now()), silentMs(peer, this.#now()));
  }

  /** The same for one of its connections alone. */
  laneStalledMs(lane: LiveLane): number {
    return laneStalledMs(lane, this.#now());
  }

  /** A block came, requested or pushed. `data` is kept. */
  block(peer: LivePeer, seq: number, offset: number, data: Uint8Array): void {
    peer.heardMs = this.#now();
    this.#inbox.blockCame(peer);
    this.#intake.block(peer, seq, offset, data);
  }

  /** Time passes. */
  tick(): void {
    const nowMs = this.#now();
    this.#puller.expire(nowMs);
    this.#sightings.tick(nowMs);
    this.probation.tick(this.peers, nowMs);
    this.#serving.tick(this.peers, nowMs);
    this.#silence.tick(nowMs);
    this.#headerless.tick(nowMs);
    if (this.#options.role === "viewer") {
      this.#edge.tick(nowMs);
      if (this.#edge.isKnown) {
        this.#announcer.tellUplink(nowMs);
        this.parents.tick(nowMs, this.#edge.urgentUntil + 1);
        const due = dueUntil(this.#feeds, this.window, nowMs + POLICY.pullDueMs);
        const urgentUntil = Math.max(this.#edge.urgentUntil, due);
        this.#puller.tick(oldestWanted(this.#feeds) ?? this.window.solid, urgentUntil, nowMs);
      }
    }
    this.#announcer.tick(nowMs);
    this.uploader.flight.tick(this.peers, nowMs);
    this.uploader.pump(nowMs);
  }

  #now(): number {
    return this.#view.now();
  }

  #ban(peer: LivePeer, error: MillraceError): void {
    if (peer.closed) return;
    this.disconnected(peer);
    peer.link.close(error);
  }

  /** `peer` delivered a genuine block. On the first one its held subscriptions are handled. */
  #proved(peer: LivePeer, bytes: number): void {
    peer.deliveredBytes += bytes;
    const { mask, from } = this.probation.release(peer);
    if (mask !== 0 && !peer.closed) this.#serving.subscribed(peer, mask, from, this.#now());
  }

  /** A verified block: kept, counted, and passed on at once. */
  #stored(header: PieceHeader, block: number, data: Uint8Array, from: LivePeer | null): void {
    const entry = this.window.get(header.seq);
    const nowMs = this.#now();
    // Several copies of a block can be under verification at once, and a proof is a copy of a block that is already
    // here.
    if (entry?.header !== header || isStored(entry.blocks[block])) return;
    const complete = this.window.addBlock(entry, block, data);
    if (from !== null) {
      from.lastBlockMs = nowMs;
      if (from.isSource) this.counters.fromSourceBytes += data.length;
      else this.counters.fromViewersBytes += data.length;
    }
    if (from !== null) this.parents.unneeded(from, header.seq, block, data.length);
    this.#puller.arrived(header.seq, block, from, data.length);
    this.#serving.passOn(entry, block, from, this.peers, nowMs);
    if (complete) this.#options.onPiece?.(header);
    if (from !== null) this.uploader.pump(nowMs);
  }
}
