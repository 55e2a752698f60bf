/** The message of `live1` by which a broadcaster proves that it is one. First byte the type. */
import { MillraceError } from "../errors.ts";
import { SIGNATURE_BYTES } from "./header.ts";

/** First byte of SOURCE. */
const TYPE = 12;

/** SOURCE: `signature, 64 bytes`: see `HeaderSigner.signSource`. */
export interface SourceMessage {
  readonly type: "source";
  readonly signature: Uint8Array;
}

/** Encodes SOURCE. */
export function encodeSourceMessage({ signature }: SourceMessage): Uint8Array<ArrayBuffer> {
  return Uint8Array.of(TYPE, ...signature);
}

/** Reads a SOURCE; null when it is of another type. Throws `protocol_violation` when it is malformed. */
export function decodeSourceMessage(bytes: Uint8Array): SourceMessage | null {
  if (bytes[0] !== TYPE) return null;
  if (bytes.length !== 1 + SIGNATURE_BYTES) {
    throw new MillraceError("protocol_violation", "a live1 message SOURCE has the wrong length");
  }
  return { type: "source", signature: bytes.slice(1) };
}
