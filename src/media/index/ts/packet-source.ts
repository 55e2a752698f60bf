/** A transport stream file as a row of 188-byte packets, without the extra bytes stored around them. */
import type { ByteSource } from "../../../bytes/source.ts";
import { MillraceError } from "../../../errors.ts";
import { PACKET_BYTES, SYNC_BYTE } from "../../../bytes/ts/packet.ts";

/** How packets lie in the file. */
export interface PacketFormat {
  /** Distance of packets: 188, 192 (M2TS: 4 bytes of arrival time first) or 204 (16 bytes of parity last). */
  readonly strideBytes: number;
  /** Position of the first sync byte. */
  readonly firstAt: number;
  /** Whole packets in the file. */
  readonly packetCount: number;
}

const STRIDES = [188, 192, 204];
/** How many bytes at the file's beginning may be junk. */
const DETECT_BYTES = 64 * 1024;
/** Consecutive sync bytes that identify a transport stream; chance produces them once in 2^64 places. */
const SYNCS = 8;
/** Files with fewer packets must have sync bytes throughout, and at least this many. */
const LEAST_SYNCS = 3;

/** Whether the packets from `at` on have their sync bytes as far as `bytes` reaches. */
function inSync(bytes: Uint8Array, at: number, stride: number): boolean {
  let seen = 0;
  for (let i = at; i < bytes.length && seen < SYNCS; i += stride, seen++) if (bytes[i] !== SYNC_BYTE) return false;
  return seen >= SYNCS || (seen >= LEAST_SYNCS && bytes.length < DETECT_BYTES);
}

/** Finds the packets of a file, or null when it isn't a transport stream. Reads 64 KiB. */
export async function detectPackets(source: ByteSource, signal: AbortSignal): Promise<PacketFormat | null> {
  const bytes = await source.read(0, Math.min(DETECT_BYTES, source.sizeBytes), { signal });
  for (let at = bytes.indexOf(SYNC_BYTE); at >= 0; at = bytes.indexOf(SYNC_BYTE, at + 1)) {
    const strideBytes = STRIDES.find((stride) => inSync(bytes, at, stride));
    if (strideBytes === undefined) continue;
    const packetCount = Math.floor((source.sizeBytes - at - PACKET_BYTES) / strideBytes) + 1;
    return { strideBytes, firstAt: at, packetCount };
  }
  return null;
}

/** `count` packets from `first` on, 188 bytes each, whatever the stride. Stays within the file. */
export async function readPackets(
  format: PacketFormat,
  source: ByteSource,
  first: number,
  count: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const take = Math.min(count, format.packetCount - first);
  if (first < 0 || take <= 0) throw new MillraceError("invalid_argument", `packet ${first} is outside the file`);
  const { strideBytes, firstAt } = format;
  const length = (take - 1) * strideBytes + PACKET_BYTES;
  const bytes = await source.read(firstAt + first * strideBytes, length, { signal });
  if (strideBytes === PACKET_BYTES) return bytes;
  const packets = new Uint8Array(take * PACKET_BYTES);
  for (let i = 0; i < take; i++) {
    packets.set(bytes.subarray(i * strideBytes, i * strideBytes + PACKET_BYTES), i * PACKET_BYTES);
  }
  source.release?.(bytes);
  return packets;
}
