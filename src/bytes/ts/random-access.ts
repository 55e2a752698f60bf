/** Finds the random access points of an elementary stream among its packets. */
import { concatBytes } from "../hex.ts";
import { isRandomAccess, payloadOf, readPesHeader, startsUnit } from "./packet.ts";

/** A position where decoding can start. */
export interface AccessPoint {
  /** Number of the packet in which its PES starts. */
  readonly packet: number;
  /** 33-bit; null when the PES has no time. */
  readonly pts90k: number | null;
}

/** How much of an access unit is examined, bytes: parameter sets and SEI come before the first slice. */
const LOOK_BYTES = 2048;
const SEI_RECOVERY_POINT = 6;
/** Bytes kept of a packet when the next one comes: what shows an access point may lie in both. */
const OVERLAP_BYTES = 6;

/**
 * Which PES of video are random access points: those that start with one; those that contain one, where a PES has many
 * pictures; all, where the stream has none that we recognise.
 */
export type PointRule = "start" | "within" | "any";

function h264Start(type: number, bytes: Uint8Array, at: number): boolean | null {
  // IDR slice, sequence parameter set, SEI whose first message is a recovery point (ISO/IEC 14496-10, table 7-1).
  if (type === 5 || type === 7 || (type === 6 && bytes[at + 1] === SEI_RECOVERY_POINT)) return true;
  return type >= 1 && type <= 4 ? false : null;
}

function hevcStart(type: number): boolean | null {
  // IRAP pictures and parameter sets (ISO/IEC 23008-2, table 7-1).
  if ((type >= 16 && type <= 23) || type === 32 || type === 33) return true;
  return type < 16 ? false : null;
}

function mpegStart(code: number): boolean | null {
  // Sequence header; a picture without one before it cannot be decoded alone (ISO/IEC 13818-2, 6.2).
  if (code === 0xb3) return true;
  return code === 0x00 ? false : null;
}

function mpeg4Start(code: number, next: number | undefined): boolean | null {
  // Header of a video object layer; of a picture (VOP) the two bits after the code are 0 if it is coded alone (14496-2, 6.2).
  if (code >= 0x20 && code <= 0x2f) return true;
  return code === 0xb6 && next !== undefined ? next < 0x40 : null;
}

/** Whether any access unit in `bytes` starts with a random access point. */
function hasAccessPoint(codec: string, bytes: Uint8Array): boolean {
  for (let at = bytes.indexOf(1, 2); at >= 0 && at + 2 < bytes.length; at = bytes.indexOf(1, at + 1)) {
    if (bytes[at - 1] === 0 && bytes[at - 2] === 0 && isAccessPoint(codec, bytes.subarray(at - 2)) === true) {
      return true;
    }
  }
  return false;
}

/** Returns whether the access unit in `bytes` starts with a random access point; null when these bytes are too few to tell. */
export function isAccessPoint(codec: string, bytes: Uint8Array): boolean | null {
  for (let at = bytes.indexOf(1, 2); at >= 0 && at + 2 < bytes.length; at = bytes.indexOf(1, at + 1)) {
    if (bytes[at - 1] !== 0 || bytes[at - 2] !== 0) continue;
    const byte = bytes[at + 1]!;
    const answer = codec === "h264"
      ? h264Start(byte & 31, bytes, at + 1)
      : codec === "hevc"
      ? hevcStart((byte >> 1) & 63)
      : codec === "mpeg4"
      ? mpeg4Start(byte, bytes[at + 2])
      : mpegStart(byte);
    if (answer !== null) return answer;
  }
  return null;
}

/** The unsigned Exp-Golomb code at bit `at` of `bytes`, and where it ends (ISO/IEC 14496-10, 9.1). */
function golomb(bytes: Uint8Array, at: number): { readonly value: number; readonly end: number } {
  const bit = (place: number) => ((bytes[place >> 3] ?? 0xff) >> (7 - (place & 7))) & 1;
  let zeros = 0;
  while (zeros < 31 && bit(at + zeros) === 0) zeros++;
  let value = 1;
  for (let i = 1; i <= zeros; i++) value = value * 2 + bit(at + zeros + i);
  return { value: value - 1, end: at + 2 * zeros + 1 };
}

