/** Packets that were sent and are not acknowledged, and which of them are lost. */
import { distance } from "./packet.ts";

/** A packet is lost when this many that were sent later have arrived (BEP 29; RFC 5681 has the same number). */
const LATER_ARRIVALS = 3;

/** One packet of the window. */
export interface SentPacket {
  readonly seq: number;
  /** One of `PACKET`. */
  readonly type: number;
  readonly payload: Uint8Array;
  /** Its last transmission: monotonic ms, and its number among all transmissions of the connection. */
  sentMs: number;
  order: number;
  transmissions: number;
  state: "under way" | "arrived" | "lost";
}

/** What an acknowledgement showed. */
export interface Arrivals {
  /** Bytes of payload that arrived for the first time. */
  readonly bytes: number;
  /** Packets that arrived for the first time. */
  readonly count: number;
  /** When the newest of the arrived packets that were sent only once left, monotonic ms; null without one. */
  readonly sentMs: number | null;
  /** Packets are lost that had been sent since the last `reacted` call. */
  readonly isLoss: boolean;
}

/** The sender's half of one connection. */
export class SendWindow {
  /** Payload under way, bytes. */
  bytesUnderWay = 0;
  readonly #packets: SentPacket[] = [];
  #nextSeq: number;
  #order = 0;
  #latestArrival = -1;
  #reactedAt = 0;

  /** `firstSeq`: number of the first packet. */
  constructor(firstSeq: number) {
    this.#nextSeq = firstSeq;
  }

  /** Number of the next packet. */
  get next(): number {
    return this.#nextSeq;
  }

  /** Packets not acknowledged in order, including those that arrived after a gap. */
  get length(): number {
    return this.#packets.length;
  }

  /** The oldest packet; undefined without any. */
  get oldest(): SentPacket | undefined {
    return this.#packets[0];
  }

  /** Numbers a packet and counts it as sent. */
  add(type: number, payload: Uint8Array, nowMs: number): SentPacket {
    const packet: SentPacket = {
      seq: this.#nextSeq,
      type,
      payload,
      sentMs: nowMs,
      order: this.#order++,
      transmissions: 1,
      state: "under way",
    };
    this.#packets.push(packet);
    this.#nextSeq = (this.#nextSeq + 1) & 0xffff;
    this.bytesUnderWay += payload.length;
    return packet;
  }

  /** The oldest lost packet, counted as sent again; null when none is lost. */
  again(nowMs: number): SentPacket | null {
    const packet = this.#packets.find(({ state }) => state === "lost");
    if (packet === undefined) return null;
    packet.state = "under way";
    packet.sentMs = nowMs;
    packet.order = this.#order++;
    packet.transmissions++;
    this.bytesUnderWay += packet.payload.length;
    return packet;
  }

  /** Whether a packet waits to be sent again. */
  get hasLost(): boolean {
    return this.#packets.some(({ state }) => state === "lost");
  }

  /**
   * The other end has everything up to `ack`, and what `selectiveAck` says. Null for an acknowledgement of packets that were
   * not sent, or of no use any more.
   */
  acknowledge(ack: number, selectiveAck: Uint8Array | null): Arrivals | null {
    const oldest = this.#packets.length === 0 ? this.#nextSeq : this.#packets[0]!.seq;
    const inOrder = distance(ack, oldest) + 1;
    if (inOrder < 0 || inOrder > this.#packets.length) return null;
    let bytes = 0;
    let count = 0;
    let sentMs: number | null = null;
    const arrive = (packet: SentPacket) => {
      if (packet.state === "arrived") return;
      if (packet.state === "under way") this.bytesUnderWay -= packet.payload.length;
      packet.state = "arrived";
      bytes += packet.payload.length;
      count++;
      this.#latestArrival = Math.max(this.#latestArrival, packet.order);
      if (packet.transmissions === 1) sentMs = Math.max(sentMs ?? -Infinity, packet.sentMs);
    };
    for (const packet of this.#packets.splice(0, inOrder)) arrive(packet);
    // Packet `ack + 1` is missing at the other end; the bits begin with the one after it.
    for (let i = 0; selectiveAck !== null && i < 8 * selectiveAck.length; i++) {
      const packet = this.#packets[i + 1];
      if (packet === undefined) break;
      if ((selectiveAck[i >> 3]! >> (i & 7) & 1) === 1) arrive(packet);
    }
    return { bytes, count, sentMs, isLoss: this.#markLost() };
  }

  /** The sender has reacted to the loss: losses of packets sent before now count as the same loss. */
  reacted(): void {
    this.#reactedAt = this.#order;
  }

  /** Nothing arrived for too long: everything under way counts as lost. */
  timedOut(): void {
    for (const packet of this.#packets) {
      if (packet.state === "under way") this.#lose(packet);
    }
    this.reacted();
  }

  #markLost(): boolean {
    let isLoss = false;
    for (const packet of this.#packets) {
      if (packet.state !== "under way" || packet.order + LATER_ARRIVALS > this.#latestArrival) continue;
      if (packet.order >= this.#reactedAt) isLoss = true;
      this.#lose(packet);
    }
    return isLoss;
  }

  #lose(packet: SentPacket): void {
    packet.state = "lost";
    this.bytesUnderWay -= packet.payload.length;
  }
}
