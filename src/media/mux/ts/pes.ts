/** PES packet headers (ISO/IEC 13818-1, 2.4.3.6). */
import { writeStamp } from "../../../bytes/ts/stamps.ts";

/** Header with a PTS only. */
export const PES_HEADER_PTS_BYTES = 14;
/** Header with PTS and DTS. */
const PES_HEADER_PTS_DTS_BYTES = 19;

/** Size of the header for these times: a DTS is sent only where it differs (2.4.3.7). */
export function pesHeaderBytes(ptsShift90k: number): number {
  return ptsShift90k === 0 ? PES_HEADER_PTS_BYTES : PES_HEADER_PTS_DTS_BYTES;
}

/**
 * Writes the header; returns where the payload starts. `payloadBytes` is declared when it fits 16 bits and the stream is
 * not video; video declares 0 ("until the next one"), as its length may be anything.
 */
export function writePesHeader(
  out: Uint8Array,
  at: number,
  streamId: number,
  pts90k: number,
  dts90k: number,
  payloadBytes: number,
): number {
  const withDts = pts90k !== dts90k;
  const stampBytes = withDts ? 10 : 5;
  const isVideo = streamId >= 0xe0 && streamId <= 0xef;
  const declared = payloadBytes + 3 + stampBytes;
  const length = isVideo || declared > 0xffff ? 0 : declared;
  out[at] = 0;
  out[at + 1] = 0;
  out[at + 2] = 1;
  out[at + 3] = streamId;
  out[at + 4] = length >> 8;
  out[at + 5] = length & 0xff;
  out[at + 6] = 0x84;
  out[at + 7] = withDts ? 0xc0 : 0x80;
  out[at + 8] = stampBytes;
  writeStamp(out, at + 9, withDts ? 3 : 2, pts90k);
  if (withDts) writeStamp(out, at + 14, 1, dts90k);
  return at + 9 + stampBytes;
}
