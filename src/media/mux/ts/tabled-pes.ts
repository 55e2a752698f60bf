/**
 * Which frames of tabled sound share a PES. It depends only on the table and the start of the slot, so that the layout
 * stays exact and a range needs no other range. `packed-audio.ts` says what it saves.
 */
import type { SampleTable } from "../../model/timeline.ts";
import { MAX_PACKED_BYTES, packed90k, ROUNDING_90K } from "./packed-audio.ts";
import { pesHeaderBytes } from "./pes.ts";
import { maxPesBytes, pesPackets, type ProgramStream } from "./program.ts";

/** Most frames in one PES: 0.3 s of the shortest frames in use are 28. */
const MAX_FRAMES = 64;

/** One PES: the access units `[first, end)` of a table. */
export interface TabledPes {
  readonly end: number;
  /** At least 1; 0 if the access unit has no bytes and thus no PES. */
  readonly packets: number;
}

/** The PES that begins with access unit `first` of a slot whose last one is before `slotEnd`. */
export function pesAt(
  stream: ProgramStream,
  table: SampleTable,
  first: number,
  slotEnd: number,
  keyframe: boolean,
): TabledPes {
  const { sizes, ptsShift90k, dts90k } = table;
  const { format } = stream;
  const size = sizes.at(first);
  if (size === 0) return { end: first + 1, packets: 0 };
  const shift90k = ptsShift90k === null ? 0 : ptsShift90k.at(first);
  if (format.frame90k === null || shift90k !== 0) {
    return { end: first + 1, packets: pesPackets(stream, maxPesBytes(stream, size, shift90k, keyframe)) };
  }
  const most = Math.min(
    slotEnd,
    first + Math.max(1, Math.min(MAX_FRAMES, Math.floor(packed90k(stream) / format.frame90k))),
  );
  const first90k = dts90k.at(first);
  let bytes = format.maxBytes(size, true);
  let end = first + 1;
  for (; end < most; end++) {
    const next = sizes.at(end);
    const off = dts90k.at(end) - first90k - (end - first) * format.frame90k;
    if (next === 0 || Math.abs(off) > ROUNDING_90K || (ptsShift90k !== null && ptsShift90k.at(end) !== 0)) break;
    const nextBytes = format.maxBytes(next, true);
    if (bytes + nextBytes > MAX_PACKED_BYTES) break;
    bytes += nextBytes;
  }
  return { end, packets: pesPackets(stream, pesHeaderBytes(0) + bytes) };
}
