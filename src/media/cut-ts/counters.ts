/**
 * Continuity counters of one PID in a segment: they begin at 0 and end at 15, so that segments join in any order. To get
 * there the last large packet of the segment is split into as many as are missing. Which one is the last is known only
 * at the end, so packets are held until another large one comes.
 */
import { fieldBytes, hasPayload, PACKET_BYTES } from "../../bytes/ts/packet.ts";

/** Payload of a packet that can give 15 bytes away and still hold a whole PES header with its timestamps. */
const SPLITTABLE_BYTES = 64;
/** Most packets held; beyond that the counters of a strange stream stay unaligned. */
const MAX_HELD = 64;

/** Rewrites the counters of one PID. */
export class CounterRewriter {
  #last = 15;
  /** The last splittable packet and what followed it. */
  #held: Uint8Array[] = [];

  /** Takes a packet (kept and changed); answers those that may leave. */
  push(packet: Uint8Array): Uint8Array[] {
    const splittable = hasPayload(packet, 0) && PACKET_BYTES - 4 - fieldBytes(packet, 0) >= SPLITTABLE_BYTES;
    if (!splittable && this.#held.length > 0 && this.#held.length < MAX_HELD) {
      this.#held.push(packet);
      return [];
    }
    const leaving = this.#held;
    this.#held = [packet];
    return leaving.map((held) => this.#count(held));
  }

  /** The segment is over: answers the rest, split so that the counter ends at 15. */
  finish(): Uint8Array[] {
    const held = this.#held;
    this.#held = [];
    const counted = held.filter((packet) => hasPayload(packet, 0)).length;
    const missing = (16 - ((this.#last + 1 + counted) & 15)) & 15;
    const first = held[0];
    const canSplit = first !== undefined && hasPayload(first, 0) &&
      PACKET_BYTES - 4 - fieldBytes(first, 0) >= SPLITTABLE_BYTES;
    const parts = canSplit && missing > 0 ? [...splitPacket(first, missing), ...held.slice(1)] : held;
    return parts.map((packet) => this.#count(packet));
  }

  #count(packet: Uint8Array): Uint8Array {
    if (hasPayload(packet, 0)) this.#last = (this.#last + 1) & 15;
    packet[3] = (packet[3]! & 0xf0) | this.#last;
    return packet;
  }
}

/** Splits a packet into one that lacks its last `more` payload bytes, and `more` packets with one of them each. */
export function splitPacket(packet: Uint8Array, more: number): Uint8Array[] {
  const field = fieldBytes(packet, 0);
  const head = new Uint8Array(PACKET_BYTES);
  head.set(packet.subarray(0, 4));
  head[3] = head[3]! | 0x20;
  head[4] = field + more - 1;
  // The field grows by stuffing; one without flags gets them as zero (2.4.3.4).
  head.set(packet.subarray(5, 4 + field), 5);
  head.fill(0xff, 4 + Math.max(field, 1), 4 + field + more);
  if (field <= 1 && field + more > 1) head[5] = 0;
  head.set(packet.subarray(4 + field, PACKET_BYTES - more), 4 + field + more);
  const parts = [head];
  for (let i = PACKET_BYTES - more; i < PACKET_BYTES; i++) {
    const part = new Uint8Array(PACKET_BYTES).fill(0xff);
    part.set([0x47, packet[1]! & 0x1f, packet[2]!, 0x30, PACKET_BYTES - 6, 0]);
    part[PACKET_BYTES - 1] = packet[i]!;
    parts.push(part);
  }
  return parts;
}
