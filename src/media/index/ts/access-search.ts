/** Searches the random access point that a segment begins with. */
import type { ByteSource } from "../../../bytes/source.ts";
import type { Track } from "../../types.ts";
import { PAT_PID } from "../../../bytes/ts/codes.ts";
import { PACKET_BYTES, pidOf, startsUnit, unusable } from "../../../bytes/ts/packet.ts";
import { type PacketFormat, readPackets } from "../../../bytes/ts/packet-source.ts";
import { AccessPointFinder } from "../../../bytes/ts/random-access.ts";

/** Packets read at a time (about 128 KiB). */
const STEP_PACKETS = 700;
/** How far to search, packets (about 16 MiB): beyond it any access unit has to do. */
const SEARCH_PACKETS = 89_000;

/**
 * Packet number of the first random access point of `main` at or after `from`; if there is none within 16 MiB, of its
 * first PES; if there is none at all, the end of the file. Depends only on the file.
 */
export async function findAccessPoint(
  format: PacketFormat,
  source: ByteSource,
  main: Track,
  from: number,
  anyUnit: boolean,
  signal: AbortSignal,
): Promise<number> {
  const finder = new AccessPointFinder(main.codec, anyUnit);
  const end = Math.min(format.packetCount, from + SEARCH_PACKETS);
  let firstUnit = format.packetCount;
  for (let first = from; first < end; first += STEP_PACKETS) {
    const bytes = await readPackets(format, source, first, Math.min(STEP_PACKETS, end - first), signal);
    for (let at = 0; at + PACKET_BYTES <= bytes.length; at += PACKET_BYTES) {
      if (pidOf(bytes, at) !== main.id || unusable(bytes, at)) continue;
      const packet = first + at / PACKET_BYTES;
      if (startsUnit(bytes, at)) firstUnit = Math.min(firstUnit, packet);
      const point = finder.push(bytes, at, packet);
      if (point !== null) return point.packet;
    }
  }
  // At the very end of the file a group without its start belongs to the previous segment.
  return end === format.packetCount && from > 0 ? format.packetCount : firstUnit;
}

/** How far back to search for tables, packets (about 1 MiB): the standards require them ten times per second. */
const TABLES_PACKETS = 5600;

/**
 * Number of the packet with the last PAT before the last PMT (on `mapPid`) before `packet`: a player that begins there
 * knows the streams when that packet comes. `packet` itself if there are none within 1 MiB.
 */
export async function tablesBefore(
  format: PacketFormat,
  source: ByteSource,
  mapPid: number,
  packet: number,
  signal: AbortSignal,
): Promise<number> {
  let wanted = mapPid;
  for (let end = packet; end > Math.max(0, packet - TABLES_PACKETS);) {
    const first = Math.max(0, end - STEP_PACKETS);
    const bytes = await readPackets(format, source, first, end - first, signal);
    for (let at = bytes.length - PACKET_BYTES; at >= 0; at -= PACKET_BYTES) {
      if (pidOf(bytes, at) !== wanted || unusable(bytes, at) || !startsUnit(bytes, at)) continue;
      if (wanted === PAT_PID) return first + at / PACKET_BYTES;
      wanted = PAT_PID;
    }
    end = first;
  }
  return packet;
}
