/**
 * Sends blocks: pushes to children first, then requests and older blocks for new children. Useless blocks are dropped.
 */
import { BLOCK_BYTES } from "../../../wire/types.ts";
import { Flight } from "./flight.ts";
import type { LiveNodeOptions, UploadGate } from "../live-options.ts";
import { encodeLiveMessage } from "../../messages.ts";
import type { LiveLane } from "../neighbour/live-lane.ts";
import type { LivePeer } from "../neighbour/live-peer.ts";
import type { NodeView } from "../neighbour/node-view.ts";
import { Notes } from "../neighbour/notes.ts";
import type { PieceEntry, PieceWindow } from "../stream/piece-window.ts";
import { stepOf } from "../neighbour/place.ts";
import { BOUNDS } from "../neighbour/bounds.ts";
import { POLICY } from "../policy.ts";
import { blockKey } from "../stream/substreams.ts";
import { type Push, PushQueue } from "./push-queue.ts";
import { StepTime } from "./step-time.ts";

interface Wanted {
  readonly peer: LivePeer;
  readonly seq: number;
  readonly block: number;
  readonly bytes: number;
}

/** A block that a neighbour was given. */
export interface GivenBlock {
  readonly seq: number;
  readonly block: number;
  readonly atMs: number;
}

/** What is noted about one to whom blocks are sent. */
interface Receiver {
  /** Keys of blocks that it has from others, so that they need not be pushed to it. */
  readonly unwanted: Set<number>;
  /** Mask of the substreams that it gets without headers: see `Headerless`. */
  leanMask: number;
  /** The block sent to it lately, while it has delivered nothing; null before. */
  given: GivenBlock | null;
}

/**
 * While a peer is unproven, a block sent to it is noted again after this, ms, so that the noted block still lies in
 * everybody's window.
 */
const GIVEN_MS = 5000;

/** A line with a lower limit than this is not probed, bytes/s: that takes 60 KB at once. */
const PROBED_BYTES_PER_S = 65_536;

/** A queue stands when it has not been shorter for this long, ms: a piece of the source fills its queue for a part of that. */
const STANDING_MS = 300;

/** Sends blocks of a window. */
export class Uploader {
  readonly flight: Flight;
  readonly #view: NodeView;
  readonly #gate: UploadGate | undefined;
  readonly #wake: (afterMs: number) => void;
  readonly #receivers = new Notes<Receiver>(() => ({ unwanted: new Set(), leanMask: 0, given: null }));
  /**
   * Pushes to children that pass on much, and to the others. A block waits at each step, so children with many members
   * below them go first.
   */
  readonly #pushes = [new PushQueue(), new PushQueue()] as const;
  /** Older pieces for new children. They are sent like requests, when no block waits that a whole branch needs. */
  readonly #older = new PushQueue();
  readonly #wanted: Wanted[] = [];
  /** Requests so short that they go before everything else: see `Probation`. One per peer. */
  readonly #proofs: Wanted[] = [];
  readonly #waiting = new Map<LivePeer, number>();
  #pushesInRow = 0;
  #relaysInRow = 0;
  #wasOlder = false;
  readonly #stepTime: StepTime;
  /** The least `pushDelayMs` of the last period of `STANDING_MS`, and of this one, ms. */
  #leastDelayMs: [number, number] = [0, 0];
  #leastSinceMs = -Infinity;
  readonly #limitBytesPerS: number | null;
  /** Payload sent, bytes. */
  sentBytes = 0;
  /** Pushes that were shed. */
  shedCount = 0;

  /** `limit`: what the user allows. `wake` has `pump` called after the given ms. */
  constructor(
    view: NodeView,
    limit: Pick<LiveNodeOptions, "uplinkBytesPerS" | "gate">,
    wake: (afterMs: number) => void,
  ) {
    const { uplinkBytesPerS } = limit;
    const { random } = view;
    this.#view = view;
    this.#gate = limit.gate;
    this.#wake = wake;
    this.#limitBytesPerS = uplinkBytesPerS;
    // The user of a broadcaster knows what its line carries. Without that knowledge the rate starts low.
    const isTold = view.isSource && uplinkBytesPerS !== null;
    const guessBytesPerS = () => isTold ? uplinkBytesPerS : view.rate.bytesPerS / 2;
    // A source that knows nothing learns from the first viewers, whom nobody else can feed.
    const isProbed = !view.isSource && (uplinkBytesPerS ?? Infinity) >= PROBED_BYTES_PER_S;
    this.flight = new Flight({ guessBytesPerS, isTold, isProbed, limitBytesPerS: uplinkBytesPerS || Infinity, random });
    this.#stepTime = new StepTime(BLOCK_BYTES / this.uplinkBytesPerS * 1000);
  }

