/** The datagrams of uTP (BEP 29): a header of 20 bytes, an optional selective acknowledgement, the payload. */

/** Types of packets. */
export const PACKET = { data: 0, fin: 1, state: 2, reset: 3, syn: 4 } as const;

/** Bytes of a header without extensions. */
export const HEADER_BYTES = 20;

/** Longest selective acknowledgement that is sent or read, bytes: one bit for each packet of the receiver's window. */
export const MAX_SACK_BYTES = 64;

const VERSION = 1;
const SELECTIVE_ACK = 1;

/** One packet. Sequence numbers have 16 bits, times 32. */
export interface UtpPacket {
  /** One of `PACKET`. */
  readonly type: number;
  readonly connectionId: number;
  /** The sender's clock, µs. */
  readonly timestampUs: number;
  /** What the sender last measured between the other's clock and its own, µs. */
  readonly timestampDifferenceUs: number;
  /** Bytes that the sender can take beyond what it acknowledges here. */
  readonly windowBytes: number;
  readonly seq: number;
  /** The last packet that arrived with all before it. */
  readonly ack: number;
  /** Bit `i` (least significant first) is set when packet `ack + 2 + i` has arrived; null without. */
  readonly selectiveAck: Uint8Array | null;
  readonly payload: Uint8Array;
}

/** The bytes of a packet. `selectiveAck` is 4 to 64 bytes long, a multiple of four. */
export function encodePacket(packet: UtpPacket): Uint8Array {
  const { selectiveAck, payload } = packet;
  const extensionBytes = selectiveAck === null ? 0 : 2 + selectiveAck.length;
  const bytes = new Uint8Array(HEADER_BYTES + extensionBytes + payload.length);
  const view = new DataView(bytes.buffer);
  bytes[0] = packet.type << 4 | VERSION;
  bytes[1] = selectiveAck === null ? 0 : SELECTIVE_ACK;
  view.setUint16(2, packet.connectionId);
  view.setUint32(4, packet.timestampUs >>> 0);
  view.setUint32(8, packet.timestampDifferenceUs >>> 0);
  view.setUint32(12, packet.windowBytes);
  view.setUint16(16, packet.seq);
  view.setUint16(18, packet.ack);
  if (selectiveAck !== null) {
    bytes[21] = selectiveAck.length;
    bytes.set(selectiveAck, 22);
  }
  bytes.set(payload, HEADER_BYTES + extensionBytes);
  return bytes;
}

/** Whether a datagram may be of uTP; decides between it and other protocols of the same port. */
export function looksLikeUtp(bytes: Uint8Array): boolean {
  return bytes.length >= HEADER_BYTES && (bytes[0]! & 15) === VERSION && bytes[0]! >> 4 <= PACKET.syn;
}

/** Reads a packet; null when it is malformed. The payload is a view of `bytes`. Extensions that are not known are skipped. */
export function decodePacket(bytes: Uint8Array): UtpPacket | null {
  if (!looksLikeUtp(bytes)) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let selectiveAck: Uint8Array | null = null;
  let extension = bytes[1]!;
  let at = HEADER_BYTES;
  while (extension !== 0) {
    if (at + 2 > bytes.length) return null;
    const next = bytes[at]!;
    const length = bytes[at + 1]!;
    if (at + 2 + length > bytes.length) return null;
    // BEP 29 asks for a multiple of four bytes. libtorrent sends as many as it needs.
    if (extension === SELECTIVE_ACK && length > 0) {
      selectiveAck = bytes.subarray(at + 2, at + 2 + Math.min(length, MAX_SACK_BYTES));
    }
    extension = next;
    at += 2 + length;
  }
  return {
    type: bytes[0]! >> 4,
    connectionId: view.getUint16(2),
    timestampUs: view.getUint32(4),
    timestampDifferenceUs: view.getUint32(8),
    windowBytes: view.getUint32(12),
    seq: view.getUint16(16),
    ack: view.getUint16(18),
    selectiveAck,
    payload: bytes.subarray(at),
  };
}

/** How far `seq` is after `base`, −32768 to 32767: numbers wrap. */
export function distance(seq: number, base: number): number {
  return (seq - base) << 16 >> 16;
}
