/**
 * Packets of HDHomeRun devices, alike in datagrams and on connections (libhdhomerun, `hdhomerun_pkt.h`): type and length,
 * tagged values, and a checksum. Numbers are big-endian, the checksum little-endian.
 */

/** Longest packet, bytes, as libhdhomerun has it. */
export const MAX_PACKET_BYTES = 1460;
const HEADER_BYTES = 4;
const CHECKSUM_BYTES = 4;
const ALL_ONES = 0xffff_ffff;

/** A packet's type, and its values in their order. */
export interface Packet {
  readonly type: number;
  readonly values: readonly (readonly [tag: number, value: Uint8Array])[];
}

/** CRC-32 of Ethernet (IEEE 802.3). */
export function crc32Ethernet(bytes: Uint8Array): number {
  let crc = ALL_ONES;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return ~crc >>> 0;
}

/** How long the packet is that begins here, bytes; null while its header is not whole. May be over `MAX_PACKET_BYTES`. */
export function packetBytes(begun: Uint8Array): number | null {
  if (begun.length < HEADER_BYTES) return null;
  return HEADER_BYTES + (begun[2]! << 8 | begun[3]!) + CHECKSUM_BYTES;
}

/** The packet that these bytes are; null if they are none, or damaged. */
export function readPacket(bytes: Uint8Array): Packet | null {
  const end = bytes.length - CHECKSUM_BYTES;
  if (bytes.length > MAX_PACKET_BYTES || packetBytes(bytes) !== bytes.length) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.getUint32(end, true) !== crc32Ethernet(bytes.subarray(0, end))) return null;
  const values: (readonly [number, Uint8Array])[] = [];
  for (let at = HEADER_BYTES; at < end;) {
    const tag = bytes[at++]!;
    let length = bytes[at++] ?? 0;
    if (length & 0x80) length = (length & 0x7f) | ((bytes[at++] ?? 0) << 7);
    if (at + length > end) return null;
    values.push([tag, bytes.subarray(at, at + length)]);
    at += length;
  }
  return { type: view.getUint16(0), values };
}

/** The bytes of a packet, whose values have less than 16,384 bytes each. */
export function writePacket({ type, values }: Packet): Uint8Array {
  const payload = values.flatMap(([tag, value]) =>
    value.length < 128 ? [tag, value.length, ...value] : [tag, value.length & 127 | 128, value.length >> 7, ...value]
  );
  const head = [type >> 8, type & 255, payload.length >> 8, payload.length & 255, ...payload];
  const packet = new Uint8Array(head.length + CHECKSUM_BYTES);
  packet.set(head);
  new DataView(packet.buffer).setUint32(head.length, crc32Ethernet(packet.subarray(0, head.length)), true);
  return packet;
}

/** A number of 32 bits as a value. */
export function numberValue(value: number): Uint8Array {
  return new Uint8Array([value >>> 24, value >>> 16 & 255, value >>> 8 & 255, value & 255]);
}

/** The numbers of 32 bits in a value. */
export function numbersIn(value: Uint8Array): number[] {
  const view = new DataView(value.buffer, value.byteOffset, value.byteLength);
  return Array.from({ length: Math.floor(value.length / 4) }, (_, i) => view.getUint32(4 * i));
}
