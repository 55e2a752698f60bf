/** Makes the transport stream that the encoder reads: one PID of the file, its clock shifted so that no time wraps. */
import { concatBytes } from "../../../bytes/hex.ts";
import { fieldBytes, PACKET_BYTES } from "../../../bytes/ts/packet.ts";
import type { ProgramMap } from "../../../bytes/ts/psi.ts";
import { SegmentTables } from "../../../bytes/ts/program-tables.ts";
import { writeStamp } from "../../../bytes/ts/stamps.ts";
import type { AudioStretch, Span } from "./window.ts";

/** Which PID the sound comes from, and the tables that describe it. */
export interface SoundOf {
  readonly map: ProgramMap;
  readonly mapPid: number;
  readonly pid: number;
}

/** Tables and the packets of the span's units, with times counted from `zero90k` (of the file's timeline). */
export function jobInput(sound: SoundOf, { packets, units }: AudioStretch, span: Span, zero90k: number): Uint8Array {
  const parts = [new SegmentTables(sound.map, sound.mapPid, [sound.pid]).next()];
  const end = units[span.to]?.packet ?? packets.length;
  let unit = span.from;
  for (let i = units[span.from]!.packet; i < end; i++) {
    const packet = packets[i]!.bytes.slice();
    if (unit < span.to && units[unit]!.packet === i) setTime(packet, units[unit++]!.time90k - zero90k);
    parts.push(packet);
  }
  return concatBytes(parts);
}

/** Sets the PTS of the PES that begins in `packet`, and the DTS if there is one: in sound both are equal. */
function setTime(packet: Uint8Array, time90k: number): void {
  const pes = 4 + fieldBytes(packet, 0);
  const hasDts = (packet[pes + 7]! & 0xc0) === 0xc0 && pes + 19 <= PACKET_BYTES;
  writeStamp(packet, pes + 9, hasDts ? 3 : 2, time90k);
  if (hasDts) writeStamp(packet, pes + 14, 1, time90k);
}
