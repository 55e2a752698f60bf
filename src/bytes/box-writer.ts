/** Writes ISO base media boxes (ISO/IEC 14496-12, 4.2). For the few bytes of an init segment, not for media. */
import { concatBytes } from "./hex.ts";

/** What a box is made of: bytes, or whole numbers of one byte each. */
export type BoxPart = Uint8Array | readonly number[];

/** A box of four characters with these parts in its body. */
export function box(type: string, ...parts: BoxPart[]): Uint8Array {
  const body = parts.map((part) => part instanceof Uint8Array ? part : Uint8Array.from(part));
  const sizeBytes = body.reduce((sum, { length }) => sum + length, 8);
  return concatBytes([Uint8Array.from(u32(sizeBytes)), ascii(type), ...body]);
}

/** A box with version and flags. */
export function fullBox(type: string, version: number, flags: number, ...parts: BoxPart[]): Uint8Array {
  return box(type, u32(version * 0x1000000 + flags), ...parts);
}

/** Two bytes. */
export function u16(value: number): number[] {
  return [(value >> 8) & 0xff, value & 0xff];
}

/** Four bytes. */
export function u32(value: number): number[] {
  return [(value >>> 24) & 0xff, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff];
}

/** The characters as bytes. */
export function ascii(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

/** `count` zeros. */
export function zeros(count: number): Uint8Array {
  return new Uint8Array(count);
}
