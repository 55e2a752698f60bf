/** Bytes as hexadecimal text, and small helpers on byte arrays. */
import { MillraceError } from "../errors.ts";

const DIGITS = "0123456789abcdef";

/** Lower-case hexadecimal. */
export function toHex(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += DIGITS[byte >> 4]! + DIGITS[byte & 15]!;
  return text;
}

/** Bytes of hexadecimal text in either case. Throws `invalid_argument` on an odd length or another character. */
export function fromHex(text: string): Uint8Array {
  if (text.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(text)) {
    throw new MillraceError("invalid_argument", "hexadecimal digits in pairs are expected");
  }
  const bytes = new Uint8Array(text.length / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(text.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

/** True when both hold the same bytes. Not in constant time: for hashes and ids, never for secrets. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** One array of all parts in order. */
export function concatBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
