/** Program specific information: PAT and PMT (ISO/IEC 13818-1, 2.4.4) with the descriptors that players look for. */
import { DESCRIPTOR } from "../../../bytes/ts/codes.ts";
import { psiSection } from "../../../bytes/ts/psi.ts";
import type { DolbyVision, Track } from "../../model/types.ts";
import { descriptorLanguage, iso639Code } from "../../model/language.ts";

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
  /** Descriptors of its codec. Absent: none. */
  readonly descriptors?: readonly number[];
  readonly track: Track;
}

/** audio_type of the language descriptor (ISO/IEC 13818-1, table 2-60). */
const HEARING_IMPAIRED = 2;
const VISUALLY_IMPAIRED = 3;

/** The program map section, streams in the order given; `registration`: four characters for the program, null: none. */
export function pmtSection(
  pcrPid: number,
  streams: readonly PmtStream[],
  registration: string | null = null,
): Uint8Array {
  const program = registration === null ? [] : registrationDescriptor(registration);
  const body = [0xe0 | (pcrPid >> 8), pcrPid & 0xff, 0xf0, program.length, ...program];
  for (const stream of streams) {
    const descriptors: number[] = [];
    if (stream.registration !== null) descriptors.push(...registrationDescriptor(stream.registration));
    descriptors.push(...stream.descriptors ?? languageDescriptor(stream.track));
    if (stream.track.dolbyVision !== undefined) descriptors.push(...dolbyVisionDescriptor(stream.track.dolbyVision));
    body.push(stream.streamType, 0xe0 | (stream.pid >> 8), stream.pid & 0xff, 0xf0, descriptors.length, ...descriptors);
  }
  return psiSection(0x02, PROGRAM_NUMBER, body);
}

function registrationDescriptor(name: string): number[] {
  return [DESCRIPTOR.registration, 4, ...ascii(name)];
}

/** The language of sound and subtitles, and for whom they are made; nothing where neither is known. */
function languageDescriptor(track: Track): number[] {
  const { kind, language, isForHearingImpaired, isForVisuallyImpaired } = track;
  const isNamed = kind === "audio" || kind === "subtitle";
  const audience = isForHearingImpaired ? HEARING_IMPAIRED : isForVisuallyImpaired ? VISUALLY_IMPAIRED : 0;
  if (!isNamed || (audience === 0 && iso639Code(language) === null)) return [];
  return [DESCRIPTOR.language, 4, ...descriptorLanguage(language), audience];
}

/** Versions, profile, level and layers are as in the container's record; one that has its base layer depends on no PID. */
function dolbyVisionDescriptor({ config, compatibility }: DolbyVision): number[] {
  return [DESCRIPTOR.dolbyVision, 5, ...config.subarray(0, 4), compatibility << 4 | 0x0f];
}

function ascii(text: string): number[] {
  return [...text].map((character) => character.charCodeAt(0) & 0x7f);
}
