/**
 * Packets of a file that lost bytes or has too many: after such a place no packet lies where the layout of the file puts it.
 * Each is found by its sync bytes and counts as the packet of the place that it begins in, so that the numbers of all others
 * stay what they are. A place where none begins has a null packet.
 */
import { NULL_PID, PACKET_BYTES, SYNC_BYTE } from "./packet.ts";
import { LEAST_SYNCS, SYNC_RUN } from "./sync.ts";

/** Sync bytes around a packet that show it: those of as many packets before and after a stretch must be known, too. */
export const CONTEXT_PACKETS: number = SYNC_RUN - 1;

/** True when each of the first `count` places in `bytes` has a sync byte. */
export function areAligned(bytes: Uint8Array, strideBytes: number, count: number): boolean {
  for (let i = 0; i < count; i++) if (bytes[i * strideBytes] !== SYNC_BYTE) return false;
  return true;
}

/** Bytes around a stretch of packets. */
export interface Surroundings {
  readonly bytes: Uint8Array;
  /** Where the stretch begins in them. */
  readonly from: number;
  /** The file ends with them. */
  readonly isEnd: boolean;
}

/**
 * The packets of the `count` places from `from` on, 188 bytes each. `found` is called with the place in `bytes` of each packet
 * that does not follow the one before it.
 */
export function realign(
  { bytes, from, isEnd }: Surroundings,
  strideBytes: number,
  count: number,
  found?: (at: number) => void,
): Uint8Array {
  const packets = new Uint8Array(count * PACKET_BYTES);
  for (let at = 0; at < packets.length; at += PACKET_BYTES) {
    packets.set([SYNC_BYTE, NULL_PID >> 8, NULL_PID & 0xff, 0x10], at);
    packets.fill(0xff, at + 4, at + PACKET_BYTES);
  }
  const put = (at: number) => {
    const place = Math.floor((at - from) / strideBytes);
    if (place >= 0 && place < count) packets.set(bytes.subarray(at, at + PACKET_BYTES), place * PACKET_BYTES);
  };
  let last = -1;
  /** Where the packet before `last` begins. */
  let before = -1;
  const settle = () => {
    put(last);
    if (before >= 0 && last !== before + strideBytes) found?.(last);
    before = last;
  };
  for (let at = bytes.indexOf(SYNC_BYTE); at >= 0; at = bytes.indexOf(SYNC_BYTE, at + 1)) {
    if (at + PACKET_BYTES > bytes.length || !isInRow(bytes, at, strideBytes, isEnd)) continue;
    const isInside = last >= 0 && at < last + strideBytes;
    // A packet that another one follows is whole: a sync byte inside it is by chance. Otherwise it was cut short.
    if (isInside && bytes[last + strideBytes] === SYNC_BYTE) continue;
    if (last >= 0 && !isInside) settle();
    last = at;
  }
  if (last >= 0) settle();
  return packets;
}

/** Whether the sync byte at `at` is one of several in a row. */
function isInRow(bytes: Uint8Array, at: number, strideBytes: number, isEnd: boolean): boolean {
  let syncs = 1;
  for (let before = at - strideBytes; syncs < SYNC_RUN && bytes[before] === SYNC_BYTE; before -= strideBytes) syncs++;
  let after = at + strideBytes;
  for (; syncs < SYNC_RUN && bytes[after] === SYNC_BYTE; after += strideBytes) syncs++;
  return syncs >= SYNC_RUN || (isEnd && after >= bytes.length && syncs >= LEAST_SYNCS);
}
