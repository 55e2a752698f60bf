/**
 * H.264 and HEVC: length-prefixed NAL units (ISO/IEC 14496-15) to the byte stream of Annex B, with an access unit
 * delimiter before each access unit and the parameter sets before each random access point.
 */
import { STREAM_TYPE } from "../../../../bytes/ts/codes.ts";
import type { Track } from "../../../model/types.ts";
import { unitsByLength, unitsOfByteStream } from "../../../../bytes/nal-units.ts";
import { copyBytes } from "../payload.ts";
import { type ElementaryFormat, passThrough } from "./format.ts";

/** How the two codecs differ. */
interface NalSyntax {
  readonly streamType: number;
  readonly registration: string | null;
  /** The delimiter with its start code. */
  readonly delimiter: Uint8Array;
  readonly delimiterType: number;
  /** Types of parameter sets: an access unit that contains one of each needs none inserted. */
  readonly parameterSetTypes: readonly number[];
  typeOf(firstByte: number): number;
  /** Whether a picture of that type is one with which decoding starts: IDR in H.264, IRAP in HEVC. */
  isAccessType(type: number): boolean;
  /** Whether the unit belongs to an additional view or layer, which a stream of this type must not contain. */
  isFurtherLayer(firstByte: number, secondByte: number): boolean;
}

/** primary_pic_type 7 (any slice type), H.264 7.4.2.4. */
const H264: NalSyntax = {
  streamType: STREAM_TYPE.h264,
  registration: null,
  delimiter: Uint8Array.of(0, 0, 0, 1, 9, 0xf0),
  delimiterType: 9,
  parameterSetTypes: [7, 8],
  typeOf: (firstByte) => firstByte & 0x1f,
  isAccessType: (type) => type === 5,
  // MVC and SVC units have NAL types of their own, which single-view decoders ignore.
  isFurtherLayer: () => false,
};

/** pic_type 2 (any slice type), H.265 7.4.3.5. */
const HEVC: NalSyntax = {
  streamType: STREAM_TYPE.hevc,
  registration: "HEVC",
  delimiter: Uint8Array.of(0, 0, 0, 1, 0x46, 1, 0x50),
  delimiterType: 35,
  parameterSetTypes: [32, 33, 34],
  typeOf: (firstByte) => (firstByte >> 1) & 0x3f,
  isAccessType: (type) => type >= 16 && type <= 23,
  // nuh_layer_id (7.3.1.2): the second eye of MV-HEVC looks like a picture of its own to many demultiplexers.
  isFurtherLayer: (firstByte, secondByte) => (firstByte & 1) !== 0 || secondByte >= 8,
};

const VIDEO_STREAM_ID = 0xe0;
/** Most bytes of parameter sets; real ones take 30 to 300 bytes. */
const MAX_PARAMETER_SET_BYTES = 16 * 1024;

/** Reads avcC (14496-15, 5.3.3.1.2). Null when there is none or it is damaged. */
export function h264Format(track: Track): ElementaryFormat | null {
  const box = track.codecPrivate;
  if (track.isFramed && box === null) return passThrough(H264.streamType, VIDEO_STREAM_ID, H264.registration);
  if (box === null || box.length < 7 || box[0] !== 1) return null;
  const make = (sets: ParameterSets) =>
    track.isFramed ? byteStreamFormat(H264, sets.bytes()) : nalFormat(H264, (box[4]! & 3) + 1, sets.bytes());
  const sets = new ParameterSets(box);
  let at = sets.take(5, 1, box[5]! & 0x1f);
  if (at < 0 || at >= box.length) return at === box.length ? make(sets) : null;
  at = sets.take(at, 1, box[at]!);
  return at < 0 ? null : make(sets);
}

