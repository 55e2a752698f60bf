/**
 * Continuity counters of one PID in a segment. They begin at 0 and end at 15, so that segments join in any order. To
 * reach 15, the last large packet of the segment is split into as many packets as are missing. Which packet is the last
 * large one is known only at the end, so packets are held until another large one comes.
 */
import { fieldBytes, hasPayload, PACKET_BYTES, SYNC_BYTE } from "./packet.ts";

/** Payload of a packet that can give 15 bytes away and still hold a whole PES header with its timestamps. */
const SPLITTABLE_BYTES = 64;
/** Most packets held; beyond that the counters of a strange stream stay unaligned. */
const MAX_HELD = 64;

/** Receives the packet at `at` of `bytes`, which is to be sent with `counter`. */
export type CountedPacket = (bytes: Uint8Array, at: number, counter: number) => void;

/** Rewrites the counters of one PID. */
export class CounterRewriter {
  readonly #emit: CountedPacket;
  #last = 15;
  /** The last splittable packet and what followed it, with their places in these bytes. */
  #held: Uint8Array[] = [];
  #heldAt: number[] = [];

  /** `emit` is called with each packet that may leave, in order. */
  constructor(emit: CountedPacket) {
    this.#emit = emit;
  }

  /** Takes the packet at `at`; `bytes` must stay as they are until `detach` or `finish`. */
  push(bytes: Uint8Array, at: number): void {
    if (!isSplittable(bytes, at) && this.#held.length > 0 && this.#held.length < MAX_HELD) {
      this.#held.push(bytes);
      this.#heldAt.push(at);
      return;
    }
    for (let i = 0; i < this.#held.length; i++) this.#count(this.#held[i]!, this.#heldAt[i]!);
    this.#held.length = this.#heldAt.length = 1;
    this.#held[0] = bytes;
    this.#heldAt[0] = at;
  }

  /** Copies the held packets: the memory that was pushed may be used for something else. */
  detach(): void {
    this.#held = this.#held.map((bytes, i) => bytes.slice(this.#heldAt[i]!, this.#heldAt[i]! + PACKET_BYTES));
    this.#heldAt.fill(0);
  }

  /** The segment is over: emits the rest, split so that the counter ends at 15. */
  finish(): void {
    this.detach();
    const held = this.#held;
    this.#held = [];
    this.#heldAt = [];
    const counted = held.filter((packet) => hasPayload(packet, 0)).length;
    const missing = (16 - ((this.#last + 1 + counted) & 15)) & 15;
    const first = held[0];
    const canSplit = first !== undefined && missing > 0 && isSplittable(first, 0);
    const parts = canSplit ? [...splitPacket(first, missing), ...held.slice(1)] : held;
    for (const packet of parts) this.#count(packet, 0);
  }

  #count(bytes: Uint8Array, at: number): void {
    if (hasPayload(bytes, at)) this.#last = (this.#last + 1) & 15;
    this.#emit(bytes, at, this.#last);
  }
}

function isSplittable(bytes: Uint8Array, at: number): boolean {
  return hasPayload(bytes, at) && PACKET_BYTES - 4 - fieldBytes(bytes, at) >= SPLITTABLE_BYTES;
}

/** Splits a packet into one that lacks its last `more` payload bytes, and `more` packets with one of those bytes each. */
export function splitPacket(packet: Uint8Array, more: number): Uint8Array[] {
  const field = fieldBytes(packet, 0);
  const head = new Uint8Array(PACKET_BYTES);
  head.set(packet.subarray(0, 4));
  head[3] = head[3]! | 0x20;
  head[4] = field + more - 1;
  // The field grows by stuffing. A packet without flags gets them as zero (2.4.3.4).
  head.set(packet.subarray(5, 4 + field), 5);
  head.fill(0xff, 4 + Math.max(field, 1), 4 + field + more);
  if (field <= 1 && field + more > 1) head[5] = 0;
  head.set(packet.subarray(4 + field, PACKET_BYTES - more), 4 + field + more);
  const parts = [head];
  for (let i = PACKET_BYTES - more; i < PACKET_BYTES; i++) {
    const part = new Uint8Array(PACKET_BYTES).fill(0xff);
    part.set([SYNC_BYTE, packet[1]! & 0x1f, packet[2]!, 0x30, PACKET_BYTES - 6, 0]);
    part[PACKET_BYTES - 1] = packet[i]!;
    parts.push(part);
  }
  return parts;
}