  get #window(): PieceWindow {
    return this.#view.window;
  }

  /** The uplink, bytes/s: measured, or else a lower bound; never more than the user's limit. */
  get uplinkBytesPerS(): number {
    return Math.min(this.#limitBytesPerS ?? Infinity, this.flight.line.bytesPerS);
  }

  /** Uplink to report to others, bytes/s; null before anything is known about it. */
  get toldBytesPerS(): number | null {
    return this.isMeasured || this.shownBytesPerS > 0 || this.#limitBytesPerS === 0 ? this.uplinkBytesPerS : null;
  }

  /** True when the uplink was the limit once, so that it is known. */
  get isMeasured(): boolean {
    return this.flight.line.isKnown;
  }

  /** The uplink that the quickest block so far suggests, bytes/s; 0 before the first. */
  get shownBytesPerS(): number {
    return this.flight.line.shownBytesPerS;
  }

  /** What arrived in the best second so far, bytes: the uplink is at least that. */
  get carriedBytesPerS(): number {
    return this.flight.line.carriedBytesPerS;
  }

  /** Time until everything that is queued has left, ms. */
  get queueDelayMs(): number {
    return this.pushDelayMs + (this.#wanted.length + this.#older.length) * BLOCK_BYTES / this.uplinkBytesPerS * 1000;
  }

  /** The part of that time for which a block pushed now would wait, ms. */
  get pushDelayMs(): number {
    const blocks = this.#pushes[0].length + this.#pushes[1].length;
    return (blocks * BLOCK_BYTES + this.#waitingBytes) / this.uplinkBytesPerS * 1000;
  }

  /**
   * The part of `pushDelayMs` that does not go away between two pieces, ms. All children's blocks of a piece come at once,
   * so a queue that is long for a moment says nothing about how much the line can carry (as in CoDel, RFC 8289).
   */
  get standingDelayMs(): number {
    return Math.min(this.pushDelayMs, ...this.#leastDelayMs);
  }

  /** Time that a block takes from here to a child, as reported, ms: see `StepTime`. */
  get stepMs(): number {
    return this.#stepTime.toldMs;
  }

  /** Depth that a step from us to a child adds. */
  get step(): number {
    return stepOf(this.uplinkBytesPerS, this.stepMs);
  }

  get #waitingBytes(): number {
    return this.flight.line.waitingBytes(this.flight.inFlightBytes);
  }

  /** Queues a block of `substream` for a child; `passesOn`: others wait for it below that child. */
  push(peer: LivePeer, entry: PieceEntry, block: number, substream: number, passesOn: boolean, nowMs: number): void {
    this.#pushes[passesOn ? 0 : 1].add({ peer, entry, block, substream, atMs: nowMs });
  }

  /** As `push`, for a child that has just come: pieces that its parent had before the child came. */
  catchUp(peer: LivePeer, entry: PieceEntry, block: number, substream: number, nowMs: number): void {
    this.#older.add({ peer, entry, block, substream, atMs: nowMs });
  }

  /** Queues a response; false when the peer has too many waiting or the block isn't here. */
  request(peer: LivePeer, seq: number, block: number, bytes: number): boolean {
    const count = this.#waiting.get(peer) ?? 0;
    if (count >= BOUNDS.requestQueueLimit || this.#window.get(seq)?.blocks[block] == null) return false;
    // Neighbours judge us by these small proofs, and they are almost free to send.
    if (bytes <= POLICY.proofBytes && count === 0) {
      this.#waiting.set(peer, 1);
      this.#proofs.push({ peer, seq, block, bytes });
      return true;
    }
    if (this.pushDelayMs > POLICY.busyMs || this.queueDelayMs > POLICY.maxServeDelayMs) return false;
    this.#waiting.set(peer, count + 1);
    this.#wanted.push({ peer, seq, block, bytes });
    return true;
  }

  /** Withdraws a request, or a push that may be waiting. */
  cancel(peer: LivePeer, seq: number, block: number): void {
    for (const queue of [this.#wanted, this.#proofs]) {
      const at = queue.findIndex((item) => item.peer === peer && item.seq === seq && item.block === block);
      if (at >= 0) return this.#forget(queue.splice(at, 1)[0]!);
    }
    if (!this.#view.seats.pushesAny(peer)) return;
    const { unwanted } = this.#receivers.of(peer);
    for (const oldest of unwanted.size >= BOUNDS.unwantedLimit ? unwanted : []) {
      unwanted.delete(oldest);
      break;
    }
    unwanted.add(blockKey(seq, block));
  }

  /** A peer left: drops everything queued for it. */
  dropPeer(peer: LivePeer): void {
    this.#waiting.delete(peer);
    this.flight.drop(peer);
    for (const queue of [...this.#pushes, this.#older]) queue.forget(peer);
    for (const queue of [this.#wanted, this.#proofs]) {
      for (let i = queue.length - 1; i >= 0; i--) if (queue[i]!.peer === peer) queue.splice(i, 1);
    }
  }

  /** `peer` asks for the substreams of `mask` without headers, and for the others with them. */
  leaveOutHeaders(peer: LivePeer, mask: number): void {
    this.#receivers.of(peer).leanMask = mask;
  }

  /** The block sent lately to `peer`, while it had delivered nothing; null without. */
  givenTo(peer: LivePeer): GivenBlock | null {
    return this.#receivers.of(peer).given;
  }

  /** `peer` sent a PING or PONG with `nonce`, as in `Flight.echoed`; false when that is none of ours. */
  echoed(peer: LivePeer, nonce: bigint, atMs: number | null, nowMs: number): boolean {
    if (!this.flight.echoed(peer, nonce, atMs, nowMs)) return false;
    for (const queue of [...this.#pushes, this.#older]) queue.resume(peer);
    return true;
  }

  /** For how long the oldest push waits for `peer` because its connection has as much under way as it may, ms; 0 when none does. */
  parkedMs(peer: LivePeer, nowMs: number): number {
    return Math.max(...this.#pushes.map((queue) => queue.parkedMs(peer, nowMs)));
  }

  /** Hands blocks over while the network takes them. */
  pump(nowMs: number): void {
    this.#noteDelay(nowMs);
    while (this.#mayHand(nowMs)) {
      if (this.#proofs.length > 0) {
        this.#answer(this.#proofs.shift()!, nowMs);
        continue;
      }
      const isPushWaiting = this.#next(nowMs) !== null;
      const mayGo = !isPushWaiting || this.#pushesInRow >= POLICY.pushesPerNewcomer;
      const other = mayGo ? this.#nextOther(nowMs) : null;
      const isTurn = !isPushWaiting || other?.isForNewcomer || this.#pushesInRow >= POLICY.pushesPerPull;
      if (isTurn && other !== null) this.#sendOther(other.at, nowMs);
      else if (!this.#sendPush(nowMs)) {
        this.flight.isLimited = false;
        return;
      }
    }
    const isMore = this.#wanted.length > 0 || this.#proofs.length > 0 || this.#next(nowMs) !== null ||
      this.#head(this.#older, nowMs) !== null;
    this.flight.isLimited = isMore && !this.flight.hasRoom(nowMs);
    const pauseMs = this.flight.pauseMs(nowMs);
    if (isMore && pauseMs > 0) this.#wake(pauseMs);
  }

  #noteDelay(nowMs: number): void {
    if (nowMs - this.#leastSinceMs >= STANDING_MS) {
      this.#leastDelayMs = [this.#leastDelayMs[1], Infinity];
      this.#leastSinceMs = nowMs;
    }
    this.#leastDelayMs[1] = Math.min(this.#leastDelayMs[1], this.pushDelayMs);
  }

  #mayHand(nowMs: number): boolean {
    return this.flight.hasRoom(nowMs) && (this.#gate?.isOpen ?? true);
  }

  /** The queue whose head goes next; drops useless blocks from both. */
  #next(nowMs: number): PushQueue | null {
    const [relays, leaves] = this.#pushes;
    const hasRelay = this.#head(relays, nowMs) !== null;
    const hasLeaf = this.#head(leaves, nowMs) !== null;
    if (hasLeaf && (!hasRelay || this.#relaysInRow >= POLICY.relaysPerLeaf)) return leaves;
    return hasRelay ? relays : null;
  }

  /** The next block of `queue`, after dropping useless ones before it. */
  #head(queue: PushQueue, nowMs: number): Push | null {
    return queue.head((push) => this.#isUseful(push, nowMs), (peer) => this.flight.isFull(peer));
  }

  #isUseful({ peer, entry, block, substream, atMs }: Push, nowMs: number): boolean {
    if (peer.closed || !this.#view.seats.pushes(peer, substream)) return false;
    if (entry.blocks[block] == null || peer.has(entry.seq)) return false;
    const { unwanted } = this.#receivers.of(peer);
    if (unwanted.size > 0 && unwanted.delete(blockKey(entry.seq, block))) return false;
    if (nowMs - atMs <= POLICY.shedAfterMs) return true;
    this.shedCount++;
    return false;
  }

  #sendPush(nowMs: number): boolean {
    const queue = this.#next(nowMs);
    if (queue === null) return false;
    this.#relaysInRow = queue === this.#pushes[0] ? this.#relaysInRow + 1 : 0;
    this.#pushesInRow++;
    const waitedMs = nowMs - this.#sendHead(queue, nowMs).atMs;
    this.#stepTime.noted(waitedMs + (this.#waitingBytes + BLOCK_BYTES) / this.uplinkBytesPerS * 1000);
    return true;
  }

  #sendHead(queue: PushQueue, nowMs: number): Push {
    const push = this.#head(queue, nowMs)!;
    queue.drop();
    const isLean = queue !== this.#older && (this.#receivers.of(push.peer).leanMask & (1 << push.substream)) !== 0;
    const lane = this.flight.laneTo(push.peer)!;
    this.#send(push.peer, lane, push.entry, push.block, BLOCK_BYTES, isLean, nowMs);
    return push;
  }

  /**
   * What goes next apart from pushes: the request at `at`, or an older block when that is null. Both have turns, and what
   * newcomers need goes before everything else; null when nothing waits.
   */
  #nextOther(nowMs: number): { readonly at: number | null; readonly isForNewcomer: boolean } | null {
    const older = this.#head(this.#older, nowMs);
    const mayGo = ({ peer }: Wanted) => !this.flight.isLaneFull(peer.lane);
    const first = this.#wanted.findIndex((item) => mayGo(item) && this.#isNewcomer(item.peer, nowMs));
    const at = first >= 0 ? first : this.#wanted.findIndex(mayGo);
    if (older === null && at < 0) return null;
    const isOlderForNewcomer = older !== null && this.#isNewcomer(older.peer, nowMs);
    const isOlderFirst = isOlderForNewcomer === first >= 0 ? !this.#wasOlder : isOlderForNewcomer;
    const isOlder = older !== null && (at < 0 || isOlderFirst);
    return { at: isOlder ? null : at, isForNewcomer: isOlder ? isOlderForNewcomer : first >= 0 };
  }

  /**
   * True for a neighbour that has come to a small swarm and cannot begin to play yet. In a large one there are others who can
   * serve it, and many who wait for what we push.
   */
  #isNewcomer({ connectedMs, window }: LivePeer, nowMs: number): boolean {
    const { peers, rate } = this.#view;
    if (nowMs - connectedMs >= POLICY.newcomerMs || peers.size >= POLICY.largeNeighbourhood) return false;
    return window === null || window.solid - window.base < rate.pieces(POLICY.startBufferMs, 1);
  }

  /** Sends the request at `at`, or an older block when that is null. */
  #sendOther(at: number | null, nowMs: number): void {
    this.#pushesInRow = 0;
    this.#wasOlder = at === null;
    if (at === null) this.#sendHead(this.#older, nowMs);
    else this.#answer(this.#wanted.splice(at, 1)[0]!, nowMs);
  }

  #answer(item: Wanted, nowMs: number): void {
    this.#forget(item);
    const entry = this.#window.get(item.seq);
    if (entry?.blocks[item.block] == null) {
      item.peer.link.reject(item.seq, item.block * BLOCK_BYTES, item.bytes);
    } else this.#send(item.peer, item.peer.lane, entry, item.block, item.bytes, false, nowMs);
  }

  /** `isLean`: the peer has the header from another parent, or will ask for it. */
  #send(
    peer: LivePeer,
    lane: LiveLane,
    entry: PieceEntry,
    block: number,
    bytes: number,
    isLean: boolean,
    nowMs: number,
  ): void {
    const data = entry.blocks[block]!.subarray(0, bytes);
    if (!isLean && peer.needsHeader(entry.seq, lane)) {
      lane.link.send(encodeLiveMessage({ type: "header", bytes: entry.header!.bytes }));
    }
    this.sentBytes += data.length;
    const receiver = this.#receivers.of(peer);
    const isNoted = peer.isProven || nowMs - (receiver.given?.atMs ?? -Infinity) <= GIVEN_MS;
    if (!isNoted) receiver.given = { seq: entry.seq, block, atMs: nowMs };
    lane.link.piece(entry.seq, block * BLOCK_BYTES, data);
    this.flight.handed(peer, data.length, nowMs, lane);
  }

  #forget(item: Wanted): void {
    const count = this.#waiting.get(item.peer);
    if (count !== undefined) this.#waiting.set(item.peer, count - 1);
  }
}
