/** The extended message `live1` on a wire: its bytes, and what the sender says about itself in the handshake. */
import { type BencodeDictionary, integerWithin, isDictionary } from "../bytes/bencode.ts";
import type { ControlWire } from "./control-wire.ts";
import type { LiveOffer } from "./types.ts";

/** Name of the extension (BEP 10). */
const NAME = "live1";

/** Version of the protocol. */
const VERSION = 1;

/** Length of the token by which a further connection to a neighbour is known, bytes. */
export const SECOND_TOKEN_BYTES = 8;

/** Latest time that a handshake can carry, Unix seconds: the year 10889. */
const MAX_CLOCK_S = 281_474_976_710;

/** The field `live` of our handshake. */
export function liveField(offer: LiveOffer): Record<string, unknown> {
  const field: Record<string, unknown> = { v: VERSION, role: offer.role };
  if (offer.upBytesPerS !== null) field.up = Math.floor(offer.upBytesPerS);
  if (offer.clockMs !== undefined) field.t = Math.floor(offer.clockMs / 1000);
  if (offer.takesBundles === true) field.b = 1;
  if (offer.isOpen !== undefined) field.r = offer.isOpen ? 1 : 0;
  if (offer.joins !== undefined) field.s = offer.joins;
  return field;
}

/** Reads the far end's field `live`; null when it does not offer our version of `live1`. */
export function readLiveOffer(handshake: BencodeDictionary): LiveOffer | null {
  const field = handshake["live"];
  if (!isDictionary(field) || field["v"] !== VERSION) return null;
  const role = field["role"] instanceof Uint8Array ? new TextDecoder().decode(field["role"].subarray(0, 16)) : "";
  const clockS = integerWithin(field["t"], 0, MAX_CLOCK_S);
  const open = integerWithin(field["r"], 0, 1);
  const joins = field["s"];
  return {
    role: role === "source" ? "source" : "viewer",
    upBytesPerS: integerWithin(field["up"], 0, Number.MAX_SAFE_INTEGER),
    ...(clockS === null ? {} : { clockMs: 1000 * clockS }),
    ...(integerWithin(field["b"], 1, 1) === null ? {} : { takesBundles: true }),
    ...(open === null ? {} : { isOpen: open === 1 }),
    ...(joins instanceof Uint8Array && joins.length === SECOND_TOKEN_BYTES ? { joins: joins.slice() } : {}),
  };
}

/** The extension on one link. Create with `installLive`. */
export interface LiveExchange {
  /** Sends one message; nothing when the far end has no `live1`. */
  send(message: Uint8Array): void;
}

/** Registers `live1` on a wire, before its handshake. `received` may keep the bytes; if it throws, the link ends. */
export function installLive(wire: ControlWire, received: (message: Uint8Array) => void): LiveExchange {
  class Extension {
    onMessage(payload: Uint8Array): void {
      received(payload);
    }
  }
  Object.defineProperty(Extension.prototype, "name", { value: NAME });
  wire.use(Extension as never);
  return {
    send: (message) => {
      if (wire.peerExtendedMapping[NAME]) wire.extended(NAME, message);
    },
  };
}
