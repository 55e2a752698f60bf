/**
 * Bencoding (BEP 3) of untrusted bytes. The decoder of the `bencode` package recurses as deep as its input, reads
 * backwards on a negative string length, lets a key named `__proto__` replace an object's prototype, and decodes in one
 * turn, half a second for the names of 95,000 files. So values are decoded here, without recursion and, if large, in turns.
 */
import bencode from "bencode";
import { type ErrorCode, MillraceError } from "../errors.ts";
import { toHex } from "./hex.ts";
import { isTurnDue, nextTurn } from "./turn.ts";

/** Limits for one decoding. */
export interface BencodeLimits {
  /** Levels of lists and dictionaries. Default 32: transport files need 6. */
  readonly maxDepth?: number;
  /** Values in total, including keys. Default 1,000,000: a torrent of 100,000 files has some 900,000. */
  readonly maxValues?: number;
  /** Code of the error thrown. Default `protocol_violation`. */
  readonly errorCode?: ErrorCode;
}

/** The position of a value: `[start, end)`. */
export interface BencodeSpan {
  readonly start: number;
  readonly end: number;
}

/** The result of a check. */
export interface BencodeScan {
  /** Offset just after the value. */
  readonly end: number;
  /** If the value is a dictionary: the position of each key's value. */
  readonly spans: ReadonlyMap<string, BencodeSpan>;
}

/** A decoded dictionary; strings are byte arrays, numbers may be unsafe integers. */
export type BencodeDictionary = Readonly<Record<string, unknown>>;

const DEFAULT_MAX_DEPTH = 32;
const DEFAULT_MAX_VALUES = 1_000_000;
/** Digits of the longest number: a signed 64-bit integer has 19. */
const MAX_DIGITS = 19;
/** Longest key whose position is remembered; no caller looks up a longer one. */
const MAX_NAMED_KEY_BYTES = 64;

const COLON = 0x3a;
const DICTIONARY = 0x64;
const END = 0x65;
const INTEGER = 0x69;
const LIST = 0x6c;
const MINUS = 0x2d;
const PROTOTYPE_KEY = "__proto__";
const ASCII = /^[\x20-\x7e]+$/;

/** States of the scan: what comes next inside the innermost container. */
const IN_LIST = 0;
const AT_KEY = 1;
const AT_VALUE = 2;

/** A value under construction, and the key that waits for its value. */
type Container = unknown[] | Record<string, unknown>;

interface Walked extends BencodeScan {
  /** Undefined when only checking was asked for. */
  readonly value: unknown;
}

/** Values read between two chances for a turn: about 0.2 ms. */
const VALUES_PER_STEP = 2048;

const KEY_DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