/** Reads hvcC (14496-15, 8.3.3.1.2). Null when there is none or it is damaged. */
export function hevcFormat(track: Track): ElementaryFormat | null {
  const box = track.codecPrivate;
  if (track.isFramed && box === null) return passThrough(HEVC.streamType, VIDEO_STREAM_ID, HEVC.registration);
  if (box === null || box.length < 23) return null;
  const sets = new ParameterSets(box);
  let at = 23;
  for (let array = 0; array < box[22]!; array++) {
    if (at + 3 > box.length) return null;
    const type = box[at]! & 0x3f;
    const count = (box[at + 1]! << 8) | box[at + 2]!;
    // VPS, SPS, PPS; other arrays (SEI) describe the file, not what a decoder needs.
    at = sets.take(at + 1, 2, count, type >= 32 && type <= 34);
    if (at < 0) return null;
  }
  // Decoders want the video's set first, then the sequence's; some boxes have another order.
  const inOrder = sets.bytes((unit) => HEVC.typeOf(unit[0]!));
  return track.isFramed ? byteStreamFormat(HEVC, inOrder) : nalFormat(HEVC, (box[21]! & 3) + 1, inOrder);
}

/** Collects the NAL units of a configuration box with start codes. */
class ParameterSets {
  readonly #box: Uint8Array;
  readonly #parts: Uint8Array[] = [];
  #size = 0;

  constructor(box: Uint8Array) {
    this.#box = box;
  }

