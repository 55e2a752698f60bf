/** The extended message `ut_holepunch` (BEP 55): a neighbour of two peers has them dial each other at the same moment. */
import type { SocketAddress } from "../ports.ts";
import { addressBytes, addressText } from "./address.ts";
import type { ControlWire } from "./control-wire.ts";

/** Name of the extension (BEP 10). */
export const HOLE_PUNCH = "ut_holepunch";

/** By their number: asks to be brought together with a peer; has both dial; says why not. */
const TYPES = ["rendezvous", "connect", "error"] as const;

/** Why a neighbour brings nobody together, by number. */
export const HOLE_PUNCH_ERROR = { none: 0, noSuchPeer: 1, notConnected: 2, noSupport: 3, noSelf: 4 } as const;

/** One message. */
export interface HolePunchMessage {
  readonly type: typeof TYPES[number];
  /** The other peer. */
  readonly address: SocketAddress;
  /** One of `HOLE_PUNCH_ERROR`. */
  readonly error: number;
}

/** The payload of a message; null when the address is no literal one. */
export function encodeHolePunch({ type, address: { host, port }, error }: HolePunchMessage): Uint8Array | null {
  const bytes = addressBytes(host);
  if (bytes === null) return null;
  const payload = new Uint8Array(2 + bytes.length + 6);
  const view = new DataView(payload.buffer);
  payload.set([TYPES.indexOf(type), bytes.length === 16 ? 1 : 0]);
  payload.set(bytes, 2);
  view.setUint16(2 + bytes.length, port);
  view.setUint32(4 + bytes.length, error);
  return payload;
}

/** Reads a payload; null when it is malformed. An error code is there in errors alone, for some senders. */
export function decodeHolePunch(payload: Uint8Array): HolePunchMessage | null {
  const type = TYPES[payload[0] ?? -1];
  const addressLength = payload[1] === 0 ? 4 : payload[1] === 1 ? 16 : null;
  if (type === undefined || addressLength === null || payload.length < 4 + addressLength) return null;
  const view = new DataView(payload.buffer, payload.byteOffset, payload.length);
  const host = addressText(payload.subarray(2, 2 + addressLength));
  const port = view.getUint16(2 + addressLength);
  if (host === null || port === 0) return null;
  const error = payload.length >= 8 + addressLength ? view.getUint32(4 + addressLength) : 0;
  return { type, address: { host, port }, error };
}

/** The extension on one link. Create with `installHolePunch`. */
export interface HolePunchExchange {
  /** Sends one message; nothing when the far end has no `ut_holepunch`. */
  send(message: HolePunchMessage): void;
}

/** Registers `ut_holepunch` on a wire, before its handshake. Malformed messages are ignored. */
export function installHolePunch(wire: ControlWire, received: (message: HolePunchMessage) => void): HolePunchExchange {
  class Extension {
    onMessage(payload: Uint8Array): void {
      const message = decodeHolePunch(payload);
      if (message !== null) received(message);
    }
  }
  Object.defineProperty(Extension.prototype, "name", { value: HOLE_PUNCH });
  wire.use(Extension as never);
  return {
    send: (message) => {
      const payload = encodeHolePunch(message);
      if (payload !== null && wire.peerExtendedMapping[HOLE_PUNCH]) wire.extended(HOLE_PUNCH, payload);
    },
  };
}
