/** The extended message `lt_donthave` (BEP 54): the sender lost a piece. */
import type { ControlWire } from "./control-wire.ts";

/** Name of the extension (BEP 10). */
const NAME = "lt_donthave";

/** Size of its payload, bytes: the piece number, big-endian. */
const PAYLOAD_BYTES = 4;

/** Lost pieces remembered until the far end's handshake arrives; further ones are never reported to so silent a peer. */
const MAX_WAITING = 1024;

/** The extension on one link. Create with `installDontHave`. */
export interface DontHaveExchange {
  /** Reports that `piece` is gone, once the far end's handshake has come; does nothing if that lacks `lt_donthave`. */
  send(piece: number): void;
}

/** Registers `lt_donthave` on a wire, before its handshake. Messages of another size are ignored. */
export function installDontHave(wire: ControlWire, received: (piece: number) => void): DontHaveExchange {
  /** Null once the far end's handshake has come. */
  let waiting: Set<number> | null = new Set();
  const send = (piece: number): void => {
    if (!wire.peerExtendedMapping[NAME]) return;
    const payload = new Uint8Array(PAYLOAD_BYTES);
    new DataView(payload.buffer).setUint32(0, piece);
    wire.extended(NAME, payload);
  };
  class Extension {
    onExtendedHandshake(): void {
      const pieces = waiting ?? [];
      waiting = null;
      for (const piece of pieces) send(piece);
    }
    onMessage(payload: Uint8Array): void {
      if (payload.length !== PAYLOAD_BYTES) return;
      received(new DataView(payload.buffer, payload.byteOffset, PAYLOAD_BYTES).getUint32(0));
    }
  }
  Object.defineProperty(Extension.prototype, "name", { value: NAME });
  wire.use(Extension as never);
  return {
    send(piece) {
      if (waiting === null) send(piece);
      else if (waiting.size < MAX_WAITING) waiting.add(piece);
    },
  };
}
