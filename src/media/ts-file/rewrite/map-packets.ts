/** Changes program map sections in the packets that carry them, in place. */
import { concatBytes } from "../../../bytes/hex.ts";
import { hasPayload, PACKET_BYTES, payloadOf, pidOf, startsUnit, unusable } from "../../../bytes/ts/packet.ts";
import { MAX_SECTION_BYTES, sectionBytes } from "../../../bytes/ts/psi.ts";
import { editMapSection, type MapEdit } from "./map-edit.ts";

/** Where packets of a stretch carry a map section of which the stretch holds only a part. */
export interface MapEnds {
  /** The packets begin inside a section that starts earlier. */
  readonly before: boolean;
  /** The packets end inside a section, or may do so. */
  readonly after: boolean;
}

/** Whether `packets` (188 bytes each) hold pieces of sections of `mapPid` that need packets around them. */
export function openMapEnds(packets: Uint8Array, mapPid: number): MapEnds {
  let before = false;
  let missing = 0;
  let started = false;
  for (let at = 0; at + PACKET_BYTES <= packets.length; at += PACKET_BYTES) {
    if (pidOf(packets, at) !== mapPid || unusable(packets, at) || !hasPayload(packets, at)) continue;
    const payload = payloadOf(packets, at);
    if (startsUnit(packets, at)) {
      const start = 1 + (payload[0] ?? 0);
      // With a pointer above 0 the end of the previous section comes first.
      if (!started && start > 1) before = true;
      started = true;
      missing = startedBytes(payload, start) - (payload.length - start);
    } else if (started) missing -= payload.length;
    else before = true;
  }
  // Nothing shows how much a piece without its start lacks.
  return { before, after: missing > 0 || (before && !started) };
}

/** Length of the section at `start` of `payload`; 0 where none begins there. */
function startedBytes(payload: Uint8Array, start: number): number {
  if (start + 3 > payload.length || payload[start] === 0xff) return 0;
  const length = sectionBytes(payload, start);
  return length > MAX_SECTION_BYTES ? 0 : length;
}

/** Changes every whole section of `mapPid` in `packets`. */
export function editMapPackets(packets: Uint8Array, mapPid: number, edit: MapEdit): void {
  /** Views of the payloads that carry the section being read. */
  let pieces: Uint8Array[] = [];
  let wanted = 0;
  const take = (piece: Uint8Array) => {
    const part = piece.subarray(0, wanted);
    pieces.push(part);
    wanted -= part.length;
    if (wanted === 0) replace(pieces, edit);
  };
  for (let at = 0; at + PACKET_BYTES <= packets.length; at += PACKET_BYTES) {
    if (pidOf(packets, at) !== mapPid || unusable(packets, at)) continue;
    let rest = payloadOf(packets, at);
    if (!startsUnit(packets, at)) {
      if (wanted > 0) take(rest);
      continue;
    }
    const pointer = rest[0] ?? 0;
    if (wanted > 0) take(rest.subarray(1, 1 + pointer));
    rest = rest.subarray(1 + pointer);
    // Further sections may follow in the same packet.
    for (wanted = startedBytes(rest, 0); wanted > 0; wanted = startedBytes(rest, 0)) {
      pieces = [];
      const used = Math.min(wanted, rest.length);
      take(rest);
      if (wanted > 0) break;
      rest = rest.subarray(used);
    }
  }
}

function replace(pieces: readonly Uint8Array[], edit: MapEdit): void {
  const edited = editMapSection(concatBytes(pieces), edit);
  if (edited === null) return;
  let at = 0;
  for (const piece of pieces) {
    piece.set(edited.subarray(at, at + piece.length));
    at += piece.length;
  }
}
