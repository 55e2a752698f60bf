/** Program specific information: PAT and PMT (ISO/IEC 13818-1, 2.4.4) with the descriptors that players look for. */
import { DESCRIPTOR } from "../../../bytes/ts/codes.ts";
import { psiSection } from "../../../bytes/ts/psi.ts";
import type { DolbyVision, Track } from "../../types.ts";
import { iso639Code } from "../../language.ts";

/** PID of the one program map table. */
export const PMT_PID = 0x1000;
/** PID of the first elementary stream; the others follow. */
export const FIRST_ELEMENTARY_PID = 0x100;

const PROGRAM_NUMBER = 1;
const TRANSPORT_STREAM_ID = 1;

/** The program association section: program 1 at `PMT_PID`. */
export function patSection(): Uint8Array {
  return psiSection(0x00, TRANSPORT_STREAM_ID, [0, PROGRAM_NUMBER, 0xe0 | (PMT_PID >> 8), PMT_PID & 0xff]);
}

/** One elementary stream of the map. */
export interface PmtStream {
  readonly pid: number;
  readonly streamType: number;
  /** Four characters for a registration descriptor, or null. */
  readonly registration: string | null;
  readonly track: Track;
}

/** The program map section, streams in the order given. */
export function pmtSection(pcrPid: number, streams: readonly PmtStream[]): Uint8Array {
  const body = [0xe0 | (pcrPid >> 8), pcrPid & 0xff, 0xf0, 0];
  for (const stream of streams) {
    const descriptors: number[] = [];
    if (stream.registration !== null) descriptors.push(DESCRIPTOR.registration, 4, ...ascii(stream.registration));
    const language = stream.track.kind === "audio" ? iso639Code(stream.track.language) : null;
    if (language !== null) descriptors.push(DESCRIPTOR.language, 4, ...ascii(language), 0);
    if (stream.track.dolbyVision !== undefined) descriptors.push(...dolbyVisionDescriptor(stream.track.dolbyVision));
    body.push(stream.streamType, 0xe0 | (stream.pid >> 8), stream.pid & 0xff, 0xf0, descriptors.length, ...descriptors);
  }
  return psiSection(0x02, PROGRAM_NUMBER, body);
}

/** Versions, profile, level and layers are as in the container's record; one that has its base layer depends on no PID. */
function dolbyVisionDescriptor({ config, compatibility }: DolbyVision): number[] {
  return [DESCRIPTOR.dolbyVision, 5, ...config.subarray(0, 4), compatibility << 4 | 0x0f];
}

function ascii(text: string): number[] {
  return [...text].map((character) => character.charCodeAt(0) & 0x7f);
}
