/** Finds transport packets in bytes that may begin anywhere, by their sync bytes (ISO/IEC 13818-1, 2.4.3.2). */
import { PACKET_BYTES, SYNC_BYTE } from "./packet.ts";

/** Distances of packets: plain, M2TS (4 bytes of arrival time before each; BDAV), with 16 bytes of parity after each (DVB). */
export const PACKET_STRIDES: readonly number[] = [PACKET_BYTES, PACKET_BYTES + 4, PACKET_BYTES + 16];
/** Plain packets alone, as they are sent. */
export const PLAIN_STRIDE: readonly number[] = [PACKET_BYTES];
/** This many sync bytes in a row show packets; by chance that happens at one place in 2^40. */
export const SYNC_RUN = 5;
/** This many suffice where a stream is expected, and at the end of a short file: by chance at one place in 16 million. */
export const LEAST_SYNCS = 3;

/** Layout of packets in bytes. */
export interface PacketGrid {
  /** Place of the first sync byte. */
  readonly firstAt: number;
  /** Distance of packets, one of `PACKET_STRIDES`. */
  readonly strideBytes: number;
}

/** Sync bytes in a row from `at` on, `strideBytes` apart: at most `SYNC_RUN`, fewer where one is missing or `bytes` ends. */
export function syncsAt(bytes: Uint8Array, at: number, strideBytes: number): number {
  let syncs = 0;
  while (syncs < SYNC_RUN && bytes[at + syncs * strideBytes] === SYNC_BYTE) syncs++;
  return syncs;
}

/**
 * The first row of packets in `bytes`; null when there is none. `isWhole`: no bytes follow, so that fewer packets suffice
 * when they reach the end. Default false.
 */
export function findPackets(bytes: Uint8Array, strides: readonly number[], isWhole = false): PacketGrid | null {
  for (let firstAt = bytes.indexOf(SYNC_BYTE); firstAt >= 0; firstAt = bytes.indexOf(SYNC_BYTE, firstAt + 1)) {
    for (const strideBytes of strides) {
      const syncs = syncsAt(bytes, firstAt, strideBytes);
      const isEnd = isWhole && syncs >= LEAST_SYNCS && firstAt + syncs * strideBytes >= bytes.length;
      if (syncs === SYNC_RUN || isEnd) return { firstAt, strideBytes };
    }
  }
  return null;
}
