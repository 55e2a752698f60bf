/** What leaves: pushes to children first, requests in between, nothing that has become useless. */
import { BLOCK_BYTES } from "../wire/types.ts";
import { blockLength } from "./header.ts";
import type { LivePeer } from "./live-peer.ts";
import type { PieceEntry, PieceWindow } from "./piece-window.ts";
import { POLICY } from "./policy.ts";

interface Push {
  readonly peer: LivePeer;
  readonly entry: PieceEntry;
  readonly block: number;
  readonly atMs: number;
}

interface Wanted {
  readonly peer: LivePeer;
  readonly seq: number;
  readonly block: number;
}

/** Least time under load that says something of the uplink, ms. */
const MEASURE_MS = 100;
/** Pushes kept; at 2 s until they are shed this is 250 Mb/s. */
const MAX_PUSHES = 4096;

/** Sends blocks of a window. */
export class Uploader {
  private readonly window: PieceWindow;
  private pushes: Push[] = [];
  private pushHead = 0;
  private readonly wanted: Wanted[] = [];
  private readonly waiting = new Map<LivePeer, number>();
  private pushesInRow = 0;
  private inFlight = 0;
  private busySinceMs: number | null = null;
  private measuredMs = 0;
  private measuredBytes = 0;
  private pullBytes = 0;
  private pullRate = 0;
  private pullRateAtMs = 0;
  private limitBytesPerS: number;
  /** The uplink was under load long enough to be known. */
  measured = false;
  /** Payload sent, bytes. */
  sentBytes = 0;
  /** Pushes that were shed. */
  shedCount = 0;

  /** `uplinkBytesPerS`: the first guess, or the user's limit. */
  constructor(window: PieceWindow, uplinkBytesPerS: number) {
    this.window = window;
    this.limitBytesPerS = uplinkBytesPerS;
  }

  /** Measured uplink, bytes a second. */
  get uplinkBytesPerS(): number {
    return this.limitBytesPerS;
  }

  /** Part of the uplink that answers to requests take, bytes a second, averaged over 5 s. */
  get pullBytesPerS(): number {
    return this.pullRate;
  }

  /** How long what is queued takes to leave, ms. */
  get queueDelayMs(): number {
    const blocks = this.wanted.length + this.pushes.length - this.pushHead;
    return (blocks * BLOCK_BYTES + this.inFlight) / this.limitBytesPerS * 1000;
  }

  /** Queues a block for a child. */
  push(peer: LivePeer, entry: PieceEntry, block: number, nowMs: number): void {
    if (this.pushes.length - this.pushHead < MAX_PUSHES) this.pushes.push({ peer, entry, block, atMs: nowMs });
  }

  /** Queues an answer; false when the peer has too many waiting or the block isn't here. */
  request(peer: LivePeer, seq: number, block: number): boolean {
    const count = this.waiting.get(peer) ?? 0;
    if (count >= POLICY.requestQueueLimit || this.window.get(seq)?.blocks[block] == null) return false;
    if (this.queueDelayMs > POLICY.maxServeDelayMs) return false;
    this.waiting.set(peer, count + 1);
    this.wanted.push({ peer, seq, block });
    return true;
  }

  /** Withdraws a request. */
  cancel(peer: LivePeer, seq: number, block: number): void {
    const at = this.wanted.findIndex((item) => item.peer === peer && item.seq === seq && item.block === block);
    if (at >= 0) this.forget(this.wanted.splice(at, 1)[0]!);
  }

  /** A peer left: nothing of it stays. */
  dropPeer(peer: LivePeer): void {
    this.waiting.delete(peer);
    for (let i = this.wanted.length - 1; i >= 0; i--) if (this.wanted[i]!.peer === peer) this.wanted.splice(i, 1);
  }

  /** `bytes` have left. */
  sent(bytes: number, nowMs: number): void {
    this.inFlight = Math.max(0, this.inFlight - bytes);
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

  /** Averages the rate of pulls; once a tick. */
  tick(nowMs: number): void {
    const seconds = (nowMs - this.pullRateAtMs) / 1000;
    if (seconds < 0.5) return;
    this.pullRate += (this.pullBytes / seconds - this.pullRate) * Math.min(1, seconds / 5);
    this.pullBytes = 0;
    this.pullRateAtMs = nowMs;
  }

  /** Hands blocks over while the network takes them. */
  pump(nowMs: number): void {
    while (this.inFlight < POLICY.inFlightBytes) {
      const pull = this.wanted.length > 0 && (this.pushesInRow >= POLICY.pushesPerPull || !this.hasPush(nowMs));
      if (pull ? !this.sendWanted(nowMs) : !this.sendPush(nowMs)) return;
    }
  }

  private hasPush(nowMs: number): boolean {
    for (; this.pushHead < this.pushes.length; this.pushHead++) {
      const { peer, entry, block, atMs } = this.pushes[this.pushHead]!;
      if (peer.closed || entry.blocks[block] == null || peer.has(entry.seq)) continue;
      if (nowMs - atMs <= POLICY.shedAfterMs) return true;
      this.shedCount++;
    }
    this.pushes = [];
    this.pushHead = 0;
    return false;
  }

  private sendPush(nowMs: number): boolean {
    if (!this.hasPush(nowMs)) return false;
    const { peer, entry, block } = this.pushes[this.pushHead++]!;
    if (this.pushHead > 256) {
      this.pushes = this.pushes.slice(this.pushHead);
      this.pushHead = 0;
    }
    this.pushesInRow++;
    this.send(peer, entry, block, nowMs);
    return true;
  }

  private sendWanted(nowMs: number): boolean {
    this.pushesInRow = 0;
    const item = this.wanted.shift();
    if (item === undefined) return false;
    this.forget(item);
    const entry = this.window.get(item.seq);
    if (entry?.blocks[item.block] == null) {
      item.peer.link.reject(item.seq, item.block * BLOCK_BYTES, BLOCK_BYTES);
      return true;
    }
    this.pullBytes += blockLength(entry.header!.lengthBytes, item.block);
    this.send(item.peer, entry, item.block, nowMs);
    return true;
  }

  private send(peer: LivePeer, entry: PieceEntry, block: number, nowMs: number): void {
    const data = entry.blocks[block]!;
    if (peer.knowsHeader(entry.seq)) peer.send({ type: "header", bytes: entry.header!.bytes });
    this.busySinceMs ??= nowMs;
    this.inFlight += data.length;
    this.sentBytes += data.length;
    peer.link.piece(entry.seq, block * BLOCK_BYTES, data);
  }

  private forget(item: Wanted): void {
    const count = this.waiting.get(item.peer);
    if (count !== undefined) this.waiting.set(item.peer, count - 1);
  }
}
