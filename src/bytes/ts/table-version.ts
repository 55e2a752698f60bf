/** The version of PAT and PMT (ISO/IEC 13818-1, 2.4.4.5): players read a table again only when it has changed. */
import { crc32Mpeg } from "./crc.ts";
import { PACKET_BYTES, payloadOf, startsUnit } from "./packet.ts";
import { SECTION_CRC_BYTES, sectionBytes, signSection } from "./psi.ts";

/** Place of the byte with `version_number`. */
const VERSION_AT = 5;

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
  const length = sectionBytes(payload, start);
  const section = payload.subarray(start, start + length);
  if (tableId !== 0 && tableId !== 2) return;
  if (section.length !== length || section.length <= VERSION_AT + SECTION_CRC_BYTES || crc32Mpeg(section) !== 0) {
    return;
  }
  const version = ((section[VERSION_AT]! >> 1) + by) & 31;
  section[VERSION_AT] = (section[VERSION_AT]! & 0xc1) | (version << 1);
  signSection(section);
}
