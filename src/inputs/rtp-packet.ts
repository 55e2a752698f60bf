/** RTP packets (RFC 3550, 5.1) that carry a transport stream (RFC 2250, 2). */
import { firstPacketIn } from "./datagram-packets.ts";

/** What the receiver needs of a packet. */
export interface RtpPacket {
  /** 16 bits, one more with each packet. */
  readonly sequence: number;
  /** Synchronization source: who sends. */
  readonly ssrc: number;
  /** Part of a transport stream, cut anywhere; a view of the datagram. */
  readonly payload: Uint8Array;
}

const VERSION = 2;
const FIXED_BYTES = 12;
/** The payload type of transport streams (RFC 3551, 6). */
const MP2T = 33;

/**
 * Reads a datagram; null for anything but RTP with a transport stream. Other payload types may carry one, too, if its
 * packets can be seen.
 */
export function readRtp(datagram: Uint8Array): RtpPacket | null {
  if (datagram.length < FIXED_BYTES || datagram[0]! >> 6 !== VERSION) return null;
  const view = new DataView(datagram.buffer, datagram.byteOffset, datagram.byteLength);
  let start = FIXED_BYTES + 4 * (datagram[0]! & 0x0f);
  let end = datagram.length;
  if ((datagram[0]! & 0x10) !== 0) {
    if (start + 4 > end) return null;
    start += 4 + 4 * view.getUint16(start + 2);
  }
  if ((datagram[0]! & 0x20) !== 0) {
    const padding = datagram[end - 1]!;
    if (padding === 0) return null;
    end -= padding;
  }
  if (end <= start) return null;
  const payload = datagram.subarray(start, end);
  const isStream = firstPacketIn(payload) !== null || (datagram[1]! & 0x7f) === MP2T;
  return isStream ? { sequence: view.getUint16(2), ssrc: view.getUint32(8), payload } : null;
}
