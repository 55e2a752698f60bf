/** The message of `live1` by which a neighbour is offered further connections. First byte the type. */
import { MillraceError } from "../errors.ts";
import { SECOND_TOKEN_BYTES } from "../wire/live-exchange.ts";

/** First byte of SECOND. */
const TYPE = 16;

/** SECOND: `token 8 bytes | ask u8`. */
export interface SecondMessage {
  readonly type: "second";
  /** A connection whose handshake shows this belongs to the one that the token came over. */
  readonly token: Uint8Array;
  /** The receiver is asked to open it, because the sender can't. */
  readonly isAsked: boolean;
}

/** Encodes SECOND. */
export function encodeSecondMessage({ token, isAsked }: SecondMessage): Uint8Array<ArrayBuffer> {
  return Uint8Array.of(TYPE, ...token, isAsked ? 1 : 0);
}

/** Reads a SECOND; null when it is of another type. Throws `protocol_violation` when it is malformed. */
export function decodeSecondMessage(bytes: Uint8Array): SecondMessage | null {
  if (bytes[0] !== TYPE) return null;
  if (bytes.length !== 2 + SECOND_TOKEN_BYTES) {
    throw new MillraceError("protocol_violation", "a live1 message SECOND has the wrong length");
  }
  return { type: "second", token: bytes.slice(1, 1 + SECOND_TOKEN_BYTES), isAsked: bytes.at(-1) === 1 };
}
