/** Bencoded messages of trackers and DHT nodes, within limits. */
import { type BencodeDictionary, decodeBencode, isDictionary, scanBencode } from "../bytes/bencode.ts";
import { MillraceError } from "../errors.ts";

/** Limits for one message. */
export interface MessageLimits {
  /** Longest message, bytes. */
  readonly maxBytes: number;
  /** Deepest nesting of lists and dictionaries. */
  readonly maxDepth: number;
  /** Most values, dictionary keys included. */
  readonly maxValues: number;
}

const utf8 = new TextDecoder();

/**
 * The dictionary at the start of `bytes`; bytes after it are ignored, since trackers append line feeds. Throws
 * `too_large` or `protocol_violation`.
 */
export function decodeMessage(bytes: Uint8Array, limits: MessageLimits): BencodeDictionary {
  if (bytes.length > limits.maxBytes) {
    throw new MillraceError("too_large", `a bencoded message of more than ${limits.maxBytes} bytes`);
  }
  const { end } = scanBencode(bytes, limits);
  const value = decodeBencode(bytes.subarray(0, end), limits);
  if (!isDictionary(value)) throw new MillraceError("protocol_violation", "a bencoded dictionary is expected");
  return value;
}

/** Text of a byte string, cut to `maxChars` and without control characters; null when it is not a byte string. */
export function shortText(value: unknown, maxChars = 200): string | null {
  if (!(value instanceof Uint8Array)) return null;
  const text = utf8.decode(value.subarray(0, maxChars * 4));
  // deno-lint-ignore no-control-regex -- exactly those are removed
  return text.replace(/[\u0000-\u001f\u007f]+/g, " ").trim().slice(0, maxChars);
}
