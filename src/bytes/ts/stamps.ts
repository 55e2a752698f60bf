/** The 33-bit times of transport streams, 90 kHz: PTS and DTS (ISO/IEC 13818-1, 2.4.3.7), base of the PCR (2.4.3.5). */

/** The value at which they wrap, after 26.5 hours. */
export const WRAP_90K = 0x200000000;

/** `ticks` modulo 2^33, for values below zero too. */
export function wrap33(ticks: number): number {
  const rest = ticks % WRAP_90K;
  return rest < 0 ? rest + WRAP_90K : rest;
}

/** The shorter way around the clock from `from` to `to`: −2^32 to 2^32 − 1. */
export function stepBetween(from: number, to: number): number {
  const ahead = wrap33(to - from);
  return ahead < WRAP_90K / 2 ? ahead : ahead - WRAP_90K;
}

/** True when `pts90k` is known and lies before `least90k`; a null bound never applies. */
export function isBefore(pts90k: number | null, least90k: number | null): boolean {
  return pts90k !== null && least90k !== null && stepBetween(least90k, pts90k) < 0;
}

/** The PTS or DTS in the five bytes at `at`. */
export function readStamp(bytes: Uint8Array, at: number): number {
  const high = (bytes[at]! >> 1) & 7;
  const middle = (bytes[at + 1]! << 7) | (bytes[at + 2]! >> 1);
  const low = (bytes[at + 3]! << 7) | (bytes[at + 4]! >> 1);
  return high * 0x40000000 + middle * 0x8000 + low;
}

/**
 * Writes five bytes; `marker` is 2 for a PTS alone, 3 for a PTS followed by a DTS, 1 for a DTS. `ticks` may be out of
 * range.
 */
export function writeStamp(bytes: Uint8Array, at: number, marker: number, ticks: number): void {
  const base = wrap33(ticks);
  const high = Math.floor(base / 0x40000000);
  const low = base % 0x40000000;
  bytes[at] = (marker << 4) | (high << 1) | 1;
  bytes[at + 1] = (low >>> 22) & 0xff;
  bytes[at + 2] = ((low >>> 14) & 0xfe) | 1;
  bytes[at + 3] = (low >>> 7) & 0xff;
  bytes[at + 4] = ((low << 1) & 0xfe) | 1;
}

/** The base of the PCR in the six bytes at `at`. */
export function readPcr(bytes: Uint8Array, at: number): number {
  const high = ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
  return high * 2 + (bytes[at + 4]! >> 7);
}

/** Writes the base of a PCR; the 27 MHz extension after it is kept. `ticks` may be out of range. */
export function writePcr(bytes: Uint8Array, at: number, ticks: number): void {
  const base = wrap33(ticks);
  const high = Math.floor(base / 2);
  bytes[at] = (high >>> 24) & 0xff;
  bytes[at + 1] = (high >>> 16) & 0xff;
  bytes[at + 2] = (high >>> 8) & 0xff;
  bytes[at + 3] = high & 0xff;
  bytes[at + 4] = (base % 2 === 1 ? 0x80 : 0) | (bytes[at + 4]! & 0x7f);
}
