/**
 * The messages of `live1` by which a member brings together two others that nobody can dial. Big-endian, first byte the
 * type.
 */
import { MillraceError } from "../errors.ts";
import type { SocketAddress } from "../ports.ts";
import { TOKEN_BYTES } from "../utp/utp-endpoint.ts";
import { addressBytes, addressText } from "../wire/address.ts";
import type { ReachMessage } from "./reach-messages.ts";
import type { SecondMessage } from "./second-message.ts";
import type { SourceMessage } from "./source-message.ts";

/** First byte of SEEK, PROBE and PUNCH. */
const TYPE = { seek: 8, probe: 9, punch: 10 } as const;

const PEER_ID_BYTES = 20;
/** Type, token, role and peer id of a PUNCH: the bytes before the address. */
const PUNCH_HEAD_BYTES = 1 + TOKEN_BYTES + 1 + PEER_ID_BYTES;

/** What members and their introducer say. */
export type PunchMessage =
  /** SEEK: `wanted u8`. Whether the sender wants to meet others that nobody can dial. */
  | { readonly type: "seek"; readonly isWanted: boolean }
  /** PROBE: `token u64 | port u16`. Send the token in a datagram to this UDP port of mine. */
  | { readonly type: "probe"; readonly token: Uint8Array; readonly port: number }
  /**
   * PUNCH: `token u64 | role u8 | peer id | length u8 | address | port u16`. Connect to this member; it gets the same
   * message about you at the same moment.
   */
  | {
    readonly type: "punch";
    readonly token: Uint8Array;
    readonly isInitiator: boolean;
    readonly peerId: Uint8Array;
    readonly address: SocketAddress;
  };

/** Every message of `live1` that is about members rather than the stream. */
export type MemberMessage = ReachMessage | PunchMessage | SecondMessage | SourceMessage;

/** Encodes a message. Throws `invalid_argument` for an address that is no literal one. */
export function encodePunchMessage(message: PunchMessage): Uint8Array<ArrayBuffer> {
  switch (message.type) {
    case "seek":
      return Uint8Array.of(TYPE.seek, message.isWanted ? 1 : 0);
    case "probe":
      return Uint8Array.of(TYPE.probe, ...message.token, message.port >> 8, message.port & 255);
    case "punch": {
      const { token, isInitiator, peerId, address: { host, port } } = message;
      const address = addressBytes(host);
      if (address === null) throw new MillraceError("invalid_argument", `${host} is no literal address`);
      const head = [TYPE.punch, ...token, isInitiator ? 0 : 1, ...peerId, address.length];
      return Uint8Array.of(...head, ...address, port >> 8, port & 255);
    }
  }
}

/** Reads a message; null when it is of another type. Throws `protocol_violation` when it is malformed. */
export function decodePunchMessage(bytes: Uint8Array): PunchMessage | null {
  switch (bytes[0]) {
    case TYPE.seek:
      if (bytes.length !== 2) throw violation();
      return { type: "seek", isWanted: bytes[1] !== 0 };
    case TYPE.probe: {
      if (bytes.length !== 1 + TOKEN_BYTES + 2) throw violation();
      return { type: "probe", token: bytes.slice(1, 1 + TOKEN_BYTES), port: portAt(bytes, 1 + TOKEN_BYTES) };
    }
    case TYPE.punch: {
      const length = bytes[PUNCH_HEAD_BYTES] ?? 0;
      const end = PUNCH_HEAD_BYTES + 1 + length + 2;
      if ((length !== 4 && length !== 16) || bytes.length !== end) throw violation();
      const host = addressText(bytes.subarray(PUNCH_HEAD_BYTES + 1, end - 2));
      if (host === null) throw violation();
      return {
        type: "punch",
        token: bytes.slice(1, 1 + TOKEN_BYTES),
        isInitiator: bytes[1 + TOKEN_BYTES] === 0,
        peerId: bytes.slice(2 + TOKEN_BYTES, PUNCH_HEAD_BYTES),
        address: { host, port: portAt(bytes, end - 2) },
      };
    }
    default:
      return null;
  }
}

function portAt(bytes: Uint8Array, at: number): number {
  const port = bytes[at]! << 8 | bytes[at + 1]!;
  if (port === 0) throw violation();
  return port;
}

function violation(): MillraceError {
  return new MillraceError("protocol_violation", "a live1 message about meeting other members is malformed");
}
