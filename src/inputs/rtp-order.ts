/** Puts RTP packets back into the order in which they were sent (RFC 3550, appendix A.1), and counts missing ones. */
import type { RtpPacket } from "./rtp-packet.ts";

/** Packets held while one is missing: 84 KiB, at 10 Mb/s 70 ms. */
export const HELD_PACKETS = 64;
/** How long a missing packet is awaited, ms: reordering on networks is a matter of milliseconds. */
export const HELD_MS = 100;
/** A step beyond this is a sender that began again. */
const MAX_JUMP = 3000;
/** This many old packets in a row, or of another sender, are the new stream. */
const SWITCH_PACKETS = 16;

/** The result of a packet. */
export interface RtpStep {
  /** Packets that can be sent, in order. */
  readonly payloads: readonly Uint8Array[];
  /** The sender began again: the following packets do not continue those before. `payloads` come after the cut. */
  readonly isCut: boolean;
}

const NOTHING: RtpStep = { payloads: [], isCut: false };

/** Reorders the packets of one RTP stream. */
export class RtpOrder {
  #ssrc: number | null = null;
  /** Sequence number that is due. */
  #due = 0;
  readonly #held = new Map<number, Uint8Array>();
  /** Since when a packet is missing, monotonic ms. */
  #missingSinceMs = 0;
  #strange = 0;
  /** Packets that never came. */
  lostPackets = 0;
  /** Packets that came twice or too late. */
  latePackets = 0;

  /** Takes a packet that arrived at `nowMs` (monotonic). */
  push({ sequence, ssrc, payload }: RtpPacket, nowMs: number): RtpStep {
    if (this.#ssrc === null) {
      this.#ssrc = ssrc;
      this.#due = sequence;
    }
    const ahead = (sequence - this.#due) & 0xffff;
    const isOld = ahead >= 0x8000;
    if (ssrc !== this.#ssrc || isOld || ahead > MAX_JUMP) {
      if (isOld && ssrc === this.#ssrc) this.latePackets++;
      if (++this.#strange < SWITCH_PACKETS) return NOTHING;
      this.#held.clear();
      this.#strange = 0;
      this.#ssrc = ssrc;
      this.#due = (sequence + 1) & 0xffff;
      return { payloads: [payload], isCut: true };
    }
    this.#strange = 0;
    if (ahead === 0) {
      this.#due = (sequence + 1) & 0xffff;
      return { payloads: [payload, ...this.#ready(nowMs)], isCut: false };
    }
    if (this.#held.size === 0) this.#missingSinceMs = nowMs;
    this.#held.set(sequence, payload);
    if (this.#held.size <= HELD_PACKETS && nowMs - this.#missingSinceMs < HELD_MS) return NOTHING;
    return { payloads: this.#giveUp(nowMs), isCut: false };
  }

  /** The sender fell silent: returns the packets held for a gap, in order, and counts those missing as lost. */
  flush(nowMs: number): Uint8Array[] {
    const payloads: Uint8Array[] = [];
    while (this.#held.size > 0) payloads.push(...this.#giveUp(nowMs));
    return payloads;
  }

  /** Counts the missing packets of the first gap as lost, and continues after it. */
  #giveUp(nowMs: number): Uint8Array[] {
    while (!this.#held.has(this.#due)) {
      this.#due = (this.#due + 1) & 0xffff;
      this.lostPackets++;
    }
    return this.#ready(nowMs);
  }

  #ready(nowMs: number): Uint8Array[] {
    const payloads: Uint8Array[] = [];
    for (let next = this.#held.get(this.#due); next !== undefined; next = this.#held.get(this.#due)) {
      payloads.push(next);
      this.#held.delete(this.#due);
      this.#due = (this.#due + 1) & 0xffff;
    }
    if (this.#held.size > 0) this.#missingSinceMs = nowMs;
    return payloads;
  }
}