  /**
   * Takes `count` units, each with a 16-bit length, after a counter of `counterBytes` at `at`. Returns the end, -1 if
   * damaged.
   */
  take(at: number, counterBytes: number, count: number, keep = true): number {
    at += counterBytes;
    for (let i = 0; i < count; i++) {
      if (at + 2 > this.#box.length) return -1;
      const length = (this.#box[at]! << 8) | this.#box[at + 1]!;
      if (at + 2 + length > this.#box.length) return -1;
      if (keep && length > 0 && this.#size + length + 4 <= MAX_PARAMETER_SET_BYTES) {
        this.#parts.push(this.#box.subarray(at + 2, at + 2 + length));
        this.#size += length + 4;
      }
      at += 2 + length;
    }
    return at;
  }

  /** All of them; in the order of `rank`, if it is given. */
  bytes(rank: (unit: Uint8Array) => number = () => 0): Uint8Array {
    const out = new Uint8Array(this.#size);
    let at = 0;
    for (const part of this.#parts.toSorted((a, b) => rank(a) - rank(b))) {
      out[at + 3] = 1;
      out.set(part, at + 4);
      at += part.length + 4;
    }
    return out;
  }
}

/**
 * Room for start codes that are longer than the length fields they replace. With four-byte lengths nothing grows;
 * shorter ones limit the size of a unit, and an access unit of more units than this is cut.
 */
function growthBytes(lengthBytes: number, sizeBytes: number): number {
  if (lengthBytes >= 3) return 0;
  return lengthBytes === 2 ? 64 + Math.floor(sizeBytes / 256) : 64 + Math.floor(sizeBytes / 16);
}

function nalFormat(syntax: NalSyntax, lengthBytes: number, parameterSets: Uint8Array): ElementaryFormat {
  const codeBytes = lengthBytes === 4 ? 4 : 3;
  const delimiterBytes = syntax.delimiter.length;
  return {
    streamType: syntax.streamType,
    streamId: VIDEO_STREAM_ID,
    registration: syntax.registration,
    frame90k: null,
    maxBytes: (sizeBytes, keyframe) =>
      sizeBytes + delimiterBytes + (keyframe ? parameterSets.length : 0) + growthBytes(lengthBytes, sizeBytes),
    fill(payload, data, from, to, keyframe) {
      const limit = this.maxBytes(to - from, keyframe) - delimiterBytes;
      payload.addHead(syntax.delimiter);
      const insertSets = keyframe && !holds(data, from, to, lengthBytes, syntax);
      if (insertSets) payload.addHead(parameterSets);
      const start = lengthBytes === 4 ? bodyStart(data, from, to, syntax) : -1;
      if (start >= 0) return payload.setData(data, start, to, true);
      const out = new Uint8Array(limit - (insertSets ? parameterSets.length : 0));
      let put = 0;
      for (let read = from; read + lengthBytes <= to;) {
        let length = 0;
        for (let i = 0; i < lengthBytes; i++) length = length * 256 + data[read++]!;
        if (length > to - read) length = to - read;
        // Our own delimiter was already written; a second one would start another access unit.
        const isWanted = length > 0 && syntax.typeOf(data[read]!) !== syntax.delimiterType &&
          !(length > 1 && syntax.isFurtherLayer(data[read]!, data[read + 1]!));
        if (isWanted) {
          if (put + codeBytes + length > out.length) break;
          out[put + codeBytes - 1] = 1;
          copyBytes(out, put + codeBytes, data, read, read + length);
          put += codeBytes + length;
        }
        read += length;
      }
      payload.setData(out, 0, put);
    },
    isAccessPoint(data) {
      const units = unitsByLength(data, lengthBytes) ?? [];
      return units.some((unit) => syntax.isAccessType(syntax.typeOf(unit[0]!)));
    },
  };
}

/**
 * Where the NAL units of an access unit begin if only the lengths need replacing: no unit is empty, cut off or of another
 * layer, and only the first may be a delimiter. Else −1.
 */
function bodyStart(data: Uint8Array, from: number, to: number, syntax: NalSyntax): number {
  let start = from;
  for (let read = from; read < to;) {
    if (read + 4 >= to) return -1;
    const length = data[read]! * 0x1000000 + (data[read + 1]! << 16 | data[read + 2]! << 8 | data[read + 3]!);
    const end = read + 4 + length;
    if (length === 0 || end > to) return -1;
    if (length > 1 && syntax.isFurtherLayer(data[read + 4]!, data[read + 5]!)) return -1;
    if (syntax.typeOf(data[read + 4]!) === syntax.delimiterType) {
      if (read !== from) return -1;
      start = end;
    }
    read = end;
  }
  return start;
}

/** Whether the access unit contains its own parameter sets. */
function holds(data: Uint8Array, from: number, to: number, lengthBytes: number, syntax: NalSyntax): boolean {
  const found = new Set<number>();
  for (let read = from; read + lengthBytes < to;) {
    let length = 0;
    for (let i = 0; i < lengthBytes; i++) length = length * 256 + data[read++]!;
    found.add(syntax.typeOf(data[read]!));
    read += length;
  }
  return syntax.parameterSetTypes.every((type) => found.has(type));
}

/** The shortest start code. */
const START_CODE_BYTES = 3;
/** NAL units of a picture that are looked at for parameter sets, which come first. */
const MAX_LEADING_UNITS = 16;

/** The byte stream of Annex B: copied, with a delimiter and parameter sets where they are missing. */
function byteStreamFormat(syntax: NalSyntax, parameterSets: Uint8Array): ElementaryFormat {
  return {
    streamType: syntax.streamType,
    streamId: VIDEO_STREAM_ID,
    registration: syntax.registration,
    frame90k: null,
    maxBytes: (sizeBytes, keyframe) => sizeBytes + syntax.delimiter.length + (keyframe ? parameterSets.length : 0),
    fill(payload, data, from, to, keyframe) {
      const units = unitsOfByteStream(data.subarray(from, to), MAX_LEADING_UNITS);
      const types = new Set(units.map((unit) => syntax.typeOf(unit[0]!)));
      const isDelimited = units.length > 1 && syntax.typeOf(units[0]![0]!) === syntax.delimiterType;
      payload.addHead(syntax.delimiter);
      if (keyframe && !syntax.parameterSetTypes.every((type) => types.has(type))) payload.addHead(parameterSets);
      // Ours takes the place of its own delimiter: parameter sets come between that and the rest.
      const start = isDelimited ? units[1]!.byteOffset - data.byteOffset - START_CODE_BYTES : from;
      payload.setData(data, start, to);
    },
    isAccessPoint: (data) =>
      unitsOfByteStream(data, MAX_LEADING_UNITS).some((unit) => syntax.isAccessType(syntax.typeOf(unit[0]!))),
  };
}
