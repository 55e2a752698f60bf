/** Program association and map tables (ISO/IEC 13818-1, 2.4.4). */
import { crc32Mpeg } from "./crc.ts";
import { PACKET_BYTES, SYNC_BYTE } from "./packet.ts";

/** An elementary stream of a program map. */
export interface MapStream {
  readonly pid: number;
  readonly streamType: number;
  /** Descriptor loop as stored. */
  readonly descriptors: Uint8Array;
}

/** A program map. */
export interface ProgramMap {
  readonly programNumber: number;
  readonly pcrPid: number;
  /** Descriptor loop of the program as stored. */
  readonly descriptors: Uint8Array;
  readonly streams: readonly MapStream[];
}

/** Longest PSI section: the standard limits the 12-bit length to 1021, and 3 bytes precede what it counts. */
export const MAX_SECTION_BYTES = 1024;
/** The checksum at the end of a section. */
export const SECTION_CRC_BYTES = 4;

/** Size of the section at `at` of `bytes`, as its first three bytes give it: up to 4098. */
export function sectionBytes(bytes: Uint8Array, at: number): number {
  return 3 + (((bytes[at + 1]! & 0x0f) << 8) | bytes[at + 2]!);
}

/** Writes the checksum of `section` to its end. */
export function signSection(section: Uint8Array): void {
  const end = section.length - SECTION_CRC_BYTES;
  new DataView(section.buffer, section.byteOffset).setUint32(end, crc32Mpeg(section.subarray(0, end)));
}

/**
 * Makes a section of the long form with its CRC: `body` is what follows its number; `id` has 16 bits, `version` (default 0)
 * five.
 */
export function psiSection(tableId: number, id: number, body: readonly number[], version = 0): Uint8Array {
  const length = body.length + 9;
  const out = new Uint8Array(length + 3);
  // Current, section 0 of 0; the reserved bits are ones.
  out.set([tableId, 0xb0 | (length >> 8), length & 0xff, id >> 8, id & 0xff, 0xc1 | (version << 1), 0, 0, ...body]);
  signSection(out);
  return out;
}

/** Splits a PSI section into packets of `pid`, each with counter 0 (the caller sets it: low half of the fourth byte). */
export function sectionPackets(section: Uint8Array, pid: number): Uint8Array {
  const count = Math.ceil((section.length + 1) / (PACKET_BYTES - 4));
  const out = new Uint8Array(count * PACKET_BYTES).fill(0xff);
  let from = 0;
  for (let i = 0; i < count; i++) {
    const at = i * PACKET_BYTES;
    // A packet in which a section starts has a pointer field; ours always starts right after it (2.4.4.1).
    const head = [SYNC_BYTE, (i === 0 ? 0x40 : 0) | (pid >> 8), pid & 0xff, 0x10, ...(i === 0 ? [0] : [])];
    out.set(head, at);
    const take = Math.min(section.length - from, PACKET_BYTES - head.length);
    out.set(section.subarray(from, from + take), at + head.length);
    from += take;
  }
  return out;
}

/** True for a section that holds now; one with current_next_indicator 0 announces what will hold later (2.4.4.5). */
function isCurrent(section: Uint8Array): boolean {
  const hasIndicator = (section[1]! & 0x80) !== 0;
  return !hasIndicator || (section[5]! & 1) !== 0;
}

/** Assembles the sections of one PID from the payloads of its packets. */
export class SectionAssembler {
  #buffer: Uint8Array | null = null;
  #filled = 0;

  /** Takes a packet's payload; returns the sections that it completes, those that hold now and have a correct CRC. */
  push(payload: Uint8Array, startsUnit: boolean): Uint8Array[] {
    const sections: Uint8Array[] = [];
    let rest = payload;
    if (startsUnit) {
      if (payload.length === 0) return sections;
      const pointer = 1 + payload[0]!;
      this.#append(payload.subarray(1, pointer), sections);
      this.#buffer = null;
      rest = payload.subarray(pointer);
    } else if (this.#buffer === null) return sections;
    this.#append(rest, sections, startsUnit);
    return sections;
  }

  #append(bytes: Uint8Array, sections: Uint8Array[], mayStart = false): void {
    let rest = bytes;
    while (rest.length > 0) {
      if (this.#buffer === null) {
        // 0xff in place of a table id: the rest of the packet is stuffing.
        if (!mayStart || rest[0] === 0xff) return;
        this.#buffer = new Uint8Array(MAX_SECTION_BYTES);
        this.#filled = 0;
      }
      const buffer = this.#buffer;
      const wanted = this.#filled < 3 ? 3 : sectionBytes(buffer, 0);
      if (wanted > MAX_SECTION_BYTES) {
        this.#buffer = null;
        return;
      }
      const take = Math.min(wanted - this.#filled, rest.length);
      buffer.set(rest.subarray(0, take), this.#filled);
      this.#filled += take;
      rest = rest.subarray(take);
      if (this.#filled < 3 || this.#filled < sectionBytes(buffer, 0)) continue;
      const section = buffer.subarray(0, this.#filled);
      this.#buffer = null;
      if (section.length >= 12 && crc32Mpeg(section) === 0 && isCurrent(section)) sections.push(section);
    }
  }
}

/** Programs of a PAT section: number → PID of its map, without the network table (program 0). */
export function readPat(section: Uint8Array): Map<number, number> {
  const programs = new Map<number, number>();
  if (section[0] !== 0) return programs;
  for (let at = 8; at + 8 <= section.length; at += 4) {
    const number = (section[at]! << 8) | section[at + 1]!;
    if (number !== 0) programs.set(number, ((section[at + 2]! & 0x1f) << 8) | section[at + 3]!);
  }
  return programs;
}

/** Reads a PMT section; null when it is not one. */
export function readPmt(section: Uint8Array): ProgramMap | null {
  if (section[0] !== 2) return null;
  const end = section.length - SECTION_CRC_BYTES;
  const u12 = (at: number) => ((section[at]! & 0x0f) << 8) | section[at + 1]!;
  const u13 = (at: number) => ((section[at]! & 0x1f) << 8) | section[at + 1]!;
  const programInfo = u12(10);
  const streams: MapStream[] = [];
  let at = 12 + programInfo;
  while (at + 5 <= end) {
    const length = u12(at + 3);
    if (at + 5 + length > end) break;
    streams.push({
      streamType: section[at]!,
      pid: u13(at + 1),
      descriptors: section.slice(at + 5, at + 5 + length),
    });
    at += 5 + length;
  }
  return {
    programNumber: (section[3]! << 8) | section[4]!,
    pcrPid: u13(8),
    descriptors: section.slice(12, Math.min(12 + programInfo, end)),
    streams,
  };
}

/** Tag and body of each descriptor of a loop; stops at damaged data. */
export function* descriptorsOf(loop: Uint8Array): Generator<{ tag: number; body: Uint8Array }> {
  for (let at = 0; at + 2 <= loop.length;) {
    const end = at + 2 + loop[at + 1]!;
    if (end > loop.length) return;
    yield { tag: loop[at]!, body: loop.subarray(at + 2, end) };
    at = end;
  }
}
