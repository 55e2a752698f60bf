/**
 * An uplink on virtual time: connections with something to send take turns, as a kernel and a fair queue have them do.
 * Messages are small and go between the packets of blocks, which leave later by the time that the messages take.
 */
import type { EventWheel } from "./event-wheel.ts";

/** What waits on one connection, in order. */
export interface LineQueue {
  /** Bytes of the first item; null when nothing waits. */
  readonly headBytes: number | null;
  /** The first item has left the line. */
  headSent(): void;
}

/** Most packets that a router drops: with more, a connection would wait for its timer rather than send. */
const MOST_DROPPED = 0.1;

/** The up-link of one simulated member. */
export class SimLine {
  readonly #queue: EventWheel;
  readonly #bytesPerS: number;
  readonly #turns: LineQueue[] = [];
  #isSending = false;
  /** What messages add to the item that is leaving, ms. */
  #owedMs = 0;
  /** Virtual ms until which messages occupy the line while no item leaves. */
  #messagesUntilMs = 0;
  /** What waits in all connections, bytes, and the most of it that stands before a message, ms. */
  #waitingBytes = 0;
  readonly #routerMs: number;
  /** Virtual ms at which all packets have left. */
  #packetsUntilMs = 0;

  /** `bytesPerS` may be `Infinity`. `routerMs`: how much a router queues before it drops packets; 0: it neither queues nor drops. */
  constructor(queue: EventWheel, bytesPerS: number, routerMs = 0) {
    this.#queue = queue;
    this.#bytesPerS = bytesPerS;
    this.#routerMs = routerMs;
  }

  /** `bytes` more (or fewer) wait for the line. */
  waits(bytes: number): void {
    this.#waitingBytes += bytes;
  }

  /** `from`, which had nothing to send, has. */
  add(from: LineQueue): void {
    this.#turns.push(from);
    this.#send();
  }

  /** A message of `bytes` leaves now, and what follows later; returns how long it takes, ms. A line that sends nothing charges nothing. */
  charge(bytes: number): number {
    if (this.#bytesPerS === 0) return 0;
    const ms = bytes / this.#bytesPerS * 1000;
    const waitMs = Math.min(this.#routerMs, this.#waitingBytes / this.#bytesPerS * 1000);
    if (this.#isSending) this.#owedMs += ms;
    else this.#messagesUntilMs = Math.max(this.#queue.nowMs, this.#messagesUntilMs) + ms;
    return waitMs + ms;
  }

  /**
   * Share of packets of `packetBytes` that the router drops from connections with this round trip: 0 unless its queue is full.
   * Then it is what keeps the windows of all connections that send at the size of queue and way, by the square-root law of
   * TCP (Mathis and others, 1997). What waits beyond the router waits in the sockets.
   */
  dropShare(rttMs: number, packetBytes: number): number {
    const queuedMs = this.#waitingBytes / this.#bytesPerS * 1000;
    if (this.#routerMs === 0 || queuedMs < this.#routerMs) return 0;
    const senders = this.#turns.length + 1;
    const windowPackets = this.#bytesPerS * (this.#routerMs + rttMs) / 1000 / packetBytes / senders;
    return Math.min(MOST_DROPPED, 8 / (3 * windowPackets ** 2));
  }

  /**
   * A single packet joins the router's queue, which all connections share: another way to use the line than `add` and
   * `charge`. Returns the time until it has left, ms; null when the queue is full. A line that sends nothing charges nothing.
   */
  packet(bytes: number): number | null {
    if (this.#bytesPerS === 0) return 0;
    const { nowMs } = this.#queue;
    const startMs = Math.max(nowMs, this.#packetsUntilMs);
    if (this.#routerMs > 0 && startMs - nowMs > this.#routerMs) return null;
    this.#packetsUntilMs = startMs + bytes / this.#bytesPerS * 1000;
    return this.#packetsUntilMs - nowMs;
  }

  #send(): void {
    while (!this.#isSending) {
      const next = this.#turns.shift();
      if (next === undefined) return;
      const bytes = next.headBytes;
      if (bytes === null) continue;
      this.#isSending = true;
      const messagesMs = Math.max(0, this.#messagesUntilMs - this.#queue.nowMs);
      this.#queue.after(messagesMs + bytes / this.#bytesPerS * 1000, () => this.#sent(next));
    }
  }

  #sent(item: LineQueue): void {
    if (this.#owedMs > 0) {
      const ms = this.#owedMs;
      this.#owedMs = 0;
      this.#queue.after(ms, () => this.#sent(item));
      return;
    }
    this.#isSending = false;
    item.headSent();
    if (item.headBytes !== null) this.#turns.push(item);
    this.#send();
  }
}
