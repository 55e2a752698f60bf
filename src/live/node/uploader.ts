/** What leaves: pushes to children first, requests and what new children missed in between, nothing that has become useless. */
import { BLOCK_BYTES } from "../../wire/types.ts";
import type { LivePeer } from "./live-peer.ts";
import type { PieceEntry, PieceWindow } from "./piece-window.ts";
import { POLICY } from "./policy.ts";
import { blockKey } from "./puller.ts";

interface Push {
  readonly peer: LivePeer;
  readonly entry: PieceEntry;
  readonly block: number;
  /** Bit of its substream: who unsubscribes gets no more of it. */
  readonly bit: number;
  readonly atMs: number;
}

interface Wanted {
  readonly peer: LivePeer;
  readonly seq: number;
  readonly block: number;
  readonly bytes: number;
}

/** Least time under load that says something of the uplink, ms. */
const MEASURE_MS = 50;
/** Time over which is counted what leaves, ms. */
const COUNT_MS = 1000;
/** Pushes kept; at 2 s until they are shed this is 250 Mb/s. */
const MAX_PUSHES = 4096;

/** What an unproven peer was given is noted anew after this, so that it still lies in everybody's window, ms. */
const GIVEN_MS = 5000;

/** Weight of one push in the average time that pushes take. */
const AVERAGE_SHARE = 0.03;
/** Changes of that average that are told, ms. */
const TELL_MS = 60;

/** First in, first out. */
class PushQueue {
  private items: Push[] = [];
  private first = 0;

  get length(): number {
    return this.items.length - this.first;
  }

  get head(): Push | null {
    return this.items[this.first] ?? null;
  }

  add(push: Push): void {
    this.items.push(push);
  }

  drop(): void {
    this.first++;
    if (this.first < 256 && this.first < this.items.length) return;
    this.items = this.items.slice(this.first);
    this.first = 0;
  }
}

/** Sends blocks of a window. */
export class Uploader {
  private readonly window: PieceWindow;
  /** To children that pass on much, and to the others: a block waits at each step, so the way of many comes first. */
  private readonly pushes = [new PushQueue(), new PushQueue()] as const;
  /** What new children get of older pieces: it goes as requests do, when nothing waits that a whole branch waits for. */
  private readonly older = new PushQueue();
  private readonly wanted: Wanted[] = [];
  /** Requests for so little that they go before all else: see `Probation`. One a peer. */
  private readonly proofs: Wanted[] = [];
  private readonly waiting = new Map<LivePeer, number>();
  private pushesInRow = 0;
  private relaysInRow = 0;
  private wasOlder = false;
  /** What a push waits and takes, averaged, and as told last, ms. */
  private averageMs: number;
  private toldMs: number;
  private inFlight = 0;
  private busySinceMs: number | null = null;
  private measuredMs = 0;
  private measuredBytes = 0;
  /** On their way when the measuring began anew: part of the time that they take was before that. */
  private unmeasuredBytes = 0;
  private limitBytesPerS: number;
  /** The uplink was under load long enough to be known. */
  measured = false;
  /** What has left in the best second so far, bytes a second: the uplink is at least that. */
  carriedBytesPerS = 0;
  private countedFromMs: number | null = null;
  private countedBytes = 0;
  /** Payload sent, bytes. */
  sentBytes = 0;
  /** Pushes that were shed. */
  shedCount = 0;

  /** `uplinkBytesPerS`: the first guess, or the user's limit. */
  constructor(window: PieceWindow, uplinkBytesPerS: number) {
    this.window = window;
    this.limitBytesPerS = uplinkBytesPerS;
    this.averageMs = this.toldMs = BLOCK_BYTES / uplinkBytesPerS * 1000;
  }

  /** Measured uplink, bytes a second. */
  get uplinkBytesPerS(): number {
    return this.limitBytesPerS;
  }

  /** How long what is queued takes to leave, ms. */
  get queueDelayMs(): number {
    return this.pushDelayMs + (this.wanted.length + this.older.length) * BLOCK_BYTES / this.limitBytesPerS * 1000;
  }

  /** The part of that before a block that is pushed now, ms. */
  get pushDelayMs(): number {
    const blocks = this.pushes[0].length + this.pushes[1].length;
    return (blocks * BLOCK_BYTES + this.inFlight) / this.limitBytesPerS * 1000;
  }

