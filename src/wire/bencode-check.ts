/**
 * Checks outside bytes before the bencode decoder of the wire library sees them: that decoder walks backwards on a
 * negative string length (and then never ends), and recurses as deep as the input says.
 */
import bencode from "bencode";
import { MillraceError } from "../errors.ts";

/** Deepest nesting that any message of ours has is 3 (handshake, `m`); others may add a little. */
const MAX_DEPTH = 16;

/** More values than any message of ours has; bounds what the decoder allocates. */
const MAX_VALUES = 4096;

const COLON = 0x3a;
const DICTIONARY = 0x64;
const END = 0x65;
const INTEGER = 0x69;
const LIST = 0x6c;
const MINUS = 0x2d;

function malformed(reason: string): MillraceError {
  return new MillraceError("protocol_violation", `malformed bencoding: ${reason}`);
}

/**
 * Where the bencoded value that starts at `start` ends. Throws `protocol_violation` when it is malformed, nested deeper
 * than 16 or made of more than 4096 values (BEP 3; unsorted keys and leading zeros are let pass, as clients send them).
 */
export function bencodeEnd(bytes: Uint8Array, start = 0): number {
  let at = start;
  let depth = 0;
  let values = 0;
  // What the innermost open containers take next; a dictionary alternates between key and value.
  const kinds: ("list" | "key" | "value")[] = [];

  const digits = (terminator: number, signed: boolean): number => {
    let value = 0;
    let count = 0;
    let sign = 1;
    if (signed && bytes[at] === MINUS) {
      sign = -1;
      at++;
    }
    for (;; at++) {
      const byte = bytes[at];
      if (byte === undefined) throw malformed("truncated number");
      if (byte === terminator) break;
      if (byte < 0x30 || byte > 0x39) throw malformed("not a digit");
      if (++count > 20) throw malformed("number too long");
      value = value * 10 + (byte - 0x30);
    }
    if (count === 0) throw malformed("empty number");
    at++;
    return sign * value;
  };

  for (;;) {
    const byte = bytes[at];
    if (byte === undefined) throw malformed("truncated");
    const kind = kinds[depth - 1];
    if (byte === END && depth > 0) {
      if (kind === "value") throw malformed("key without a value");
      at++;
      depth--;
      kinds.pop();
    } else {
      if (++values > MAX_VALUES) throw malformed("too many values");
      const isString = byte >= 0x30 && byte <= 0x39;
      if (kind === "key" && !isString) throw malformed("a key is not a string");
      if (kind === "key") kinds[depth - 1] = "value";
      else if (kind === "value") kinds[depth - 1] = "key";
      if (isString) {
        const length = digits(COLON, false);
        if (length > bytes.length - at) throw malformed("string beyond the end");
        at += length;
      } else if (byte === INTEGER) {
        at++;
        digits(END, true);
      } else if (byte === LIST || byte === DICTIONARY) {
        if (++depth > MAX_DEPTH) throw malformed("nested too deep");
        kinds.push(byte === LIST ? "list" : "key");
        at++;
        continue;
      } else {
        throw malformed("unknown type");
      }
    }
    if (depth === 0) return at;
  }
}

/** A decoded dictionary. Strings are byte arrays. */
export type BencodeDictionary = Readonly<Record<string, unknown>>;

/** The dictionary at the start of `bytes` and where it ends. Throws `protocol_violation` when there is none. */
export function decodeDictionary(bytes: Uint8Array): { dictionary: BencodeDictionary; end: number } {
  if (bytes[0] !== DICTIONARY) throw malformed("not a dictionary");
  const end = bencodeEnd(bytes);
  return { dictionary: bencode.decode(bytes.subarray(0, end)) as BencodeDictionary, end };
}

/** A safe integer in `[min, max]`, else null. */
export function integerIn(value: unknown, min: number, max: number): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max ? value : null;
}
