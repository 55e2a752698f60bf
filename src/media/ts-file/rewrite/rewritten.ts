/**
 * A transport stream with some of its packets changed in place, as a source of its own. It has the same number of
 * packets, 188 bytes each, so that lengths, ranges and segments work on it as on the file.
 */
import { type ByteSource, lenderFor, type ReadOptions } from "../../../bytes/source.ts";
import { PACKET_BYTES } from "../../../bytes/ts/packet.ts";
import { MillraceError } from "../../../errors.ts";
import { type PacketFormat, readPackets } from "../../../bytes/ts/packet-source.ts";
import type { MapEdit } from "./map-edit.ts";
import { editMapPackets, openMapEnds } from "./map-packets.ts";

/** Other packets that replace some of the file's. */
export interface PacketOverlay {
  /** Changes `packets`, of which the first has the number `first` in the file read from `source`. */
  apply(packets: Uint8Array, first: number, source: ByteSource, signal: AbortSignal): Promise<void>;
}

/** The changes. */
export interface Rewriting {
  readonly format: PacketFormat;
  readonly mapPid: number;
  /** Null: maps stay. */
  readonly edit: MapEdit | null;
  /** Null: nothing else changes. */
  readonly overlay: PacketOverlay | null;
}

/** Packets read before and after a stretch for the rest of a map section, about 256 KiB: its packets come in a row. */
const MAP_REACH_PACKETS = 1400;

/** How the packets of the rewritten stream lie. */
export function rewrittenFormat({ format }: Rewriting): PacketFormat {
  return { strideBytes: PACKET_BYTES, firstAt: 0, packetCount: format.packetCount };
}

/** The rewritten stream over `source`. Depends on nothing but the file, in whatever order it is read. */
export function rewrittenSource(rewriting: Rewriting, source: ByteSource): ByteSource {
  const { format, overlay } = rewriting;
  const sizeBytes = format.packetCount * PACKET_BYTES;
  const lender = lenderFor(source);
  return {
    sizeBytes,
    // What is read lies in the memory of the source's read.
    ...(lender && { hold: (bytes) => lender.hold(bytes), release: (bytes) => lender.release(bytes) }),
    async read(offset: number, length: number, { signal }: ReadOptions) {
      if (length < 0 || offset < 0 || offset + length > sizeBytes) {
        throw new MillraceError("invalid_argument", `range ${offset}+${length} is outside the stream`);
      }
      if (length === 0) return new Uint8Array(0);
      const first = Math.floor(offset / PACKET_BYTES);
      const count = Math.ceil((offset + length) / PACKET_BYTES) - first;
      const packets = await withMaps(rewriting, source, first, count, signal);
      await overlay?.apply(packets, first, source, signal);
      const at = offset - first * PACKET_BYTES;
      return packets.subarray(at, at + length);
    },
  };
}

/** `count` packets from `first` on with their maps edited. */
async function withMaps(
  { format, mapPid, edit }: Rewriting,
  source: ByteSource,
  first: number,
  count: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  let packets = await readPackets(format, source, first, count, signal);
  if (edit === null) return packets;
  const { before, after } = openMapEnds(packets, mapPid);
  const from = before ? Math.max(0, first - MAP_REACH_PACKETS) : first;
  const to = after ? Math.min(format.packetCount, first + count + MAP_REACH_PACKETS) : first + count;
  if (from < first || to > first + count) {
    source.release?.(packets);
    packets = await readPackets(format, source, from, to - from, signal);
  }
  editMapPackets(packets, mapPid, edit);
  return packets.subarray((first - from) * PACKET_BYTES, (first - from + count) * PACKET_BYTES);
}
