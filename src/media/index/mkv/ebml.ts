/** EBML primitives over a byte array (RFC 8794). Numbers beyond 2^53 count as damage: no file is that large. */
import { MillraceError } from "../../../errors.ts";

/** Longest element header: 4 bytes of ID, 8 of size. */
export const MAX_HEADER_BYTES = 12;

/** An element header: where its payload starts, and how long it is (null: unknown size, RFC 8794 section 6.2). */
export interface ElementHeader {
  readonly id: number;
  /** Index of the payload in the array. */
  readonly body: number;
  readonly sizeBytes: number | null;
}

/** An element that lies in the array as a whole. */
export interface Element {
  readonly id: number;
  readonly data: Uint8Array;
}

/** Length of the variable-size integer that starts with `first`, 1–8; 0 when it is none. */
export function vintLength(first: number): number {
  return first === 0 ? 0 : Math.clz32(first) - 23;
}

/** The value of the `length`-byte variable-size integer at `at`, marker removed; -1 when all value bits are set. */
export function vintValue(bytes: Uint8Array, at: number, length: number): number {
  let value = bytes[at]! & ((1 << (8 - length)) - 1);
  let ones = value === (1 << (8 - length)) - 1;
  for (let i = 1; i < length; i++) {
    const byte = bytes[at + i]!;
    value = value * 256 + byte;
    ones &&= byte === 0xff;
  }
  return ones ? -1 : value;
}

/**
 * Reads the header at `at`. "more" when `end` comes before it is complete, "damaged" when no valid ID or size is there.
 */
export function readHeader(bytes: Uint8Array, at: number, end: number): ElementHeader | "more" | "damaged" {
  if (at >= end) return "more";
  const idLength = vintLength(bytes[at]!);
  if (idLength === 0 || idLength > 4) return "damaged";
  if (at + idLength >= end) return "more";
  const sizeLength = vintLength(bytes[at + idLength]!);
  if (sizeLength === 0) return "damaged";
  const body = at + idLength + sizeLength;
  if (body > end) return "more";
  let id = 0;
  for (let i = 0; i < idLength; i++) id = id * 256 + bytes[at + i]!;
  const size = vintValue(bytes, at + idLength, sizeLength);
  if (size > Number.MAX_SAFE_INTEGER) return "damaged";
  return { id, body, sizeBytes: size < 0 ? null : size };
}

/**
 * How many more elements may be parsed: an element takes as little as two bytes, and parsing it takes far longer than
 * reading it.
 */
export interface ElementBudget {
  left: number;
}

/**
 * The children of a master element's payload. Stops quietly at damage, at a child cut off by the end, and when `budget`
 * is used up; each child takes one from it.
 */
export function* children(data: Uint8Array, budget: ElementBudget): Generator<Element> {
  for (let at = 0; at < data.length && budget.left-- > 0;) {
    const header = readHeader(data, at, data.length);
    if (typeof header === "string" || header.sizeBytes === null) return;
    const next = header.body + header.sizeBytes;
    if (next > data.length) return;
    yield { id: header.id, data: data.subarray(header.body, next) };
    at = next;
  }
}

/** Unsigned integer of 0–8 bytes. Rejects longer ones with `bad_media`. */
export function uint(data: Uint8Array): number {
  if (data.length > 8) throw new MillraceError("bad_media", "an integer in the Matroska file is too long");
  let value = 0;
  for (const byte of data) value = value * 256 + byte;
  return value;
}

/** IEEE float of 4 or 8 bytes; 0 for an empty one, NaN for other lengths. */
export function float(data: Uint8Array): number {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  if (data.length === 4) return view.getFloat32(0);
  if (data.length === 8) return view.getFloat64(0);
  return data.length === 0 ? 0 : NaN;
}

/** String without the zero padding that EBML allows. */
export function text(data: Uint8Array): string {
  const end = data.indexOf(0);
  return new TextDecoder().decode(end < 0 ? data : data.subarray(0, end));
}
