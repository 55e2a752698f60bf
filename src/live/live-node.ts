/**
 * One member of a live swarm, broadcaster or viewer, apart from any network: links hand it messages and blocks, a clock
 * ticks, and it decides. The simulation runs this very class.
 */
import { MillraceError } from "../errors.ts";
import { BLOCK_BYTES } from "../wire/types.ts";
import { Children } from "./children.ts";
import { LiveFeed } from "./feed.ts";
import { blockCount, blockLength, decodeHeader, hashOfBlock, type PieceHeader } from "./header.ts";
import { HeaderGate, isReplay } from "./header-gate.ts";
import { Joiner } from "./joiner.ts";
import { type LiveCounters, newCounters } from "./live-counters.ts";
import type { LiveNodeOptions } from "./live-options.ts";
import { type LiveLink, LivePeer, type LivePeerInfo } from "./live-peer.ts";
import { decodeLiveMessage, UnsubscribeReason, type WindowMessage, windowNewest } from "./messages.ts";
import { Parents, substreamOf } from "./parents.ts";
import { isComplete, PieceWindow } from "./piece-window.ts";
import { POLICY } from "./policy.ts";
import type { SignedPiece } from "./publisher.ts";
import { Puller } from "./puller.ts";
import { Uploader } from "./uploader.ts";

const violation = (message: string) => new MillraceError("protocol_violation", message);

/** See the module. Call `tick` every 100 ms or so. */
export class LiveNode {
  readonly window: PieceWindow;
  readonly peers = new Set<LivePeer>();
  readonly counters: LiveCounters = newCounters();
  readonly uploader: Uploader;
  private readonly options: LiveNodeOptions;
  private readonly blocksPerPiece: number;
  private readonly parents: Parents;
  private readonly children: Children;
  private readonly puller: Puller;
  private readonly joiner: Joiner;
  private readonly gate: HeaderGate;
  /** Substream → monotonic ms of its last block. */
  private readonly fedMs = new Float64Array(8).fill(-Infinity);
  private readonly feeds = new Set<LiveFeed>();

  constructor(options: LiveNodeOptions) {
    this.options = options;
    const { stream, random } = options;
    const peers = () => this.peers;
    this.blocksPerPiece = blockCount(stream.pieceLengthBytes);
    this.window = new PieceWindow(stream.windowS * 1000);
    this.uploader = new Uploader(this.window, options.uplinkBytesPerS);
    const uplinkBytesPerS = () => this.uploader.uplinkBytesPerS - this.uploader.pullBytesPerS;
    this.children = new Children({
      substreams: stream.substreams,
      isSource: options.role === "source",
      bytesPerS: () => stream.bytesPerS,
      uplinkBytesPerS,
      peers,
      newestSeq: () => this.window.newest?.seq ?? 0,
      isFed: (substream, nowMs) => options.role === "source" || nowMs - this.fedMs[substream]! < POLICY.parentLagMs,
    });
    this.parents = new Parents({
      window: this.window,
      substreams: stream.substreams,
      blocksPerPiece: this.blocksPerPiece,
      random,
      peers,
      bytesPerS: () => stream.bytesPerS,
      isWeak: () => this.uploader.measured && this.uploader.uplinkBytesPerS < stream.bytesPerS,
    });
    this.puller = new Puller(this.window, peers, random);
    this.joiner = new Joiner(options.clock);
    this.gate = new HeaderGate({
      window: this.window,
      verifier: options.verifier,
      counters: this.counters,
      genuine: (peer, header) => this.headerVerified(peer, header),
      ban: (peer, error) => this.ban(peer, error),
    });
  }

  /** True when the edge of the stream is known; a broadcaster knows it. */
  get joined(): boolean {
    return this.options.role === "source" || this.joiner.done;
  }

  /** Subscriptions that we serve. */
  get childCount(): number {
    return this.children.total;
  }

  /** Substreams that somebody pushes to us. */
  get parentCount(): number {
    return this.parents.parents.filter((parent) => parent !== null).length;
  }

  /** A new reader of the stream. */
  openFeed(): LiveFeed {
    const feed = new LiveFeed(this.window);
    this.feeds.add(feed);
    return feed;
  }