  /** How long a block takes from here to a child, queue and all, averaged, ms. Steady: the whole tree hears of changes. */
  get stepMs(): number {
    return this.toldMs;
  }

  /** Queues a block of the substream with `bit` for a child; `passesOn`: others wait for it behind that child. */
  push(peer: LivePeer, entry: PieceEntry, block: number, bit: number, passesOn: boolean, nowMs: number): void {
    const queue = this.pushes[passesOn ? 0 : 1];
    if (queue.length < MAX_PUSHES) queue.add({ peer, entry, block, bit, atMs: nowMs });
  }

  /** As `push`, for a child that has just come: what its parent had before. */
  catchUp(peer: LivePeer, entry: PieceEntry, block: number, bit: number, nowMs: number): void {
    if (this.older.length < MAX_PUSHES) this.older.add({ peer, entry, block, bit, atMs: nowMs });
  }

  /** Queues an answer; false when the peer has too many waiting or the block isn't here. */
  request(peer: LivePeer, seq: number, block: number, bytes: number): boolean {
    const count = this.waiting.get(peer) ?? 0;
    if (count >= POLICY.requestQueueLimit || this.window.get(seq)?.blocks[block] == null) return false;
    // What we are judged by costs nothing to speak of.
    if (bytes <= POLICY.proofBytes && count === 0) {
      this.waiting.set(peer, 1);
      this.proofs.push({ peer, seq, block, bytes });
      return true;
    }
    if (this.pushDelayMs > POLICY.pullBelowMs || this.queueDelayMs > POLICY.maxServeDelayMs) return false;
    this.waiting.set(peer, count + 1);
    this.wanted.push({ peer, seq, block, bytes });
    return true;
  }

  /** Withdraws a request, or a push that may be waiting. */
  cancel(peer: LivePeer, seq: number, block: number): void {
    for (const queue of [this.wanted, this.proofs]) {
      const at = queue.findIndex((item) => item.peer === peer && item.seq === seq && item.block === block);
      if (at >= 0) return this.forget(queue.splice(at, 1)[0]!);
    }
    const { unwanted } = peer;
    if (peer.pushMask === 0) return;
    for (const oldest of unwanted.size >= POLICY.unwantedLimit ? unwanted : []) {
      unwanted.delete(oldest);
      break;
    }
    unwanted.add(blockKey(seq, block));
  }

  /** A peer left: nothing of it stays. */
  dropPeer(peer: LivePeer): void {
    this.waiting.delete(peer);
    for (const queue of [this.wanted, this.proofs]) {
      for (let i = queue.length - 1; i >= 0; i--) if (queue[i]!.peer === peer) queue.splice(i, 1);
    }
  }

  /** `bytes` have left. */
  sent(bytes: number, nowMs: number): void {
    this.inFlight = Math.max(0, this.inFlight - bytes);
    this.count(bytes, nowMs);
    if (this.unmeasuredBytes > 0) {
      this.unmeasuredBytes = Math.max(0, this.unmeasuredBytes - bytes);
      this.busySinceMs = this.inFlight > 0 ? nowMs : null;
      return;
    }
    this.measuredBytes += bytes;
    if (this.busySinceMs !== null) {
      this.measuredMs += nowMs - this.busySinceMs;
      this.busySinceMs = this.inFlight > 0 ? nowMs : null;
    }
    if (this.measuredMs >= MEASURE_MS) {
      const rate = this.measuredBytes / (this.measuredMs / 1000);
      this.limitBytesPerS += (rate - this.limitBytesPerS) * 0.5;
      this.measuredMs = this.measuredBytes = 0;
      this.measured = true;
    }
  }

  /** `bytes` handed over never leave, or nobody knows when: taken for sent, they would make the uplink look faster. */
  lost(bytes: number, nowMs: number): void {
    this.inFlight = Math.max(0, this.inFlight - bytes);
    this.measuredMs = this.measuredBytes = 0;
    this.unmeasuredBytes = this.inFlight;
    this.busySinceMs = this.inFlight > 0 ? nowMs : null;
  }

  private count(bytes: number, nowMs: number): void {
    this.countedFromMs ??= nowMs;
    this.countedBytes += bytes;
    const ms = nowMs - this.countedFromMs;
    if (ms < COUNT_MS) return;
    this.carriedBytesPerS = Math.max(this.carriedBytesPerS, this.countedBytes / ms * 1000);
    this.countedFromMs = nowMs;
    this.countedBytes = 0;
  }

