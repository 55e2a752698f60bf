/** The version of PAT and PMT (ISO/IEC 13818-1, 2.4.4.5): players read a table again only when it has changed. */
import { crc32Mpeg } from "../../bytes/ts/crc.ts";
import { PACKET_BYTES, payloadOf, startsUnit } from "../../bytes/ts/packet.ts";

/** Bytes of a section before those that `section_length` counts. */
const LENGTH_END = 3;
/** Place of the byte with `version_number`. */
const VERSION_AT = 5;
const CRC_BYTES = 4;

/**
 * Adds `by` to the version of the PAT or PMT that begins in the packet at `at` of `bytes`, in place. A section that is
 * damaged, or continues in another packet, stays unchanged: those are rare, and the counters show the change.
 */
export function raiseTableVersion(bytes: Uint8Array, at: number, by: number): void {
  if (!startsUnit(bytes, at)) return;
  const payload = payloadOf(bytes.subarray(0, at + PACKET_BYTES), at);
  const start = 1 + (payload[0] ?? payload.length);
  if (start + VERSION_AT >= payload.length) return;
  const tableId = payload[start]!;
  const length = ((payload[start + 1]! & 0x0f) << 8) | payload[start + 2]!;
  const section = payload.subarray(start, start + LENGTH_END + length);
  if (tableId !== 0 && tableId !== 2) return;
  if (section.length !== LENGTH_END + length || section.length <= VERSION_AT + CRC_BYTES || crc32Mpeg(section) !== 0) {
    return;
  }
  const version = ((section[VERSION_AT]! >> 1) + by) & 31;
  section[VERSION_AT] = (section[VERSION_AT]! & 0xc1) | (version << 1);
  const end = section.length - CRC_BYTES;
  const crc = crc32Mpeg(section.subarray(0, end));
  section.set([crc >>> 24, (crc >> 16) & 0xff, (crc >> 8) & 0xff, crc & 0xff], end);
}
