/** Fields of transport packets and PES headers (ISO/IEC 13818-1, 2.4.3). All functions take a packet's index in `bytes`. */
import { readStamp } from "./stamps.ts";

/** Size of a transport packet. */
export const PACKET_BYTES = 188;
/** sync_byte: the first of each packet. */
export const SYNC_BYTE = 0x47;
/** PID of packets without content. */
export const NULL_PID = 0x1fff;

/** Flags of the adaptation field, in its second byte. */
export const FIELD_DISCONTINUITY = 0x80;
/** random_access_indicator. */
export const FIELD_RANDOM_ACCESS = 0x40;
/** PCR_flag. */
export const FIELD_PCR = 0x10;

/** PID, 13 bits. */
export function pidOf(bytes: Uint8Array, at: number): number {
  return ((bytes[at + 1]! & 0x1f) << 8) | bytes[at + 2]!;
}

/** payload_unit_start_indicator. */
export function startsUnit(bytes: Uint8Array, at: number): boolean {
  return (bytes[at + 1]! & 0x40) !== 0;
}

/** True for a useless packet: scrambled, marked as damaged, or without a sync byte. */
export function unusable(bytes: Uint8Array, at: number): boolean {
  return bytes[at] !== SYNC_BYTE || (bytes[at + 1]! & 0x80) !== 0 || isScrambled(bytes, at);
}

/** True when transport_scrambling_control is not 0. */
export function isScrambled(bytes: Uint8Array, at: number): boolean {
  return (bytes[at + 3]! & 0xc0) !== 0;
}

/** True when the packet has a payload (adaptation_field_control). */
export function hasPayload(bytes: Uint8Array, at: number): boolean {
  return (bytes[at + 3]! & 0x10) !== 0;
}

/** Length of the adaptation field including its length byte; 0 when there is none. */
export function fieldBytes(bytes: Uint8Array, at: number): number {
  return (bytes[at + 3]! & 0x20) === 0 ? 0 : bytes[at + 4]! + 1;
}

/** random_access_indicator. */
export function isRandomAccess(bytes: Uint8Array, at: number): boolean {
  return fieldBytes(bytes, at) > 1 && (bytes[at + 5]! & FIELD_RANDOM_ACCESS) !== 0;
}

/** True when `bytes` are whole packets, at least one, the first with its sync byte. */
export function areWholePackets(bytes: Uint8Array): boolean {
  return bytes.length > 0 && bytes.length % PACKET_BYTES === 0 && bytes[0] === SYNC_BYTE;
}

/** Index of the PCR, six bytes; -1 when the packet has none. */
export function pcrAt(bytes: Uint8Array, at: number): number {
  return fieldBytes(bytes, at) >= 8 && (bytes[at + 5]! & FIELD_PCR) !== 0 ? at + 6 : -1;
}

/** The payload of a packet; empty when it has none or its adaptation field is damaged. */
export function payloadOf(bytes: Uint8Array, at: number): Uint8Array {
  const start = at + 4 + fieldBytes(bytes, at);
  return hasPayload(bytes, at) && start < at + PACKET_BYTES
    ? bytes.subarray(start, at + PACKET_BYTES)
    : bytes.subarray(at, at);
}

/** The contents of a PES header (2.4.3.6). */
export interface PesHeader {
  /** 33-bit, 90 kHz; null when absent. */
  readonly pts90k: number | null;
  /** Index of the elementary stream's first byte. */
  readonly body: number;
  /** Bytes of the whole PES packet; null when it ends where the next begins. */
  readonly totalBytes: number | null;
}

/** Reads the PES header at the start of `payload`; null when there is none. */
export function readPesHeader(payload: Uint8Array): PesHeader | null {
  if (payload.length < 9 || payload[0] !== 0 || payload[1] !== 0 || payload[2] !== 1) return null;
  const length = (payload[4]! << 8) | payload[5]!;
  const hasPts = (payload[7]! & 0x80) !== 0 && payload.length >= 14;
  return {
    pts90k: hasPts ? readStamp(payload, 9) : null,
    body: 9 + payload[8]!,
    totalBytes: length === 0 ? null : length + 6,
  };
}
