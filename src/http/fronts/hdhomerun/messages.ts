/**
 * Messages by which clients find a tuner (libhdhomerun, `hdhomerun_pkt.h`): type and length, tagged values, and a checksum.
 * Numbers are big-endian, the checksum little-endian.
 */

const DISCOVER = 2;
const FOUND = 3;
/** Tags of values. */
const TAG = { type: 1, id: 2, tuners: 0x10, lineupUrl: 0x27, baseUrl: 0x2a, types: 0x2d } as const;
const TUNER_TYPE = 1;
const ANY = 0xffff_ffff;
/** Longest message, bytes, as libhdhomerun has it. */
const MAX_BYTES = 1460;
const HEADER_BYTES = 4;
const CHECKSUM_BYTES = 4;

/** CRC-32 of Ethernet (IEEE 802.3). */
export function crc32Ethernet(bytes: Uint8Array): number {
  let crc = ANY;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return ~crc >>> 0;
}

/** Whether the datagram looks for a tuner of this id, or for any. */
export function looksForTuner(datagram: Uint8Array, id: number): boolean {
  const payload = payloadOf(datagram);
  if (payload === null) return false;
  let [isType, isId] = [true, true];
  for (const [tag, value] of payload) {
    const numbers = numbersIn(value);
    if (tag === TAG.type || tag === TAG.types) isType = numbers.includes(TUNER_TYPE) || numbers.includes(ANY);
    else if (tag === TAG.id) isId = numbers.includes(id) || numbers.includes(ANY);
  }
  return isType && isId;
}

/** The values of a search; null for anything else. */
function payloadOf(datagram: Uint8Array): (readonly [tag: number, value: Uint8Array])[] | null {
  const view = new DataView(datagram.buffer, datagram.byteOffset, datagram.byteLength);
  const end = datagram.length - CHECKSUM_BYTES;
  if (datagram.length > MAX_BYTES || end < HEADER_BYTES || view.getUint16(0) !== DISCOVER) return null;
  if (view.getUint16(2) !== end - HEADER_BYTES) return null;
  if (view.getUint32(end, true) !== crc32Ethernet(datagram.subarray(0, end))) return null;
  const values: (readonly [number, Uint8Array])[] = [];
  for (let at = HEADER_BYTES; at < end;) {
    const tag = datagram[at++]!;
    let length = datagram[at++] ?? 0;
    if (length & 0x80) length = (length & 0x7f) | ((datagram[at++] ?? 0) << 7);
    if (at + length > end) return null;
    values.push([tag, datagram.subarray(at, at + length)]);
    at += length;
  }
  return values;
}

function numbersIn(value: Uint8Array): number[] {
  const view = new DataView(value.buffer, value.byteOffset, value.byteLength);
  return Array.from({ length: Math.floor(value.length / 4) }, (_, i) => view.getUint32(4 * i));
}

/** The answer to a search. */
export function tunerFound(facts: {
  readonly id: number;
  readonly tuners: number;
  /** `http://192.168.1.10:6878`, less than 1000 characters. */
  readonly baseUrl: string;
}): Uint8Array {
  const text = (value: string) => [...new TextEncoder().encode(value)];
  const u32 = (value: number) => [value >>> 24, value >>> 16, value >>> 8, value].map((byte) => byte & 255);
  const tagged = (tag: number, value: readonly number[]) =>
    value.length < 128 ? [tag, value.length, ...value] : [tag, value.length & 127 | 128, value.length >> 7, ...value];
  const payload = [
    ...tagged(TAG.type, u32(TUNER_TYPE)),
    ...tagged(TAG.id, u32(facts.id)),
    ...tagged(TAG.tuners, [facts.tuners]),
    ...tagged(TAG.baseUrl, text(facts.baseUrl)),
    ...tagged(TAG.lineupUrl, text(`${facts.baseUrl}/lineup.json`)),
  ];
  const head = [0, FOUND, payload.length >> 8, payload.length & 255, ...payload];
  const checksum = crc32Ethernet(new Uint8Array(head));
  return new Uint8Array([...head, ...u32(checksum).reverse()]);
}