/** Whether the first picture in `bytes` is coded without others, as far as its own header tells. HEVC's does not: true. */
function isIntra(codec: string, bytes: Uint8Array): boolean {
  if (codec === "hevc") return true;
  for (let at = bytes.indexOf(1, 2); at >= 0 && at + 4 < bytes.length; at = bytes.indexOf(1, at + 1)) {
    if (bytes[at - 1] !== 0 || bytes[at - 2] !== 0) continue;
    const code = bytes[at + 1]!;
    if (codec === "h264") {
      if ((code & 31) < 1 || (code & 31) > 5) continue;
      // slice_type 2 and 7 are I, 4 and 9 SI (7.4.3).
      const type = golomb(bytes, golomb(bytes, 8 * (at + 2)).end).value % 5;
      return type === 2 || type === 4;
    }
    // picture_coding_type 1 is I (ISO/IEC 13818-2, 6.3.9). That of MPEG-4 part 2 was read before.
    if (code === 0x00) return codec !== "mpeg4" && ((bytes[at + 3]! >> 3) & 7) === 1;
  }
  return false;
}

const PARSED: ReadonlySet<string> = new Set(["h264", "hevc", "mpeg2video", "mpeg1video", "mpeg4"]);

/** Examines the packets of one PID in order and reports its random access points. */
export class AccessPointFinder {
  readonly #codec: string;
  readonly #rule: PointRule;
  readonly #doubtsFlags: boolean;
  #candidate: AccessPoint | null = null;
  /** The PES that may still contain a point, and the last bytes of it. */
  #whole: AccessPoint | null = null;
  #tail: Uint8Array = new Uint8Array(0);
  #isFlagged = false;
  #look = new Uint8Array(LOOK_BYTES);
  #filled = 0;

  /**
   * `rule`: "any" for audio. `doubtsFlags`: a picture that is flagged (random_access_indicator) counts only if it does not
   * depend on others, as some multiplexers flag every picture.
   */
  constructor(codec: string, rule: PointRule, doubtsFlags = false) {
    this.#codec = codec;
    this.#rule = rule;
    this.#doubtsFlags = doubtsFlags && PARSED.has(codec);
  }

  /**
   * Takes packet number `packet` at `bytes[at]`; returns the access point that it confirms, which may begin in an
   * earlier packet.
   */
  push(bytes: Uint8Array, at: number, packet: number): AccessPoint | null {
    const payload = payloadOf(bytes, at);
    if (!startsUnit(bytes, at)) return this.#examine(payload);
    this.#candidate = this.#whole = null;
    const header = readPesHeader(payload);
    if (header === null) return null;
    const isFlagged = isRandomAccess(bytes, at);
    const candidate = { packet, pts90k: header.pts90k };
    if (this.#rule === "any" || (isFlagged && !this.#doubtsFlags)) return candidate;
    if (!PARSED.has(this.#codec)) return null;
    this.#candidate = candidate;
    this.#isFlagged = isFlagged;
    this.#filled = 0;
    if (this.#rule === "within") [this.#whole, this.#tail] = [candidate, new Uint8Array(0)];
    return this.#examine(payload.subarray(Math.min(header.body, payload.length)));
  }

  /** Looks at further bytes of the PES. */
  #examine(bytes: Uint8Array): AccessPoint | null {
    const found = this.#examineStart(bytes) ?? this.#examineWhole(bytes);
    if (found !== null) this.#whole = null;
    return found;
  }

  #examineWhole(bytes: Uint8Array): AccessPoint | null {
    if (this.#whole === null) return null;
    const joined = concatBytes([this.#tail, bytes]);
    this.#tail = joined.slice(-OVERLAP_BYTES);
    return hasAccessPoint(this.#codec, joined) ? this.#whole : null;
  }

  /** Looks at further bytes of the candidate. */
  #examineStart(bytes: Uint8Array): AccessPoint | null {
    const candidate = this.#candidate;
    if (candidate === null) return null;
    const take = Math.min(bytes.length, LOOK_BYTES - this.#filled);
    this.#look.set(bytes.subarray(0, take), this.#filled);
    this.#filled += take;
    const answer = isAccessPoint(this.#codec, this.#look.subarray(0, this.#filled));
    if (answer === null && this.#filled < LOOK_BYTES) return null;
    this.#candidate = null;
    const isFine = answer ?? this.#isFlagged;
    if (isFine) return candidate;
    return this.#isFlagged && isIntra(this.#codec, this.#look.subarray(0, this.#filled)) ? candidate : null;
  }
}