  /** Hands blocks over while the network takes them. */
  pump(nowMs: number): void {
    while (this.inFlight < POLICY.inFlightBytes) {
      if (this.proofs.length > 0) {
        this.answer(this.proofs.shift()!, nowMs);
        continue;
      }
      const isTurn = this.pushesInRow >= POLICY.pushesPerPull || !this.hasPush(nowMs);
      if (!(isTurn && this.sendOther(nowMs)) && !this.sendPush(nowMs)) return;
    }
  }

  private hasPush(nowMs: number): boolean {
    return this.next(nowMs) !== null;
  }

  /** The queue whose head goes next; what is of no use any more goes from both. */
  private next(nowMs: number): PushQueue | null {
    const [relays, leaves] = this.pushes;
    const hasRelay = this.clean(relays, nowMs);
    const hasLeaf = this.clean(leaves, nowMs);
    if (hasLeaf && (!hasRelay || this.relaysInRow >= POLICY.relaysPerLeaf)) return leaves;
    return hasRelay ? relays : null;
  }

  /** Drops what is of no use from the head of `queue`; answers whether something is left. */
  private clean(queue: PushQueue, nowMs: number): boolean {
    for (; queue.head !== null; queue.drop()) {
      const { peer, entry, block, bit, atMs } = queue.head;
      if (peer.closed || (peer.pushMask & bit) === 0 || entry.blocks[block] == null || peer.has(entry.seq)) continue;
      if (peer.unwanted.size > 0 && peer.unwanted.delete(blockKey(entry.seq, block))) continue;
      if (nowMs - atMs <= POLICY.shedAfterMs) return true;
      this.shedCount++;
    }
    return false;
  }

  private sendPush(nowMs: number): boolean {
    const queue = this.next(nowMs);
    if (queue === null) return false;
    this.relaysInRow = queue === this.pushes[0] ? this.relaysInRow + 1 : 0;
    this.pushesInRow++;
    this.average(nowMs - queue.head!.atMs);
    this.sendHead(queue, nowMs);
    return true;
  }

  private average(waitedMs: number): void {
    const ms = waitedMs + (this.inFlight + BLOCK_BYTES) / this.limitBytesPerS * 1000;
    this.averageMs += (ms - this.averageMs) * AVERAGE_SHARE;
    if (Math.abs(this.averageMs - this.toldMs) > TELL_MS) this.toldMs = this.averageMs;
  }

  private sendHead(queue: PushQueue, nowMs: number): void {
    const { peer, entry, block } = queue.head!;
    queue.drop();
    this.send(peer, entry, block, BLOCK_BYTES, nowMs);
  }

  /** An answer or an older block, by turns; false when there is neither. */
  private sendOther(nowMs: number): boolean {
    const isOlder = this.clean(this.older, nowMs) && (this.wanted.length === 0 || !this.wasOlder);
    if (!isOlder && this.wanted.length === 0) return false;
    this.pushesInRow = 0;
    this.wasOlder = isOlder;
    if (isOlder) this.sendHead(this.older, nowMs);
    else this.answer(this.wanted.shift()!, nowMs);
    return true;
  }

  private answer(item: Wanted, nowMs: number): void {
    this.forget(item);
    const entry = this.window.get(item.seq);
    if (entry?.blocks[item.block] == null) {
      item.peer.link.reject(item.seq, item.block * BLOCK_BYTES, item.bytes);
    } else this.send(item.peer, entry, item.block, item.bytes, nowMs);
  }

  private send(peer: LivePeer, entry: PieceEntry, block: number, bytes: number, nowMs: number): void {
    const data = entry.blocks[block]!.subarray(0, bytes);
    if (peer.knowsHeader(entry.seq)) peer.send({ type: "header", bytes: entry.header!.bytes });
    this.busySinceMs ??= nowMs;
    this.inFlight += data.length;
    this.sentBytes += data.length;
    if (!peer.isProven && (peer.given === null || nowMs - peer.given.atMs > GIVEN_MS)) {
      peer.given = { seq: entry.seq, block, atMs: nowMs };
    }
    peer.link.piece(entry.seq, block * BLOCK_BYTES, data);
  }

  private forget(item: Wanted): void {
    const count = this.waiting.get(item.peer);
    if (count !== undefined) this.waiting.set(item.peer, count - 1);
  }
}