/** Checks the value at `start` and decodes it if `isBuilding`. Yields now and then, so that the caller can take a turn. */
function* walk(bytes: Uint8Array, limits: BencodeLimits, start: number, isBuilding: boolean): Generator<void, Walked> {
  const fail: (reason: string) => never = (reason) => {
    throw new MillraceError(limits.errorCode ?? "protocol_violation", `malformed bencoding at byte ${at}: ${reason}`);
  };
  const maxDepth = limits.maxDepth ?? DEFAULT_MAX_DEPTH;
  const maxValues = limits.maxValues ?? DEFAULT_MAX_VALUES;
  const spans = new Map<string, BencodeSpan>();
  const state = new Uint8Array(maxDepth + 1);
  const open: Container[] = [];
  const keys: string[] = [];
  let root: unknown;
  let at = start;
  let depth = 0;
  let values = 0;
  let outerKey = "";
  let outerStart = 0;

  /** Reads digits up to `terminator`; `at` ends after it. */
  const number = (terminator: number): number => {
    let value = 0;
    const first = at;
    for (;; at++) {
      const byte = bytes[at];
      if (byte === undefined) fail("it ends within a number");
      if (byte === terminator) break;
      if (byte < 0x30 || byte > 0x39) fail("a digit is expected");
      if (at - first >= MAX_DIGITS) fail("the number is too long");
      value = value * 10 + (byte - 0x30);
    }
    if (at === first) fail("a number has no digits");
    at++;
    return value;
  };
  /** Puts a value where it belongs. */
  const add = (value: unknown): void => {
    const container = open[depth];
    if (depth === 0) root = value;
    else if (Array.isArray(container)) container.push(value);
    else container![keys[depth]!] = value;
  };

  for (;;) {
    const byte = bytes[at];
    if (byte === undefined) fail("it ends too early");
    const expected = state[depth]!;
    if (depth > 0 && byte === END) {
      if (expected === AT_VALUE) fail("a key has no value");
      at++;
      depth--;
    } else {
      if (++values > maxValues) fail(`more than ${maxValues} values`);
      if (values % VALUES_PER_STEP === 0) yield;
      const isKey = depth > 0 && expected === AT_KEY;
      const valueStart = at;
      if (byte >= 0x30 && byte <= 0x39) {
        const length = number(COLON);
        if (length > bytes.length - at) fail("a string is longer than the remaining bytes");
        const from = at;
        at += length;
        if (isKey) {
          const named = length <= MAX_NAMED_KEY_BYTES ? String.fromCharCode(...bytes.subarray(from, at)) : "";
          if (named === PROTOTYPE_KEY) fail("a key is not allowed");
          if (depth === 1) {
            if (named !== "" && spans.has(named)) fail(`the key "${named}" appears twice`);
            outerKey = named;
            outerStart = at;
          }
          if (isBuilding) keys[depth] = ASCII.test(named) ? named : keyOf(bytes.subarray(from, at));
          state[depth] = AT_VALUE;
          continue;
        }
        if (isBuilding) add(bytes.slice(from, at));
      } else if (isKey) {
        fail("a key is not a string");
      } else if (byte === INTEGER) {
        at++;
        const isNegative = bytes[at] === MINUS;
        if (isNegative) at++;
        const value = number(END);
        // BEP 3 forbids it; decoding and encoding it again would give different bytes.
        if (value === 0 && isNegative) fail("negative zero is not allowed");
        if (isBuilding) add(isNegative ? -value : value);
      } else if (byte === LIST || byte === DICTIONARY) {
        if (depth >= maxDepth) fail(`nested more than ${maxDepth} levels`);
        const container: Container = byte === LIST ? [] : {};
        if (isBuilding) add(container);
        if (depth > 0 && expected === AT_VALUE) state[depth] = AT_KEY;
        state[++depth] = byte === LIST ? IN_LIST : AT_KEY;
        open[depth] = container;
        at++;
        if (depth === 2) outerStart = valueStart;
        continue;
      } else {
        fail("unknown type");
      }
      if (depth > 0 && expected === AT_VALUE) state[depth] = AT_KEY;
    }
    if (depth === 0) return { end: at, spans, value: root };
    if (depth === 1 && state[1] === AT_KEY && !spans.has(outerKey)) spans.set(outerKey, { start: outerStart, end: at });
  }
}

/** Text of a key: UTF-8, or hexadecimal digits where it is none, as hashes are that serve as keys. */
function keyOf(bytes: Uint8Array): string {
  const text = KEY_DECODER.decode(bytes);
  return text.includes("\ufffd") ? toHex(bytes) : text;
}

function finished(steps: Generator<void, Walked>): Walked {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/**
 * Checks the value at `start` and returns where it ends. Unsorted keys and leading zeros are accepted, since files in
 * use have them; duplicate keys in the outermost dictionary are not, since readers would disagree about which one
 * counts. Throws the code of `limits` with the reason.
 */
export function scanBencode(bytes: Uint8Array, limits: BencodeLimits = {}, start = 0): BencodeScan {
  return finished(walk(bytes, limits, start, false));
}

/** The checked and decoded value that fills `bytes` exactly. Throws as `scanBencode` does, and on trailing bytes. */
export function decodeBencode(bytes: Uint8Array, limits: BencodeLimits = {}): unknown {
  const { end, value } = finished(walk(bytes, limits, 0, true));
  if (end !== bytes.length) {
    throw new MillraceError(
      limits.errorCode ?? "protocol_violation",
      `malformed bencoding: ${bytes.length - end} bytes follow the value`,
    );
  }
  return value;
}

/** As `scanBencode`, with the decoded value; large ones are decoded in turns. Rejects where `scanBencode` throws. */
export async function decodeBencodeInTurns(
  bytes: Uint8Array,
  limits: BencodeLimits = {},
): Promise<BencodeScan & { readonly value: unknown }> {
  const steps = walk(bytes, limits, 0, true);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (isTurnDue()) await nextTurn();
  }
}

/** Bencodes numbers, strings, byte arrays, arrays and plain objects (keys sorted; absent when undefined or null). */
export function encodeBencode(value: unknown): Uint8Array {
  return bencode.encode(value);
}

/** True for a decoded dictionary. */
export function isDictionary(value: unknown): value is BencodeDictionary {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
}

/** `value` as an integer within `[min, max]`, else null. */
export function integerWithin(value: unknown, min: number, max: number): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max ? value : null;
}
