/** A transport stream file as a row of 188-byte packets, without the extra bytes stored around them. */
import type { ByteSource } from "../source.ts";
import { MillraceError } from "../../errors.ts";
import { PACKET_BYTES } from "./packet.ts";
import { areAligned, CONTEXT_PACKETS, realign } from "./realign.ts";
import { findPackets, PACKET_STRIDES, type PacketGrid } from "./sync.ts";

/** Layout of the packets in a file. */
export interface PacketFormat extends PacketGrid {
  /** Whole packets in the file. */
  readonly packetCount: number;
  /** Called with the place in the file of packets that were read and do not follow the one before them. */
  readonly onGap?: (at: number) => void;
}

/** The first packets are looked for in this many bytes of the file; the bytes before them may be junk. */
const DETECT_BYTES = 64 * 1024;

/** Finds the packets of a file, or null when it isn't a transport stream. Reads 64 KiB. */
export async function detectPackets(source: ByteSource, signal: AbortSignal): Promise<PacketFormat | null> {
  const bytes = await source.read(0, Math.min(DETECT_BYTES, source.sizeBytes), { signal });
  const grid = findPackets(bytes, PACKET_STRIDES, bytes.length < DETECT_BYTES);
  if (grid === null) return null;
  return { ...grid, packetCount: Math.floor((source.sizeBytes - grid.firstAt - PACKET_BYTES) / grid.strideBytes) + 1 };
}

/**
 * `count` packets from `first` on, 188 bytes each, whatever the stride. Stays within the file. Where the file lost bytes or
 * has too many, as `realign`.
 */
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
  const start = firstAt + first * strideBytes;
  // The next sync byte shows that the last packet is whole. After the last one there may be nothing to read yet.
  const shown = first + take < format.packetCount ? take * strideBytes + 1 : length;
  const read = await source.read(start, shown, { signal });
  const bytes = read.subarray(0, length);
  if (!areAligned(read, strideBytes, Math.ceil(shown / strideBytes))) {
    source.release?.(bytes);
    return await realigned(format, source, first, take, signal);
  }
  if (strideBytes === PACKET_BYTES) return bytes;
  const packets = new Uint8Array(take * PACKET_BYTES);
  for (let i = 0; i < take; i++) {
    packets.set(bytes.subarray(i * strideBytes, i * strideBytes + PACKET_BYTES), i * PACKET_BYTES);
  }
  source.release?.(bytes);
  return packets;
}

async function realigned(
  { firstAt, strideBytes, onGap }: PacketFormat,
  source: ByteSource,
  first: number,
  count: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const start = firstAt + first * strideBytes;
  const reach = CONTEXT_PACKETS * strideBytes;
  const from = Math.max(0, start - reach);
  const to = Math.min(source.sizeBytes, start + (count + 1) * strideBytes + reach);
  const bytes = await source.read(from, to - from, { signal });
  const around = { bytes, from: start - from, isEnd: to === source.sizeBytes };
  const packets = realign(around, strideBytes, count, (at) => onGap?.(from + at));
  source.release?.(bytes);
  return packets;
}