  /** A reader left. */
  closeFeed(feed: LiveFeed): void {
    this.feeds.delete(feed);
  }

  /** Both handshakes of `link` are done. Answers the peer to hand its messages to. */
  connected(link: LiveLink, info: LivePeerInfo): LivePeer {
    const peer = new LivePeer(link, info, this.now());
    this.peers.add(peer);
    this.introduce(peer);
    return peer;
  }

  /** The link of `peer` is gone. */
  disconnected(peer: LivePeer): void {
    if (peer.closed) return;
    peer.closed = true;
    this.peers.delete(peer);
    this.children.drop(peer, 0xff);
    this.parents.lost(peer, peer.parentMask, this.now(), false);
    this.puller.dropPeer(peer);
    this.uploader.dropPeer(peer);
    this.uploader.sent(peer.link.bufferedBytes, this.now());
    if (this.joined && this.options.role === "viewer") this.parents.tick(this.now(), this.joiner.urgentUntil + 1);
  }

  /** A piece of our own (broadcaster): it is served at once. */
  publish(piece: SignedPiece): void {
    if (piece.header.epoch !== this.window.epoch || this.window.newest === null) this.window.reset(piece.header.seq);
    const entry = this.window.addHeader(piece.header);
    if (entry === null) return;
    for (let block = 0; block < blockCount(piece.header.lengthBytes); block++) {
      const data = piece.data.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES);
      this.stored(piece.header, block, data, null);
    }
    this.uploader.pump(this.now());
  }

  /** A `live1` message came. */
  message(peer: LivePeer, bytes: Uint8Array): void {
    if (peer.closed) return;
    try {
      this.handle(peer, bytes);
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
      this.ban(peer, error);
    }
  }

  /** The peer asks for a block. */
  requested(peer: LivePeer, seq: number, offset: number, length: number): void {
    if (peer.closed) return;
    const block = offset / BLOCK_BYTES;
    const entry = this.window.get(seq);
    const fits = this.uploader.uplinkBytesPerS > 0 && Number.isInteger(block) && length <= BLOCK_BYTES &&
      isStored(entry?.blocks[block]);
    if (!fits || !this.uploader.request(peer, seq, block)) return peer.link.reject(seq, offset, length);
    this.uploader.pump(this.now());
  }

  /** The peer withdraws a request. */
  cancelled(peer: LivePeer, seq: number, offset: number): void {
    this.uploader.cancel(peer, seq, offset / BLOCK_BYTES);
  }

  /** The peer refuses a request of ours. */
  rejected(peer: LivePeer, seq: number, offset: number): void {
    this.puller.rejected(peer, seq, offset / BLOCK_BYTES, this.now());
  }

  /** `bytes` of payload handed to a link have left. */
  sent(bytes: number): void {
    const nowMs = this.now();
    this.uploader.sent(bytes, nowMs);
    this.uploader.pump(nowMs);
  }

  /** A block came, asked for or pushed. `data` is kept. */
  block(peer: LivePeer, seq: number, offset: number, data: Uint8Array): void {
    if (peer.closed) return;
    const block = offset / BLOCK_BYTES;
    const header = this.window.get(seq)?.header;
    if (header == null) {
      const waiting = peer.verifying.get(seq);
      if (waiting === undefined || peer.waitingBlocks >= POLICY.waitingBlockLimit) {
        this.counters.duplicateBytes += data.length;
        return;
      }
      peer.waitingBlocks++;
      waiting.push(() => {
        peer.waitingBlocks--;
        this.block(peer, seq, offset, data);
      });
      return;
    }
    const isBlock = Number.isInteger(block) && block < blockCount(header.lengthBytes) &&
      data.length === blockLength(header.lengthBytes, block);
    if (!isBlock) return this.ban(peer, violation("a block does not fit its piece"));
    if (isStored(this.window.get(seq)!.blocks[block])) {
      this.counters.duplicateBytes += data.length;
      return this.puller.arrived(seq, block, peer, data.length);
    }
    this.options.verifier.block(data, hashOfBlock(header, block), (genuine) => {
      if (genuine) return this.stored(header, block, data, peer);
      this.counters.badBlocks++;
      this.ban(peer, violation("a block does not match its hash"));
    });
  }

  /** Time passes. */
  tick(): void {
    const nowMs = this.now();
    this.uploader.tick(nowMs);
    for (const [peer, mask] of this.children.excess(nowMs)) {
      peer.send({ type: "unsubscribe", mask, reason: UnsubscribeReason.full });
    }
    if (this.options.role === "viewer") {
      if (!this.joiner.done) this.join(nowMs);
      if (this.joiner.done) {
        this.parents.tick(nowMs, this.joiner.urgentUntil + 1);
        this.puller.tick(this.pullFrom(), this.joiner.urgentUntil, nowMs);
      }
    }
    for (const peer of this.peers) {
      this.announce(peer, nowMs);
      if (nowMs - peer.pingAtMs >= POLICY.pingIntervalMs) this.ping(peer, nowMs);
    }
    this.uploader.pump(nowMs);
  }

  private now(): number {
    return this.options.clock.monotonic();
  }

  /** Nothing is fetched that no reader waits for; without a reader, what others may want. */
  private pullFrom(): number {
    let from = Infinity;
    for (const feed of this.feeds) from = Math.min(from, feed.position ?? this.startSeq());
    return from === Infinity ? this.window.solid : from;
  }

  /** Where a reader that has not begun would begin now: it moves on with the edge, so that a late start is no later. */
  private startSeq(): number {
    return this.window.accessHeader(POLICY.joinBehindMs)?.seq ?? this.window.base;
  }

  private ban(peer: LivePeer, error: MillraceError): void {
    if (peer.closed) return;
    this.disconnected(peer);
    peer.link.close(error);
  }

  /** What a newcomer needs to join through us: WINDOW, the newest header, and that of where it would start. */
  private introduce(peer: LivePeer): void {
    this.sendWindow(peer);
    this.sendHeaders(peer);
  }

  private sendHeaders(peer: LivePeer): void {
    for (const header of [this.window.accessPoint(POLICY.joinBehindMs), this.window.newest]) {
      if (header !== null && peer.knowsHeader(header.seq)) peer.send({ type: "header", bytes: header.bytes });
    }
  }

  private sendWindow(peer: LivePeer): void {
    peer.windowVersion = this.window.version;
    peer.send(this.window.message());
  }

  private announce(peer: LivePeer, nowMs: number): void {
    if (peer.windowVersion === this.window.version) return;
    if (nowMs - peer.windowSentMs < POLICY.windowIntervalMs) return;
    if (peer.window === null || windowNewest(peer.window) < peer.window.base) this.sendHeaders(peer);
    peer.windowSentMs = nowMs;
    this.sendWindow(peer);
  }

  private ping(peer: LivePeer, nowMs: number): void {
    peer.pingAtMs = nowMs;
    peer.pingNonce = BigInt(Math.floor(this.options.random() * 2 ** 52));
    peer.send({ type: "ping", nonce: peer.pingNonce });
  }

  private handle(peer: LivePeer, bytes: Uint8Array): void {
    const message = decodeLiveMessage(bytes);
    const nowMs = this.now();
    switch (message?.type) {
      case "window":
        return this.windowTold(peer, message, nowMs);
      case "header":
        return this.gate.offer(peer, decodeHeader(message.bytes, this.options.stream.pieceLengthBytes), nowMs);
      case "subscribe":
        return this.subscribed(peer, message.mask, message.from, nowMs);
      case "unsubscribe":
        this.children.drop(peer, message.mask);
        return this.parents.lost(peer, message.mask, nowMs, message.reason !== UnsubscribeReason.moved);
      case "ping":
        if (message.nonce === peer.pingNonce) peer.rttMs = nowMs - peer.pingAtMs;
        else if (peer.pongBucket.take(nowMs)) peer.send(message);
    }
  }

  private windowTold(peer: LivePeer, window: WindowMessage, nowMs: number): void {
    peer.setWindow(window);
    if (!this.joined) return;
    this.note(peer, nowMs);
  }

  /** Marks what `peer` has and we lack as seen. */
  private note(peer: LivePeer, nowMs: number): void {
    const newest = this.window.newest;
    if (newest === null || peer.window === null || peer.window.epoch !== this.window.epoch) return;
    const behind = Math.max(0, newest.seq - peer.newestSeq);
    peer.lagPieces += (behind - peer.lagPieces) * 0.3;
    const last = Math.min(peer.newestSeq, newest.seq + POLICY.maxPiecesAhead);
    for (let seq = Math.max(this.window.solid, this.window.base); seq <= last; seq++) {
      const known = this.window.get(seq);
      if ((known !== undefined && known.seenMs !== null) || !peer.has(seq)) continue;
      const entry = known ?? this.window.want(seq);
      if (entry !== null && !isComplete(entry)) entry.seenMs = nowMs;
    }
  }

  private headerVerified(peer: LivePeer, header: PieceHeader): void {
    if (!this.joined) return this.joiner.headerOf(peer, header);
    if (this.options.role === "source" || isReplay(header, this.window)) return;
    if (header.epoch !== this.window.epoch) this.window.reset(header.seq);
    this.window.addHeader(header);
    if (peer.window !== null) this.note(peer, this.now());
  }

  private join(nowMs: number): void {
    const start = this.joiner.decide(this.peers, nowMs);
    if (start === null) return;
    this.window.reset(start.base);
    for (const header of start.headers) this.window.addHeader(header);
    for (const peer of this.peers) this.note(peer, nowMs);
  }

  private subscribed(peer: LivePeer, mask: number, from: number, nowMs: number): void {
    const { accepted, displaced } = this.window.newest === null
      ? { accepted: 0, displaced: [] }
      : this.children.accept(peer, mask, nowMs);
    for (const [child, lost] of displaced) {
      child.send({ type: "unsubscribe", mask: lost, reason: UnsubscribeReason.full });
    }
    const refused = mask & ~accepted;
    if (refused !== 0) {
      const reason = this.window.newest === null ? UnsubscribeReason.empty : UnsubscribeReason.full;
      peer.send({ type: "unsubscribe", mask: refused, reason });
    }
    if (accepted === 0) return;
    const newest = this.window.newest!.seq;
    for (let seq = Math.max(from, newest - POLICY.catchUpPieces); seq <= newest; seq++) {
      const entry = this.window.get(seq);
      if (entry?.header == null || peer.has(seq)) continue;
      for (let block = 0; block < entry.blocks.length; block++) {
        const bit = 1 << substreamOf(seq, block, this.blocksPerPiece, this.options.stream.substreams);
        if ((accepted & bit) !== 0 && isStored(entry.blocks[block])) this.uploader.push(peer, entry, block, nowMs);
      }
    }
    this.uploader.pump(nowMs);
  }

  /** A verified block: kept, counted, and passed on at once. */
  private stored(header: PieceHeader, block: number, data: Uint8Array, from: LivePeer | null): void {
    const entry = this.window.get(header.seq);
    const nowMs = this.now();
    if (entry?.header !== header || isStored(entry.blocks[block])) {
      if (from !== null) this.counters.duplicateBytes += data.length;
      return;
    }
    const complete = this.window.addBlock(entry, block, data);
    if (from !== null) {
      from.lastBlockMs = nowMs;
      from.deliveredBytes += data.length;
      if (from.info.role === "source") this.counters.fromSourceBytes += data.length;
      else this.counters.fromViewersBytes += data.length;
    }
    this.puller.arrived(header.seq, block, from, data.length);
    const substream = substreamOf(header.seq, block, this.blocksPerPiece, this.options.stream.substreams);
    const bit = 1 << substream;
    this.fedMs[substream] = nowMs;
    for (const peer of this.peers) {
      if ((peer.childMask & bit) !== 0 && peer !== from) this.uploader.push(peer, entry, block, nowMs);
    }
    if (complete) this.options.onPiece?.(header);
    if (from !== null) this.uploader.pump(nowMs);
  }
}

function isStored(data: Uint8Array | null | undefined): boolean {
  return data !== null && data !== undefined;
}
