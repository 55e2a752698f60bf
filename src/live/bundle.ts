/** The message BUNDLE of `live1`: several small messages that go to one neighbour at the same moment. Big-endian, first byte the type. */
import { MillraceError } from "../errors.ts";
import { MAX_LIVE_MESSAGE_BYTES } from "./messages.ts";

/** First byte of a BUNDLE. */
export const BUNDLE = 15;

/** Messages in one BUNDLE: what a member has to say at once are a PING or PONG, its WINDOW and its PLACE. */
export const MAX_BUNDLED = 8;

/** Encodes `parts`, 1 to `MAX_BUNDLED` messages that together fit into one: `15`, then for each `length u16` and its bytes. */
export function encodeBundle(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + 2 + length, 1));
  bytes[0] = BUNDLE;
  let at = 1;
  for (const part of parts) {
    bytes[at] = part.length >> 8;
    bytes[at + 1] = part.length;
    bytes.set(part, at + 2);
    at += 2 + part.length;
  }
  return bytes;
}

/** `messages` in the same order, in as few messages as hold them: alone, or in BUNDLEs of at most `MAX_LIVE_MESSAGE_BYTES`. */
export function bundled(messages: readonly Uint8Array[]): Uint8Array[] {
  const groups: Uint8Array[][] = [];
  let bytes = Infinity;
  for (const message of messages) {
    bytes += 2 + message.length;
    const group = groups.at(-1);
    if (group !== undefined && bytes <= MAX_LIVE_MESSAGE_BYTES && group.length < MAX_BUNDLED) group.push(message);
    else {
      groups.push([message]);
      bytes = 3 + message.length;
    }
  }
  return groups.map((group) => group.length === 1 ? group[0]! : encodeBundle(group));
}

/**
 * The messages in `bytes`, views of them; null when it is no BUNDLE. Throws `protocol_violation` when one is malformed: it is
 * empty, has more than `MAX_BUNDLED` messages, or one of them is empty, cut off or a BUNDLE itself.
 */
export function decodeBundle(bytes: Uint8Array): Uint8Array[] | null {
  if (bytes[0] !== BUNDLE) return null;
  const parts: Uint8Array[] = [];
  for (let at = 1; at < bytes.length;) {
    const end = at + 2 + ((bytes[at]! << 8) | (bytes[at + 1] ?? 0));
    const part = bytes.subarray(at + 2, end);
    if (end > bytes.length || part.length === 0 || part[0] === BUNDLE || parts.length === MAX_BUNDLED) {
      throw violation();
    }
    parts.push(part);
    at = end;
  }
  if (parts.length === 0) throw violation();
  return parts;
}

function violation(): MillraceError {
  return new MillraceError("protocol_violation", "a live1 message BUNDLE is malformed");
}
