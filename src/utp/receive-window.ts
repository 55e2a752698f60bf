/** Puts arriving packets in order, and reports which have arrived. */
import { distance, MAX_SACK_BYTES, PACKET } from "./packet.ts";

/**
 * Bytes held for the reader, in order or after a gap; the other end learns how much of it is left. As much as a sender
 * has under way.
 */
const LIMIT_BYTES = 512 * 1024;
/** Packets after a gap that are kept: as many as a selective acknowledgement can name. */
const LIMIT_PACKETS = 8 * MAX_SACK_BYTES;

/** The receiver's half of one connection. */
export class ReceiveWindow {
  #lastInOrder: number;
  readonly #limitBytes: number;
  readonly #early = new Map<number, { type: number; payload: Uint8Array }>();
  #earlyBytes = 0;
  readonly #ready: Uint8Array[] = [];
  #readyBytes = 0;
  /** The other end has finished, and everything before that has arrived. */
  isFinished = false;

  /** `lastInOrder`: number of the packet before the first that is expected; `limitBytes`: at most 512 KiB, the default. */
  constructor(lastInOrder: number, limitBytes = LIMIT_BYTES) {
    this.#lastInOrder = lastInOrder;
    this.#limitBytes = Math.min(LIMIT_BYTES, limitBytes);
  }

  /** The last packet that arrived with all before it. */
  get ack(): number {
    return this.#lastInOrder;
  }

  /** Bytes that may still come. */
  get roomBytes(): number {
    return Math.max(0, this.#limitBytes - this.#readyBytes - this.#earlyBytes);
  }

  /** Packets are missing. */
  get hasGap(): boolean {
    return this.#early.size > 0;
  }

  /** Takes a packet with data, or the last one (FIN). `order`: in order; `gap`: kept; `useless`: known, too far or too much. */
  take(seq: number, type: number, payload: Uint8Array): "order" | "gap" | "useless" {
    const ahead = distance(seq, this.#lastInOrder);
    if (this.isFinished || ahead <= 0 || ahead > LIMIT_PACKETS || this.#early.has(seq)) return "useless";
    if (payload.length > this.roomBytes) return "useless";
    if (ahead > 1) {
      this.#early.set(seq, { type, payload });
      this.#earlyBytes += payload.length;
      return "gap";
    }
    this.#append(seq, type, payload);
    for (;;) {
      const next = (this.#lastInOrder + 1) & 0xffff;
      const kept = this.#early.get(next);
      if (kept === undefined || this.isFinished) break;
      this.#early.delete(next);
      this.#earlyBytes -= kept.payload.length;
      this.#append(next, kept.type, kept.payload);
    }
    return "order";
  }

  /** The next payload for the reader; undefined when there is none. */
  shift(): Uint8Array | undefined {
    const payload = this.#ready.shift();
    if (payload !== undefined) this.#readyBytes -= payload.length;
    return payload;
  }

  /** Bits of the packets after the gap; null without a gap. */
  selectiveAck(): Uint8Array | null {
    if (this.#early.size === 0) return null;
    let last = 0;
    for (const seq of this.#early.keys()) last = Math.max(last, distance(seq, this.#lastInOrder) - 2);
    const bits = new Uint8Array(Math.min(MAX_SACK_BYTES, 4 * Math.ceil((last + 1) / 32)));
    for (const seq of this.#early.keys()) {
      const bit = distance(seq, this.#lastInOrder) - 2;
      if (bit < 8 * bits.length) bits[bit >> 3] = bits[bit >> 3]! | 1 << (bit & 7);
    }
    return bits;
  }

  #append(seq: number, type: number, payload: Uint8Array): void {
    this.#lastInOrder = seq;
    if (type === PACKET.fin) {
      this.isFinished = true;
      this.#early.clear();
      this.#earlyBytes = 0;
    } else if (payload.length > 0) {
      this.#ready.push(payload);
      this.#readyBytes += payload.length;
    }
  }
}
